/// A price of one bitcoin from one source.
package struct PriceQuote: Sendable, Hashable {
    /// The exact price: never rounded, never converted through a binary floating-point number.
    package var value: Price
    /// ISO 4217 code of the currency of ``value``: `USD`.
    package var currency: String
    /// When it was observed, by this machine's wall clock.
    package var timestamp: Timestamp
    /// The name of the source: `binance`.
    package var source: String
    /// The market it was read from: `BTC/USDT`. Every quote carries it, because a USDT market is not a USD market.
    package var market: String
    /// The peer that it came from (for a median, one of them); `nil` if from an exchange. Peers don't accept a price that came from a peer.
    package var via: String?

    /// Makes an unchecked quote.
    package init(
        value: Price, currency: String, timestamp: Timestamp, source: String, market: String, via: String? = nil
    ) {
        self.value = value
        self.currency = currency
        self.timestamp = timestamp
        self.source = source
        self.market = market
        self.via = via
    }

    /// The source for a reader: `binance`, or `binance via alpha`.
    package var sourceText: String { via.map { "\(source) via \($0)" } ?? source }

    /// The configured source that gave it: ``via``, if it came from a peer.
    package var supplier: String { via ?? source }
}
