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

/// Where a peer got its price.
package struct PriceOrigin: Sendable, Hashable {
    /// The peer's source: `binance`.
    package let source: String
    /// The pair that the peer's source was read from: `BTC/USDT`; `BTC/USD` if the peer has converted it.
    package let pair: String
    /// Identifies the run of the peer's daemon: two sockets of one daemon are one peer.
    package let instance: String
    /// How well the peer's own vote confirmed it; `nil` if it did not say.
    package var confirmation: Confirmation?
    /// How certain the peer's price was; `nil` if it did not say.
    package var uncertainty: Uncertainty?

    package init(
        source: String, pair: String, instance: String, confirmation: Confirmation? = nil,
        uncertainty: Uncertainty? = nil
    ) {
        self.source = source
        self.pair = pair
        self.instance = instance
        self.confirmation = confirmation
        self.uncertainty = uncertainty
    }
}

/// How a price reaches this machine.
package enum PriceWay: String, Sendable, Hashable, CaseIterable {
    /// In the response to a request.
    case poll
    /// In a message of a stream.
    case stream
    /// From another daemon.
    case peer
}

/// The conversion of a USDT price to dollars.
package struct Conversion: Sendable, Hashable {
    /// The price in USDT, as it was read.
    package var value: Price
    package var rate: Price
    /// The sources that the rate was measured from.
    package var sources: [String]
    package var measuredBoottime: BootTime

    package init(value: Price, rate: Price, sources: [String], measuredBoottime: BootTime) {
        self.value = value
        self.rate = rate
        self.sources = sources
        self.measuredBoottime = measuredBoottime
    }
}

/// What a derived price is made of: the price of a bitcoin in another currency, and a reference rate.
package struct Derivation: Sendable, Hashable {
    /// The price in the other currency.
    package var value: Price
    /// The other currency, ISO 4217.
    package var currency: String
    /// How much of the price's currency buys one of the other one.
    package var rate: Price
    /// Who published the rate: `ecb`.
    package var rateSource: String
    /// The day of the rate: `2026-11-20`.
    package var rateDate: String

    package init(value: Price, currency: String, rate: Price, rateSource: String, rateDate: String) {
        self.value = value
        self.currency = currency
        self.rate = rate
        self.rateSource = rateSource
        self.rateDate = rateDate
    }
}

/// When the price of a currency is derived from another currency's.
package enum DerivationPolicy: String, Sendable, Hashable, CaseIterable {
    /// Not at all.
    case never
    /// While its sources have no price.
    case fallback
    /// Always; it has no sources.
    case always
}

/// Why there is no derived price, or no reference rate, in one line.
package struct DerivationError: Error, Sendable, Hashable, CustomStringConvertible {
    package let description: String
}

/// The value of one USDT in dollars, measured from the markets.
package struct PegRate: Sendable, Hashable {
    /// Dollars for one USDT, with six digits after the point.
    package var value: Price
    /// The sources whose prices it was measured from.
    package var sources: [String]
    /// When the newest of those prices was observed.
    package var measuredBoottime: BootTime
    /// Whether it is too far from one to use USDT prices as dollar prices.
    package var isOffPeg: Bool

    package init(value: Price, sources: [String], measuredBoottime: BootTime, isOffPeg: Bool) {
        self.value = value
        self.sources = sources
        self.measuredBoottime = measuredBoottime
        self.isOffPeg = isOffPeg
    }

    /// How far it is from one dollar, in millionths of it.
    package var distance: Int64 { Int64(min(abs(value.double - 1) * 1e6, 1e9)) }

    /// `USDT is at 0.9552 USD (by bitstamp, coinbase)`
    package var text: String { "USDT is at \(value) USD (by \(sources.joined(separator: ", ")))" }
}
