/// How many requests fell into the last period of a limit, for people to see: a pure value. ``RequestLimiter`` decides without it.
///
/// Counted in thirtieths of the period, so that the count is never below the truth and at most a thirtieth's requests above.
struct RequestTally: Sendable {
    private static let parts: Int64 = 30

    let limit: RequestLimit
    private let part: Int64
    private var counts = [UInt32](repeating: 0, count: Int(parts) + 1)
    private var newest: Int64 = .min

    init(_ limit: RequestLimit) {
        self.limit = limit
        part = max(1, limit.period.wholeMilliseconds / Self.parts)
    }

    /// Counts a request.
    mutating func add(at boottime: Int64) {
        moveOn(to: boottime / part)
        counts[slot(newest)] += 1
    }

    /// The requests of the last period.
    func count(at boottime: Int64) -> Int {
        var copy = self
        copy.moveOn(to: boottime / part)
        return copy.counts.reduce(0) { $0 + Int($1) }
    }

    private mutating func moveOn(to present: Int64) {
        guard present > newest else { return }
        let passed = newest == .min ? Int64(counts.count) : present - newest
        for step in 0..<min(passed, Int64(counts.count)) { counts[slot(present - step)] = 0 }
        newest = present
    }

    private func slot(_ number: Int64) -> Int {
        // Below zero where the machine runs for less than the period.
        let count = Int64(counts.count)
        return Int((number % count + count) % count)
    }
}
