/// What is known of a source before it is asked.
package struct PriceSource: Sendable, Hashable {
    /// Its name in the configuration, in quotes and in the journal: `binance`.
    package let name: String
    /// The market it is read from: `BTC/USDT`.
    package let market: String
    /// ISO 4217 code of the currency its prices are given out in.
    package let currency: String
    /// How often it may be asked, as it publishes it: all of these at once.
    package let limits: [RequestLimit]
    /// How long its servers give the same answer again; zero where each one is made anew.
    package let cacheTime: Duration
    /// What its answers tell of when their price was.
    package let tells: Tells

    /// What an answer tells of when its price was: by that an old one is known.
    package struct Tells: OptionSet, Sendable, Hashable {
        /// The bits.
        package let rawValue: Int

        /// - Parameter rawValue: The bits.
        package init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// The venue's own time.
        package static let time = Tells(rawValue: 1)
        /// The trade's number.
        package static let trade = Tells(rawValue: 2)
        /// What a USDT is worth in dollars, on a market of the venue's own.
        package static let tetherRate = Tells(rawValue: 4)
    }

    /// - Parameters:
    ///   - name: Its name: lower-case letters.
    ///   - market: The market it is read from.
    ///   - currency: ISO 4217.
    ///   - limits: How often it may be asked, as it publishes it.
    ///   - cacheTime: How long its servers give the same answer again.
    ///   - tells: What its answers tell of when their price was.
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

    /// The limits it is asked within: its own, and of an answer that its servers keep for more than a second no second one
    /// before that time is over.
    var allLimits: [RequestLimit] {
        // A little less: a tick that is due when the time is over must not be turned away for being a moment early.
        cacheTime > .seconds(1) ? limits + [RequestLimit(1, per: cacheTime * 0.95)] : limits
    }
}

/// A price as a loader read it, not yet judged or dated.
package struct LoadedPrice: Sendable, Hashable {
    /// The price, exact.
    package let value: Price
    /// What the venue said of when it was.
    package let mark: VenueMark
    /// Dollars for one USDT, if the same response told it.
    package let tetherRate: Price?
    /// The venue's clock when it responded, if it told it.
    package var venueClock: Timestamp?

    /// - Parameters:
    ///   - value: The price, exact.
    ///   - mark: What the venue said of when it was.
    ///   - tetherRate: Dollars for one USDT, if the same response told it.
    ///   - venueClock: The venue's clock when it responded, if it told it.
    package init(
        value: Price, mark: VenueMark = VenueMark(), tetherRate: Price? = nil, venueClock: Timestamp? = nil
    ) {
        self.value = value
        self.mark = mark
        self.tetherRate = tetherRate
        self.venueClock = venueClock
    }
}

/// Asks one exchange once. Holds no policy: no retry, no fallback, no deadline of its own.
package protocol PriceLoader: Sendable {
    /// What is asked.
    var source: PriceSource { get }

    /// Asks the exchange for its current price.
    ///
    /// Must end promptly when its task is cancelled, with ``PriceLoadingError/cancelled``: the deadline around head and
    /// body is the caller's cancellation.
    func load() async throws(PriceLoadingError) -> LoadedPrice
}

/// Why a source gave no price.
package enum PriceLoadingError: Error, Sendable, Hashable {
    /// The caller gave up. Never a failure of the source: it counts nowhere and starts no fallback.
    case cancelled
    /// No whole answer within this time; `nil` where the budget was over before the source's own time.
    case timedOut(after: Duration?)
    /// No connection, or one that broke: name resolution, refusal, reset, TLS.
    case unreachable(String)
    /// The exchange answered that it can't at the moment.
    case unavailable(String)
    /// Too many requests. `retryAfter` is the pause asked for, where one was.
    case rateLimited(String, retryAfter: Duration?)
    /// Refused for good until something changes: key, region, protocol.
    case refused(String)
    /// An answer that is not a price: wrong shape, wrong pair, not positive, absurd.
    case invalidData(String)
    /// An answer from before the one we hold, or the same one again and again while the others move.
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

    /// What a failure means for the next question.
    package enum Category: Sendable, Hashable {
        /// It may work the next time.
        case transient
        /// Not before some time has passed.
        case rateLimited
        /// Not until something changes.
        case refused
        /// The answer is no price, or not a true one.
        case invalidData
        /// The answer is an old one.
        case staleData
        /// Nothing is known.
        case cancelled

        /// Whether the source is not asked until its rest is over, whatever else fails.
        package var isBinding: Bool { self == .rateLimited || self == .refused }
    }

    /// What it means for the next question.
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
    /// One line a person understands.
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
        // Not by way of `components`, which takes three times as long.
        Int64(clamping: attoseconds / 1_000_000_000_000_000)
    }
}
