import BTCPriceCore

/// The highest bid and the lowest ask of a market.
///
/// The last trade of a thin market may be hours old; what can be traded now is between the two.
struct Quotes: Sendable, Hashable {
    /// The widest spread of a market whose price is believed, a share of the bid.
    static let widestSpread = Price(2, scale: 2)
    /// How far outside the quotes a last price may be, a share of the quote.
    static let farthestLast = Price(1, scale: 2)

    let bid: Price
    let ask: Price

    /// - Throws: ``PriceLoadingError/invalidData(_:)`` if the bid is above the ask.
    init(bid: Price, ask: Price) throws(PriceLoadingError) {
        guard bid <= ask else { throw .invalidData("the bid \(bid) is above the ask \(ask)") }
        (self.bid, self.ask) = (bid, ask)
    }

    /// Half of the spread as a share of the middle.
    var halfSpread: Double { (ask - bid).double / (ask + bid).double }

    /// The middle of the two.
    /// - Throws: ``PriceLoadingError/invalidData(_:)`` if the spread is too wide.
    func middle() throws(PriceLoadingError) -> Price {
        try checkSpread()
        return (bid + ask) * Price(5, scale: 1)
    }

    /// The last trade's price, or the quote that is nearest to it.
    /// - Throws: ``PriceLoadingError/invalidData(_:)`` if the spread is too wide, or the last price is too far outside.
    func clamped(_ last: Price) throws(PriceLoadingError) -> Price {
        try checkSpread()
        let nearest = min(max(last, bid), ask)
        let distance = last > nearest ? last - nearest : nearest - last
        guard distance <= nearest * Self.farthestLast else {
            throw .invalidData("the last price \(last) is far outside the bid \(bid) and the ask \(ask)")
        }
        return nearest
    }

    private func checkSpread() throws(PriceLoadingError) {
        guard ask - bid <= bid * Self.widestSpread else {
            throw .invalidData("the bid \(bid) and the ask \(ask) are more than 2 % apart")
        }
    }
}
