import BTCPriceCore
import Varlink

/// A message of an exchange's stream.
enum StreamMessage: Sendable, Equatable {
    /// A trade, or a ticker with the last one.
    case trade(StreamTrade)
    /// The number of a market's newest trade.
    case lastTrade(Market, Int64)
    /// The subscription of some markets is acknowledged.
    case acknowledged([Market])
    /// The subscription of a market is refused, or that of all; and why.
    case refused(Market?, String)
    /// The server is about to close the connection.
    case leaving
    /// It tells nothing of a price, but that the server is there.
    case other
}

/// A price in a message of a stream.
struct StreamTrade: Sendable, Equatable {
    let market: Market
    let value: Price
    /// When it was traded, by the exchange's clock, milliseconds since 1970.
    let time: Int64
    /// The number of the trade; `nil` if the exchange has none that go up.
    var number: Int64?
    /// When the message was sent, by the exchange's clock, milliseconds since 1970; of most exchanges ``time``.
    var sent: Int64
    /// The position that the response to a request has, too.
    var position = FeedPosition()

    /// Whether it is older than another trade of the market. Times are compared first: an exchange may start its numbers again.
    func isBefore(_ other: StreamTrade) -> Bool {
        if time != other.time { return time < other.time }
        if let number, let theirs = other.number { return number < theirs }
        return false
    }
}

/// The stream of an exchange: what is requested and sent, what the messages mean, and how long it may be silent.
struct StreamSource: Sendable {
    /// How long a stream may be silent, milliseconds. The exchanges' pages name few of these.
    struct Bounds: Sendable {
        /// From the opening to the first price of any market.
        var firstData: Int64 = 10_000
        /// Without a message: then the connection is dead.
        var silence: Int64
        /// For so long after a price any message proves that it is still the newest one; `nil` if none does.
        var provenByTraffic: Int64?
        /// A first price is no current one if it is older by its own time.
        var oldestFirst: Int64
        /// How often ``heartbeat`` is sent, and how soon the server has to respond; `nil` for never.
        var heartbeat: (every: Int64, within: Int64)?
        /// The age at which a connection is replaced; `nil` if the exchange closes none because of its age.
        var retirement: ClosedRange<Int64>?
    }

    /// The exchange's own address: scheme and host.
    let baseURL: String
    /// The one to use if the first one refuses this region.
    var secondURL: String?
    /// The name of a market in the messages.
    let name: @Sendable (Market) -> String
    /// The target of the request, for the markets of these names.
    let target: @Sendable ([String]) -> String
    /// What is sent when the connection is open.
    var subscriptions: @Sendable ([String]) -> [String] = { _ in [] }
    /// Whether the server acknowledges subscriptions.
    var acknowledges = true
    /// Whether requests and streams share the exchange's limits, so that a stream that is refused for them ends the requests, too.
    var sharesLimits = false
    /// What a client sends for the server to respond to; `nil` for nothing.
    var heartbeat: String?
    /// For these markets.
    let bounds: @Sendable ([Market]) -> Bounds
    /// The meaning of a message to one who has subscribed to these markets.
    let read: @Sendable (JSONValue, [NamedMarket]) throws(PriceLoadingError) -> StreamMessage

    /// A market and its name in the messages.
    struct NamedMarket: Sendable {
        let market: Market
        let name: String
    }

    /// For ``read``: a stream may have thousands of messages a second, so the names are made once.
    func named(_ markets: [Market]) -> [NamedMarket] { markets.map { NamedMarket(market: $0, name: name($0)) } }
}

extension [StreamSource.NamedMarket] {
    /// The market of this name; `nil` if nobody has subscribed to it.
    subscript(name: String?) -> Market? { first { $0.name == name }?.market }
}
