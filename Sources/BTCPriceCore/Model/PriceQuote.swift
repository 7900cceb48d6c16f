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

    /// Makes an unchecked quote. ``QuoteCheck`` checks it.
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

/// The position of a response in the venue's own history. Either part may be missing: Binance's ticker has neither.
package struct VenueMark: Sendable, Hashable {
    /// The venue's own time of the price.
    package let time: Timestamp?
    /// The venue's number of the trade that set the price.
    package let trade: Int64?

    package init(time: Timestamp? = nil, trade: Int64? = nil) {
        self.time = time
        self.trade = trade
    }

    /// Whether the venue sent neither part.
    package var isEmpty: Bool { time == nil && trade == nil }

    /// Whether this mark is before `other` in the venue's own history.
    ///
    /// Compares times if both marks have one: a venue may restart its trade numbers, but its time continues.
    func isBefore(_ other: VenueMark) -> Bool {
        if let mine = time, let theirs = other.time { return mine < theirs }
        if let mine = trade, let theirs = other.trade { return mine < theirs }
        return false
    }
}
