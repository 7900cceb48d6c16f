import BTCPriceCore
import BTCPriceSocket

extension StreamSource {
    /// Kraken, the channel `ticker` of version 2 (docs.kraken.com, WebSocket v2, Ticker).
    ///
    /// The first ticker comes at once, the next ones with trades. A heartbeat comes every second; minutes without a trade are usual. After
    /// 5 s without a message, the documentation recommends a new connection. The price is `last`, a JSON number, and not `vwap`. While the
    /// engine does not match, the last price stays valid.
    static let kraken = StreamSource(
        baseURL: "wss://ws.kraken.com", name: \.pair, target: { _ in "/v2" },
        subscriptions: { names in
            let symbols = names.map { "\"\($0)\"" }.joined(separator: ",")
            let parameters = #"{"channel":"ticker","symbol":[\#(symbols)],"event_trigger":"trades"}"#
            return [#"{"method":"subscribe","params":\#(parameters)}"#]
        },
        bounds: { _ in Bounds(silence: 5000) },
        priceMark: #""channel":"ticker""#,
        read: { (message, markets) throws(PriceLoadingError) in
            switch message["channel"]?.stringValue {
            case "ticker":
                guard let ticker = message["data"]?.arrayValue?.last else {
                    throw .invalidData("a ticker of another shape")
                }
                guard let market = markets[ticker["symbol"]?.stringValue] else { return .other }
                guard let value = ticker["last"]?.decimal else { throw .invalidData("a ticker of another shape") }
                // Without a time it is dated by its arrival.
                let time = ticker["timestamp"]?.stringValue.flatMap(VenueTime.milliseconds(fromISO8601:))
                return .trade(StreamTrade(market: market, value: value, time: time))
            default: break
            }
            guard message["method"]?.isString("subscribe") == true else { return .other }
            if message["success"]?.boolValue == true { return .other }
            let reason = oneLine(message["error"]?.stringValue ?? "the subscription failed")
            return .refused(markets[message["symbol"]?.stringValue], reason)
        })
}
