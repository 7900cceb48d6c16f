import BTCPriceCore
import BTCPriceSocket

extension StreamSource {
    /// Bitstamp, the channels `live_trades_btcusd`, `live_trades_btceur`, `live_trades_btcgbp` (www.bitstamp.net/websocket/v2).
    ///
    /// There is no snapshot and no ticker: the first price is the next trade. The client sends heartbeats, and the server responds.
    /// Subscriptions to unknown markets are acknowledged, but no messages follow. Before it closes a connection, the server asks the
    /// client to open another one. A client's frame must have less than 512 bytes, so each channel has its own frame. The exact price
    /// is `price_str`.
    static let bitstamp = StreamSource(
        baseURL: "wss://ws.bitstamp.net",
        name: { market in "live_trades_" + market.pair.replaced("/", by: "").lowercased() }, target: { _ in "/" },
        subscriptions: { names in
            names.map { #"{"event":"bts:subscribe","data":{"channel":"\#($0)"}}"# }
        }, heartbeat: #"{"event":"bts:heartbeat"}"#,
        bounds: { _ in
            Bounds(silence: 20_000, heartbeat: 15_000)
        },
        priceMark: #""event":"trade""#,
        read: { (message, markets) throws(PriceLoadingError) in
            let market = markets[message["channel"]?.stringValue]
            switch message["event"]?.stringValue {
            case "trade":
                guard let market else { return .other }
                guard let trade = message["data"], let value = trade["price_str"]?.decimal,
                    let time = trade["microtimestamp"]?.wholeNumber.flatMap(VenueTime.milliseconds(fromEpoch:))
                else { throw .invalidData("a trade of another shape") }
                return .trade(StreamTrade(market: market, value: value, time: time))
            case "bts:error": return .refused(nil, oneLine(message["data"]?["message"]?.stringValue ?? "an error"))
            default: return .other
            }
        })
}
