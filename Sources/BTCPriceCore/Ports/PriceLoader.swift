public import FoundationEssentials

/// What is known of a source before it is asked.
public struct PriceSource: Sendable, Hashable {
    /// Its name in the configuration, in quotes and in the journal: `binance`.
    public let name: String
    /// The market it is read from: `BTC/USDT`.
    public let market: String
    /// ISO 4217 code of the currency its prices are given out in.
    public let currency: String

    /// - Parameters:
    ///   - name: Its name: lower-case letters.
    ///   - market: The market it is read from.
    ///   - currency: ISO 4217.
    public init(name: String, market: String, currency: String = "USD") {
        self.name = name
        self.market = market
        self.currency = currency
    }
}

/// A price as a loader read it, not yet judged or dated.
public struct LoadedPrice: Sendable, Hashable {
    /// The price, exact.
    public let value: Decimal
    /// What the venue said of when it was.
    public let mark: VenueMark

    /// - Parameters:
    ///   - value: The price, exact.
    ///   - mark: What the venue said of when it was.
    public init(value: Decimal, mark: VenueMark = VenueMark()) {
        self.value = value
        self.mark = mark
    }
}

/// Asks one exchange once. Holds no policy: no retry, no fallback, no deadline of its own.
public protocol PriceLoader: Sendable {
    /// What is asked.
    var source: PriceSource { get }

    /// Asks the exchange for its current price.
    ///
    /// Must end promptly when its task is cancelled, with ``PriceLoadingError/cancelled``: the deadline around head and
    /// body is the caller's cancellation.
    func load() async throws(PriceLoadingError) -> LoadedPrice
}

/// Why a source gave no price.
public enum PriceLoadingError: Error, Sendable, Hashable {
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
    /// An answer from before the one we hold.
    case staleData(String)

    /// The kind of failure, as one word for the journal and for counting.
    public var kind: String {
        switch self {
        case .cancelled: "cancelled"
        case .timedOut: "timed-out"
        case .unreachable: "unreachable"
        case .unavailable: "unavailable"
        case .rateLimited: "rate-limited"
        case .refused: "refused"
        case .invalidData: "invalid-data"
        case .staleData: "stale-data"
        }
    }
}

extension PriceLoadingError: CustomStringConvertible {
    /// One line a person understands.
    public var description: String {
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
        }
    }
}

extension Duration {
    /// The duration in milliseconds, rounded down.
    public var wholeMilliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }
}
