/// How long a source took over its last answers: the newest 128, as a ring.
package struct LatencyWindow: Sendable, Hashable {
    private static let capacity = 128
    private var milliseconds: [UInt32] = []
    private var next = 0

    /// No answer yet.
    package init() {}

    /// How many answers it holds.
    package var count: Int { milliseconds.count }

    /// Takes an answer's time in.
    package mutating func add(_ latency: Duration) {
        let value = UInt32(clamping: latency.wholeMilliseconds)
        if milliseconds.count < Self.capacity {
            milliseconds.append(value)
        } else {
            milliseconds[next] = value
        }
        next = (next + 1) % Self.capacity
    }

    /// The time within which so many of a hundred answers came (nearest rank); `nil` without any.
    func percentile(_ percent: Int) -> Duration? {
        guard !milliseconds.isEmpty else { return nil }
        let rank = max(1, (milliseconds.count * min(max(percent, 0), 100) + 99) / 100)
        return .milliseconds(Int64(milliseconds.sorted()[rank - 1]))
    }
}
