/// What several sources say together.
package struct Consensus: Sendable, Hashable {
    /// The sources whose median the price is, in their order.
    package let sources: [String]
    /// Those that lie too far from the others to count.
    package let outliers: [String]
    /// From the lowest to the highest of those that count, in the price's currency.
    package let spread: Price

    /// A consensus of which every part is given.
    package init(sources: [String], outliers: [String], spread: Price) {
        self.sources = sources
        self.outliers = outliers
        self.spread = spread
    }

    /// The median of prices in one currency, of those that are no outliers.
    /// - Parameters:
    ///   - prices: At least one. Earlier ones among them support the others, and are not shown themselves.
    ///   - isEarlier: Whether a source's price is one.
    /// - Returns: The median; `nil` where only earlier ones agree.
    static func median(
        of prices: [(source: String, value: Price)], isEarlier: (String) -> Bool = { _ in false }
    ) -> (value: Price?, consensus: Consensus) {
        let rough = middle(of: prices.map(\.value))
        let isNear = { (value: Price) in
            abs(value.logarithm - rough.logarithm) <= JudgementBounds.outlier
        }
        var counted = prices.filter { isNear($0.value) }
        // Two that contradict each other leave nobody in the middle.
        if counted.isEmpty { counted = [prices[0]] }
        let values = counted.map(\.value).sorted()
        let current = counted.filter { !isEarlier($0.source) }.map(\.value)
        return (
            current.isEmpty ? nil : middle(of: current),
            Consensus(
                sources: counted.map(\.source),
                outliers: prices.map(\.source).filter { source in !counted.contains { $0.source == source } },
                spread: values[values.count - 1] - values[0])
        )
    }

    private static func middle(of values: [Price]) -> Price {
        let sorted = values.sorted()
        let half = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]).divided(by: 2, places: 8)
    }
}
