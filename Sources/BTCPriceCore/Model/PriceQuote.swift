/// A price of one bitcoin, as one source gave it.
package struct PriceQuote: Sendable, Hashable {
    /// The price, exact: never rounded, never through a binary floating-point number.
    package let value: Price
    /// ISO 4217 code of the currency that ``value`` is in: `USD`.
    package let currency: String
    /// When it was observed, on this machine's wall clock.
    package let timestamp: Timestamp
    /// The source that gave it: `binance`.
    package let source: String
    /// The market it was read from: `BTC/USDT`. A USDT market is not a USD market, so this travels with every quote.
    package let market: String

    /// Makes a quote from its parts, unchecked; ``QuoteCheck`` judges it.
    package init(value: Price, currency: String, timestamp: Timestamp, source: String, market: String) {
        self.value = value
        self.currency = currency
        self.timestamp = timestamp
        self.source = source
        self.market = market
    }

    /// The same quote at another value.
    func with(value: Price) -> PriceQuote {
        PriceQuote(value: value, currency: currency, timestamp: timestamp, source: source, market: market)
    }
}

/// Where a venue says its answer stands in its own history. Either part may be missing: Binance's ticker has neither.
package struct VenueMark: Sendable, Hashable {
    /// The venue's own time of the price.
    package let time: Timestamp?
    /// The venue's number of the trade the price comes from.
    package let trade: Int64?

    /// - Parameters:
    ///   - time: The venue's own time of the price.
    ///   - trade: The venue's trade number.
    package init(time: Timestamp? = nil, trade: Int64? = nil) {
        self.time = time
        self.trade = trade
    }

    /// Whether the venue told nothing.
    package var isEmpty: Bool { time == nil && trade == nil }

    /// Whether this mark lies before `other` in the venue's own history.
    ///
    /// Time decides where both have one: a venue may start its trade numbers anew, its time goes on.
    func isBefore(_ other: VenueMark) -> Bool {
        if let mine = time, let theirs = other.time { return mine < theirs }
        if let mine = trade, let theirs = other.trade { return mine < theirs }
        return false
    }
}
