/// The sources of a median.
package struct Consensus: Sendable, Hashable {
    /// The sources that the price is the median of, in their order.
    package var sources: [String]
    /// The sources that are too far from the others to count.
    package var outliers: [String]
    /// The difference between the lowest and the highest price that counts, in the price's currency.
    package var spread: Price

    package init(sources: [String], outliers: [String], spread: Price) {
        self.sources = sources
        self.outliers = outliers
        self.spread = spread
    }
}
