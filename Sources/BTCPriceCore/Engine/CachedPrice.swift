/// The last valid price of one currency, with what a restart needs to reject old responses and to validate the next prices.
package struct CachedPrice: Sendable, Hashable {
    package let price: ShownPrice
    /// The newest position accepted from each market.
    package let positions: [KeptPosition]
    /// How far each market usually is from the others.
    package let learned: [LearnedBasis]?

    package init(_ price: ShownPrice, positions: [KeptPosition] = [], learned: [LearnedBasis]? = nil) {
        self.price = price
        self.positions = positions
        self.learned = learned
    }

    package var quote: PriceQuote { price.quote }
}
