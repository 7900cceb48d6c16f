package import BTCPriceCore

extension PriceState {
    /// A state for a test, from its commonest parts.
    package init(
        tick: Int64, freshness: Freshness, quote: PriceQuote?, observedBoottime: BootTime?,
        confirmation: Confirmation?, failure: String?, uncertainty: Uncertainty? = nil,
        currency: String = Currency.usd.rawValue, day: PriceDay? = nil, freshUntil: BootTime? = nil
    ) {
        self = .empty()
        price = quote.map { ShownPrice($0, observedBoottime: observedBoottime, confirmation: confirmation) }
        (ticks.number, ticks.freshness, ticks.freshUntil, ticks.failure) = (tick, freshness, freshUntil, failure)
        standing.uncertainty = uncertainty
        (self.day, self.currency) = (day, currency)
    }
}
