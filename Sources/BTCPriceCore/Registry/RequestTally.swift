/// Counts the requests in the last period of a limit, for display: a pure value. ``RequestLimiter`` does not use it.
///
/// Counts in thirtieths of the period. The count is never too low, and too high by at most the requests of one thirtieth.
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

    mutating func add(at boottime: BootTime) {
        moveOn(to: boottime.milliseconds / part)
        counts[slot(newest)] += 1
    }

    func count(at boottime: BootTime) -> Int {
        var copy = self
        copy.moveOn(to: boottime.milliseconds / part)
        return copy.counts.reduce(0) { $0 + Int($1) }
    }

    private mutating func moveOn(to present: Int64) {
        guard present > newest else { return }
        let passed = newest == .min ? Int64(counts.count) : present - newest
        for step in 0..<min(passed, Int64(counts.count)) { counts[slot(present - step)] = 0 }
        newest = present
    }

    private func slot(_ number: Int64) -> Int {
        // Negative if the machine has run for less than the period.
        let count = Int64(counts.count)
        return Int((number % count + count) % count)
    }
}
