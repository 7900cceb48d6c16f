/// Counts one venue's requests: the total, and the peak in the time span of each limit.
package struct RequestCounter: Sendable {
    package private(set) var total = 0
    private var windows: [Window]

    private struct Window: Sendable {
        let limit: (requests: Int, seconds: Int)
        var times: [Int64] = []
        /// The index of the first time within the span.
        var first = 0
        var peak = 0
    }

    /// Counts against this venue's limits.
    package init(_ venue: VenueName) {
        windows = venue.limits.map { Window(limit: $0) }
    }

    /// - Parameter milliseconds: The arrival time on a monotonic clock.
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

    /// Whether the requests stayed within every limit.
    package var isWithinLimits: Bool { windows.allSatisfy { $0.peak <= $0.limit.requests } }
}
