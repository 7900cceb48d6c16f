/// Which prices count in a median.
enum OutlierRule {
    /// A price farther than this from the middle of all, in natural logarithms, is an outlier.
    static let farthest = 0.015

    /// The median of the prices that are not outliers.
    /// - Parameters:
    ///   - prices: At least one, in one currency.
    ///   - isEarlier: Whether a market's price is from before this round: it may support others, but is not shown.
    /// - Returns: The median; `nil` if only earlier ones agree.
    static func median(
        of prices: [(market: Market, value: Price)], isEarlier: (Market) -> Bool = { _ in false }
    ) -> (value: Price?, used: [Market], spread: Price) {
        let rough = middle(of: prices.map(\.value)).logarithm
        var counted = prices.filter { abs($0.value.logarithm - rough) <= farthest }
        // If two prices contradict each other, none is near the middle.
        if counted.isEmpty { counted = [prices[0]] }
        let values = counted.map(\.value).sorted()
        let current = counted.filter { !isEarlier($0.market) }.map(\.value)
        return (
            current.isEmpty ? nil : middle(of: current), counted.map(\.market), values[values.count - 1] - values[0]
        )
    }

    private static func middle(of values: [Price]) -> Price {
        let sorted = values.sorted()
        let half = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]).divided(by: 2, places: 8)
    }
}
