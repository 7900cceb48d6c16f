/// The sources of a median.
package struct Consensus: Sendable, Hashable {
    /// The sources whose median the price is, in their order.
    package let sources: [String]
    /// The sources that lie too far from the others to count.
    package let outliers: [String]
    /// From the lowest to the highest price that counts, in the price's currency.
    package let spread: Price

    package init(sources: [String], outliers: [String], spread: Price) {
        self.sources = sources
        self.outliers = outliers
        self.spread = spread
    }
}
