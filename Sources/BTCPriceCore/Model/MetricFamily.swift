/// Measurements of one kind, as OpenMetrics 1.0 defines a metric family.
package struct MetricFamily: Sendable, Hashable {
    /// What the values mean (OpenMetrics 1.0, Metric Types).
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case gauge, counter, histogram, info, stateset
    }

    package struct Sample: Sendable, Hashable {
        /// The text after the family's name: `_total`, `_bucket`; empty for most samples.
        package var suffix: String
        package var labels: [Label]
        /// A decimal number.
        package var value: String

        package init(suffix: String = "", labels: [Label] = [], value: String) {
            self.suffix = suffix
            self.labels = labels
            self.value = value
        }
    }

    /// Distinguishes a sample from the others of its family.
    package struct Label: Sendable, Hashable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// `btcpriced_price`
    package var name: String
    package var kind: Kind
    /// What is measured, in one line.
    package var help: String
    package var samples: [Sample]

    package init(_ name: String, _ kind: Kind, _ help: String, samples: [Sample] = []) {
        self.name = name
        self.kind = kind
        self.help = help
        self.samples = samples
    }
}

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
