import BTCPriceCore
import BTCPriceSocket

/// A message of an exchange's stream.
enum StreamMessage: Sendable, Equatable {
    /// A trade, or a ticker with the last one.
    case trade(StreamTrade)
    /// The subscription of a market is refused, or that of all markets if it is `nil`; with the reason.
    case refused(Market?, String)
    /// A message without information about a price. It shows that the server is alive.
    case other
}

/// A price in a message of a stream.
struct StreamTrade: Sendable, Equatable {
    let market: Market
    let value: Price
    /// When it was traded, by the exchange's clock, milliseconds since 1970; `nil` if the message does not say.
    let time: Int64?
    /// The number of the trade; `nil` if the exchange has no increasing numbers.
    var number: Int64?
    /// The position, but only if the exchange's HTTP responses use the same numbers or times.
    var position = FeedPosition()

    /// Whether it is older than another trade of the market. Times are compared first: an exchange may restart its numbers.
    func isBefore(_ other: StreamTrade) -> Bool {
        if let time, let theirs = other.time, time != theirs { return time < theirs }
        if let number, let theirs = other.number { return number < theirs }
        return false
    }
}

/// The stream of an exchange: what is requested and sent, what the messages mean, and how long it may be silent.
struct StreamSource: Sendable {
    /// The time limits of a stream, milliseconds. The exchanges document few of them.
    struct Bounds: Sendable {
        /// The longest time without a message. After it, the connection counts as dead.
        var silence: Int64
        /// How often ``heartbeat`` is sent; `nil` for never.
        var heartbeat: Int64?
    }

    /// The exchange's own address: scheme and host.
    let baseURL: String
    /// The address to use if the first one refuses this region.
    var secondURL: String?
    /// The name of a market in the messages.
    let name: @Sendable (Market) -> String
    /// The target of the request, for the markets of these names.
    let target: @Sendable ([String]) -> String
    /// What is sent when the connection is open.
    var subscriptions: @Sendable ([String]) -> [String] = { _ in [] }
    /// The heartbeat that a client sends and the server responds to; `nil` for none.
    var heartbeat: String?
    /// The time limits for these markets.
    let bounds: @Sendable ([Market]) -> Bounds
    /// A text in every message with a price, and in no other one.
    let priceMark: String
    /// Reads a message, given the subscribed markets.
    let read: @Sendable (JSONValue, [NamedMarket]) throws(PriceLoadingError) -> StreamMessage

    struct NamedMarket: Sendable {
        let market: Market
        let name: String
        /// The name as it is searched in a message.
        let bytes: [UInt8]

        init(_ market: Market, _ name: String) {
            (self.market, self.name, bytes) = (market, name, Array(name.utf8))
        }
    }

    /// The markets with their names, for ``read``. A stream may have thousands of messages a second, so the names are made once.
    func named(_ markets: [Market]) -> [NamedMarket] { markets.map { NamedMarket($0, name($0)) } }
}

extension [StreamSource.NamedMarket] {
    /// The market of this name; `nil` if nobody has subscribed to it.
    subscript(name: String?) -> Market? { first { $0.name == name }?.market }
}
