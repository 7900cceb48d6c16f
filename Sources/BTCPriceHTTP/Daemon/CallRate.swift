/// A bound on calls: a burst, and so many a second after it.
struct CallRate: Sendable {
    private let burst: Int64
    private let perSecond: Int64
    /// Thousandths of a call that are left.
    private var left: Int64
    /// `CLOCK_BOOTTIME`, milliseconds.
    private var last = Int64.min

    init(burst: Int64, perSecond: Int64) {
        self.burst = burst
        self.perSecond = perSecond
        left = burst * 1000
    }

    /// - Parameter boottime: `CLOCK_BOOTTIME`, milliseconds.
    /// - Returns: Whether one more call may be made; then it counts.
    mutating func take(at boottime: Int64) -> Bool {
        // After so long all of the burst is there again.
        let passed = last == .min ? 0 : min(max(0, boottime - last), burst * 1000)
        last = boottime
        left = min(burst * 1000, left + passed * perSecond)
        guard left >= 1000 else { return false }
        left -= 1000
        return true
    }
}
