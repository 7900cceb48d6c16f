/// Decides when to ask a daemon that sends no state whether it is there: its ticks may be far apart or paused, or it may hang. A pure value.
///
/// All times are in milliseconds, on any clock that does not go back.
struct DaemonSilence: Sendable {
    /// The time without a sign of the daemon after which it is asked.
    static let longest: Int64 = 1500

    private var lastSign: Int64
    /// When it was asked; `nil` if it has responded.
    private var asked: Int64?

    init(at now: Int64) {
        lastSign = now
    }

    mutating func heard(at now: Int64) { lastSign = now }

    /// - Returns: Whether to ask the daemon now. The response must be passed to ``responded(_:at:)``.
    mutating func mustAsk(at now: Int64) -> Bool {
        guard asked == nil, now - lastSign >= Self.longest else { return false }
        asked = now
        return true
    }

    /// - Returns: Whether the daemon is gone.
    mutating func responded(_ isThere: Bool, at now: Int64) -> Bool {
        guard let asked else { return false }
        self.asked = nil
        if isThere { lastSign = now }
        return lastSign < asked
    }
}
