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
