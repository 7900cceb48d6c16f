/// The treatment of a price in USDT.
enum PegRule {
    /// A price in dollars.
    /// - Returns: `nil` if the rate is not known, or the result is not a valid price.
    static func converted(_ price: MarketObservation, _ peg: PegMonitor, in currency: Currency) -> (Price, Conversion)?
    {
        guard let rate = peg.conversionRate(at: price.at) else { return nil }
        let value = (price.value * rate.value).rounded(toPlaces: 8)
        guard currency.prices.contains(value) else { return nil }
        return (
            value,
            Conversion(
                value: price.value, rate: rate.value, sources: rate.sources, measuredBoottime: rate.measuredBoottime)
        )
    }

    /// The warning about USDT for a reader of `quote`; `nil` if there is none.
    static func warning(
        for quote: PriceQuote?, _ peg: PegMonitor, _ policy: PegPolicy, at boottime: BootTime
    ) -> String? {
        guard let rate = peg.usableRate(at: boottime), rate.isOffPeg else { return nil }
        let start = "USDT is off its peg, at \(rate.value) USD by \(rate.sources.joined(separator: ", "))"
        guard let quote, Market.isInTether(quote.market) else { return start }
        return policy == .convert ? "\(start): this price is converted" : "\(start): this is a price in USDT"
    }

    /// Whether a quote is in USDT off its peg, and not converted.
    static func isOffPeg(
        _ quote: PriceQuote?, _ conversion: Conversion?, _ peg: PegMonitor, at boottime: BootTime
    ) -> Bool {
        guard let quote, conversion == nil, Market.isInTether(quote.market) else { return false }
        return peg.usableRate(at: boottime)?.isOffPeg ?? false
    }

    /// Whether the value of USDT must be requested before a USDT price that the observer has seen is compared: it is far from the shown
    /// one, and no USDT/USD market has stated the value a moment ago.
    static func needsRate(_ price: MarketObservation, _ claims: Claims) -> Bool {
        let isStated = claims.book.stated.map { $0.at > price.at - Vote.Bounds.moment } ?? false
        guard price.isInTether, !isStated, let reference = claims.belief.reference else { return false }
        return abs(claims.level(of: price, near: reference.log) - reference.log) > 2 * Vote.Bounds.width
    }
}
