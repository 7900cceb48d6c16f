/// A histogram of durations since the start.
package struct DurationHistogram: Sendable, Hashable {
    /// The upper bounds of the buckets, in seconds. Longer durations are in a last bucket without a bound.
    package static let bounds = [0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1]

    /// The number of durations in each bucket: above the previous bound, and at most its own.
    package private(set) var counts = [Int64](repeating: 0, count: bounds.count + 1)
    /// The sum of all durations, in seconds.
    package private(set) var sum = 0.0

    package init() {}

    package mutating func add(_ duration: Duration) {
        let seconds = duration / .seconds(1)
        counts[Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count] += 1
        sum += seconds
    }
}
