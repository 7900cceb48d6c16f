/// How certain a price is.
package struct Uncertainty: Sendable, Hashable {
    /// The median of the markets is within this distance of the price, about 19 times out of 20; in the price's currency.
    package var plusMinus: Price
    /// The number of markets that it was estimated from; at least 2.
    package var markets: Int64

    package init(plusMinus: Price, markets: Int64) {
        self.plusMinus = plusMinus
        self.markets = markets
    }
}
