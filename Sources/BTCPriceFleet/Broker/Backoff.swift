/// The waits between attempts to connect: a second, doubled up to two minutes, each spread by chance, so that thousands of clients don't come
/// back to a broker at once. A pure value.
struct Backoff: Sendable {
    private static let first = Duration.seconds(1)
    /// With what chance adds, two minutes.
    private static let longest = Duration.seconds(80)
    /// A connection that lasted so long was a good one.
    private static let good = Duration.seconds(10)

    private var next = Self.first

    /// - Parameters:
    ///   - lasted: How long the connection lasted that has ended; `nil` if there was none.
    ///   - chance: From 0 to 1.
    /// - Returns: The wait before the next attempt.
    mutating func wait(after lasted: Duration?, chance: Double) -> Duration {
        if let lasted, lasted >= Self.good { next = Self.first }
        defer { next = min(next * 2, Self.longest) }
        return next * (1 + chance / 2)
    }
}
