package import BTCPriceCore

/// A rate limit: a burst, then so many tokens a second. Callers that take more wait in turn. A pure value.
package struct TokenBucket: Sendable {
    private let burst: Int64
    private let perSecond: Int64
    /// The tokens that are left, in thousandths; below zero if callers wait.
    private var left: Int64
    private var last: BootTime?

    package init(burst: Int64, perSecond: Int64) {
        self.burst = burst
        self.perSecond = perSecond
        left = burst * 1000
    }

    /// - Returns: The time until `tokens` may be taken, milliseconds.
    package mutating func wait(for tokens: Int64 = 1, at boottime: BootTime) -> Int64 {
        // A longer pause fills no more than the burst.
        let passed = last.map { min(max(0, boottime - $0), (burst * 1000 - left) / perSecond + 1) } ?? 0
        last = boottime
        left = min(burst * 1000, left + passed * perSecond)
        return max(0, tokens * 1000 - left) / perSecond
    }

    package mutating func take(_ tokens: Int64 = 1) { left -= tokens * 1000 }

    /// Whether the whole burst is available.
    package func isFull(at boottime: BootTime) -> Bool {
        var copy = self
        _ = copy.wait(at: boottime)
        return copy.left == burst * 1000
    }
}
