/// The fixed properties of a source.
package struct PriceSource: Sendable, Hashable {
    /// Its name in the configuration, in quotes and in the journal, in lower-case letters: `binance`.
    package let name: String
    /// The market it is read from: `BTC/USDT`.
    package let market: String
    /// ISO 4217 code of the currency of its prices.
    package let currency: String
    /// The limits that it publishes. All of them apply.
    package let limits: [RequestLimit]
    /// How long its servers cache a response; zero if they make each response anew.
    package let cacheTime: Duration
    /// What its responses contain besides the price.
    package let tells: Tells

    /// The data besides the price in a source's responses. Times and trade numbers show whether a price is old.
    package struct Tells: OptionSet, Sendable, Hashable {
        package let rawValue: Int

        package init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// The venue's own time.
        package static let time = Tells(rawValue: 1)
        /// The number of the trade.
        package static let trade = Tells(rawValue: 2)
        /// The value of one USDT in dollars, from the venue's own market.
        package static let tetherRate = Tells(rawValue: 4)
    }

    package init(
        name: String, market: String, currency: String = "USD", limits: [RequestLimit] = [],
        cacheTime: Duration = .zero, tells: Tells = []
    ) {
        self.name = name
        self.market = market
        self.currency = currency
        self.limits = limits
        self.cacheTime = cacheTime
        self.tells = tells
    }

    /// The limits for requests to it: its own, and one request per ``cacheTime`` if that is longer than a second.
    var allLimits: [RequestLimit] {
        // Slightly less: a tick that is due when the cache time ends must not be rejected because it is a moment early.
        cacheTime > .seconds(1) ? limits + [RequestLimit(1, per: cacheTime * 0.95)] : limits
    }
}

/// A price as a loader read it, not yet judged or dated.
package struct LoadedPrice: Sendable, Hashable {
    /// The exact price.
    package let value: Price
    /// The price's position in the venue's history.
    package let mark: VenueMark
    /// Dollars for one USDT, if the same response contained it.
    package let tetherRate: Price?
    /// The venue's clock at the response, if the response contained it.
    package var venueClock: Timestamp?

    package init(
        value: Price, mark: VenueMark = VenueMark(), tetherRate: Price? = nil, venueClock: Timestamp? = nil
    ) {
        self.value = value
        self.mark = mark
        self.tetherRate = tetherRate
        self.venueClock = venueClock
    }
}

/// Requests a price from one exchange, once. Has no policy: no retry, no fallback, no deadline of its own.
package protocol PriceLoader: Sendable {
    /// The source that it requests.
    var source: PriceSource { get }

    /// Requests the exchange's current price.
    ///
    /// Must end promptly when its task is cancelled, with ``PriceLoadingError/cancelled``: the caller cancels it to enforce the
    /// deadline for head and body.
    func load() async throws(PriceLoadingError) -> LoadedPrice
}

/// Why a source gave no price.
package enum PriceLoadingError: Error, Sendable, Hashable {
    /// The caller cancelled the request. This is not a failure of the source: it is not counted and starts no fallback.
    case cancelled
    /// No complete response within this time; `nil` if the budget ended before the source's own timeout.
    case timedOut(after: Duration?)
    /// No connection, or a broken one: name resolution, refusal, reset, TLS.
    case unreachable(String)
    /// The exchange responded that it is temporarily unavailable.
    case unavailable(String)
    /// Too many requests. `retryAfter` is the pause that the exchange requested, if it did.
    case rateLimited(String, retryAfter: Duration?)
    /// Refused until something changes: key, region, protocol.
    case refused(String)
    /// A response that is not a price: wrong shape, wrong pair, not positive, absurd.
    case invalidData(String)
    /// A response older than the one we hold, or the same response repeatedly while the other sources change.
    case staleData(String)
    /// A price that other sources contradict.
    case implausible(String)

    /// The kind of failure, as one word for the journal and for counting.
    package var kind: String {
        switch self {
        case .cancelled: "cancelled"
        case .timedOut: "timed-out"
        case .unreachable: "unreachable"
        case .unavailable: "unavailable"
        case .rateLimited: "rate-limited"
        case .refused: "refused"
        case .invalidData: "invalid-data"
        case .staleData: "stale-data"
        case .implausible: "implausible"
        }
    }

    /// What a failure means for the next request.
    package enum Category: Sendable, Hashable {
        /// The next request may succeed.
        case transient
        /// No requests until some time has passed.
        case rateLimited
        /// No requests until something changes.
        case refused
        /// The response is not a price, or not a correct one.
        case invalidData
        /// The response is an old one.
        case staleData
        /// Nothing is known about the source.
        case cancelled

        /// Whether the source is skipped until its cooldown ends, even if all others fail.
        package var isBinding: Bool { self == .rateLimited || self == .refused }
    }

    /// What the failure means for the next request.
    package var category: Category {
        switch self {
        case .cancelled: .cancelled
        case .timedOut, .unreachable, .unavailable: .transient
        case .rateLimited: .rateLimited
        case .refused: .refused
        case .invalidData, .implausible: .invalidData
        case .staleData: .staleData
        }
    }
}

extension PriceLoadingError: CustomStringConvertible {
    /// One line for people.
    package var description: String {
        switch self {
        case .cancelled: "cancelled"
        case .timedOut(let after?): "no answer within \(after.wholeMilliseconds) ms"
        case .timedOut(nil): "no answer in the time that was left"
        case .unreachable(let what): "not reached: \(what)"
        case .unavailable(let what): "not available: \(what)"
        case .rateLimited(let what, nil): "rate limited: \(what)"
        case .rateLimited(let what, let pause?): "rate limited for \(pause.components.seconds) s: \(what)"
        case .refused(let what): "refused: \(what)"
        case .invalidData(let what): "invalid answer: \(what)"
        case .staleData(let what): "stale answer: \(what)"
        case .implausible(let what): "implausible: \(what)"
        }
    }
}

extension Duration {
    /// The duration in milliseconds, rounded down.
    package var wholeMilliseconds: Int64 {
        // `components` would take three times as long.
        Int64(clamping: attoseconds / 1_000_000_000_000_000)
    }
}
