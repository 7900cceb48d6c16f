/// How certain a price is.
package struct Uncertainty: Sendable, Hashable {
    /// How far the median of the markets may be from the price, in the price's currency. The definition of the interface says how often
    /// it is farther.
    package var plusMinus: Price
    /// The number of markets that it was estimated from; at least 2.
    package var markets: Int64

    package init(plusMinus: Price, markets: Int64) {
        self.plusMinus = plusMinus
        self.markets = markets
    }
}
