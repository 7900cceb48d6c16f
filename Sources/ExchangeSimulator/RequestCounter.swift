/// Counts one venue's requests: all of them, and the most that came in a span of each of its limits.
package struct RequestCounter: Sendable {
    package private(set) var total = 0
    private var windows: [Window]

    private struct Window: Sendable {
        let limit: (requests: Int, seconds: Int)
        var times: [Int64] = []
        /// The first of the times that still lies in the span.
        var first = 0
        var peak = 0
    }

    /// Counts for this venue.
    package init(_ venue: VenueName) {
        windows = venue.limits.map { Window(limit: $0) }
    }

    /// Counts a request.
    /// - Parameter milliseconds: When it came, on a monotonic clock.
    package mutating func count(at milliseconds: Int64) {
        total += 1
        for index in windows.indices {
            windows[index].times.append(milliseconds)
            while windows[index].times[windows[index].first] <= milliseconds - Int64(windows[index].limit.seconds)
                * 1000
            {
                windows[index].first += 1
            }
            windows[index].peak = max(windows[index].peak, windows[index].times.count - windows[index].first)
            if windows[index].first > 1000 {
                windows[index].times.removeFirst(windows[index].first)
                windows[index].first = 0
            }
        }
    }

    /// `total 120, most in 60 s 61 of 3000`
    package var text: String {
        "total \(total)" + windows.map { ", most in \($0.limit.seconds) s \($0.peak) of \($0.limit.requests)" }.joined()
    }

    /// Whether no span ever saw more than its limit.
    package var isWithinLimits: Bool { windows.allSatisfy { $0.peak <= $0.limit.requests } }
}
