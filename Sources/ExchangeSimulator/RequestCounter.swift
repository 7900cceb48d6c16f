/// Counts one venue's requests: the total, and the peak in the time span of each limit.
package struct RequestCounter: Sendable {
    package private(set) var total = 0
    private var windows: [Window]

    private struct Window: Sendable {
        let limit: (requests: Int, seconds: Int)
        /// The times within the span.
        var times: ArraySlice<Int64> = []
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
            let start = milliseconds - Int64(windows[index].limit.seconds) * 1000
            windows[index].times = windows[index].times.drop { $0 <= start }
            windows[index].times.append(milliseconds)
            windows[index].peak = max(windows[index].peak, windows[index].times.count)
        }
    }

    /// `total 120, most in 60 s 61 of 3000`
    package var text: String {
        "total \(total)" + windows.map { ", most in \($0.limit.seconds) s \($0.peak) of \($0.limit.requests)" }.joined()
    }

    /// Whether the requests stayed within every limit.
    package var isWithinLimits: Bool { windows.allSatisfy { $0.peak <= $0.limit.requests } }
}
