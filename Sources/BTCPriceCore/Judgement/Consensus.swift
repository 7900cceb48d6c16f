public import FoundationEssentials

/// What several sources say together.
public struct Consensus: Sendable, Hashable {
    /// The sources whose median the price is, in their order.
    public let sources: [String]
    /// Those that lie too far from the others to count.
    public let outliers: [String]
    /// From the lowest to the highest of those that count, in the price's currency.
    public let spread: Decimal

    /// A consensus of which every part is given.
    public init(sources: [String], outliers: [String], spread: Decimal) {
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
        of prices: [(source: String, value: Decimal)], isEarlier: (String) -> Bool = { _ in false }
    ) -> (value: Decimal?, consensus: Consensus) {
        let rough = middle(of: prices.map(\.value))
        let isNear = { (value: Decimal) in
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

    private static func middle(of values: [Decimal]) -> Decimal {
        let sorted = values.sorted()
        let half = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[half] : ((sorted[half - 1] + sorted[half]) / 2).rounded(toPlaces: 8)
    }
}
