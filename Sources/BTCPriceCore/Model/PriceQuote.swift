/// A price of one bitcoin from one source.
package struct PriceQuote: Sendable, Hashable {
    /// The exact price: never rounded, never converted through a binary floating-point number.
    package let value: Price
    /// ISO 4217 code of the currency of ``value``: `USD`.
    package let currency: String
    /// When it was observed, by this machine's wall clock.
    package let timestamp: Timestamp
    /// The name of the source: `binance`.
    package let source: String
    /// The market it was read from: `BTC/USDT`. Every quote carries it, because a USDT market is not a USD market.
    package let market: String

    /// Makes an unchecked quote. ``ResponseCheck`` checks it.
    package init(value: Price, currency: String, timestamp: Timestamp, source: String, market: String) {
        self.value = value
        self.currency = currency
        self.timestamp = timestamp
        self.source = source
        self.market = market
    }

    /// The same quote with another value.
    func with(value: Price) -> PriceQuote {
        PriceQuote(value: value, currency: currency, timestamp: timestamp, source: source, market: market)
    }
}
