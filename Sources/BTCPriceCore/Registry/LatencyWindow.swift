/// A ring buffer of the latencies of a source's last 128 responses.
package struct LatencyWindow: Sendable, Hashable {
    private static let capacity = 128
    private var milliseconds: [UInt32] = []
    private var next = 0

    /// The number of latencies, at most 128.
    package var count: Int { milliseconds.count }

    package mutating func add(_ latency: Duration) {
        let value = UInt32(clamping: latency.wholeMilliseconds)
        if milliseconds.count < Self.capacity {
            milliseconds.append(value)
        } else {
            milliseconds[next] = value
        }
        next = (next + 1) % Self.capacity
    }

    /// The latency that `percent` percent of the responses did not exceed (nearest rank); `nil` if the window is empty.
    func percentile(_ percent: Int) -> Duration? {
        guard !milliseconds.isEmpty else { return nil }
        let rank = max(1, (milliseconds.count * min(max(percent, 0), 100) + 99) / 100)
        return .milliseconds(Int64(milliseconds.sorted()[rank - 1]))
    }
}
