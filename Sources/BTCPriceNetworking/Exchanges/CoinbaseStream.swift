import BTCPriceCore
import BTCPriceSocket

extension StreamSource {
    /// Coinbase Exchange, the channels `ticker` and `heartbeat` (docs.cdp.coinbase.com, Exchange WebSocket, Channels).
    ///
    /// The first ticker is the last trade, however old. A heartbeat comes every second. Messages may be dropped, and new types of messages
    /// may come at any time. The acknowledgement lists the subscribed products. An invalid product does not prevent the subscription to the
    /// others.
    static let coinbase = StreamSource(
        baseURL: "wss://ws-feed.exchange.coinbase.com",
        name: { market in market.pair.replaced("/", by: "-") }, target: { _ in "/" },
        subscriptions: { names in
            let products = names.map { "\"\($0)\"" }.joined(separator: ",")
            return [#"{"type":"subscribe","product_ids":[\#(products)],"channels":["ticker","heartbeat"]}"#]
        },
        bounds: { _ in Bounds(silence: 5000) },
        priceMark: #""type":"ticker""#,
        read: { (message, markets) throws(PriceLoadingError) in
            let market = markets[message["product_id"]?.stringValue]
            switch message["type"]?.stringValue {
            case "ticker":
                guard let market else { return .other }
                guard let value = message["price"]?.decimal, let number = message["trade_id"]?.integerValue,
                    let time = message["time"]?.stringValue.flatMap(VenueTime.milliseconds(fromISO8601:))
                else { throw .invalidData("a ticker of another shape") }
                return .trade(
                    StreamTrade(
                        market: market, value: value, time: time, number: number,
                        position: FeedPosition(time: Timestamp(milliseconds: time), sequence: number)))
            case "subscriptions":
                let channels = message["channels"]?.arrayValue ?? []
                let tickers = channels.first { $0["name"]?.isString("ticker") == true }
                let names = tickers?["product_ids"]?.arrayValue?.compactMap(\.stringValue) ?? []
                // A market that is missing has no stream. An error message has reported it.
                let isKnown = markets.contains { names.contains($0.name) }
                return isKnown ? .other : .refused(nil, "none of the products was subscribed")
            case "error":
                let text = message["reason"]?.stringValue ?? message["message"]?.stringValue ?? "an error"
                return .refused(markets.first { text.hasPrefix($0.name) }?.market, oneLine(text))
            default: return .other
            }
        })
}
