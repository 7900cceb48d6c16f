import BTCPriceCore
import BTCPriceSocket

extension StreamSource {
    /// Binance spot, `/stream?streams=btcusdt@aggTrade/btceur@aggTrade` (developers.binance.com, WebSocket Streams).
    ///
    /// The request's target names the streams, so the client sends no subscription: it may send five messages a second, pongs included.
    /// There is no snapshot and no heartbeat. The server closes a connection after 24 hours. The price in the response to a request is
    /// also that of the last trade. Names in upper case are accepted, but no messages follow.
    static let binance = StreamSource(
        baseURL: "wss://data-stream.binance.vision", secondURL: "wss://stream.binance.com:443",
        name: { market in market.pair.replaced("/", by: "").lowercased() + "@aggTrade" },
        target: { names in "/stream?streams=" + names.joined(separator: "/") },
        bounds: { markets in
            // The dollar's market trades several times a second. The others may be quiet for a long time.
            let isBusy = markets.contains { $0.currency == .usd }
            return Bounds(silence: isBusy ? 15_000 : 120_000)
        },
        priceMark: "aggTrade",
        read: { (message, markets) throws(PriceLoadingError) in
            if let error = message["error"] {
                return .refused(nil, oneLine(error["msg"]?.stringValue ?? "an error"))
            }
            guard let event = message["data"], event["e"]?.isString("aggTrade") == true,
                let stream = message["stream"]?.stringValue,
                let market = markets[stream]
            else { return .other }
            guard let symbol = event["s"]?.stringValue, stream.hasPrefix(symbol.lowercased() + "@") else {
                throw .invalidData("the price of another market")
            }
            guard let value = event["p"]?.decimal, let number = event["a"]?.integerValue,
                let time = event["T"]?.integerValue.flatMap(VenueTime.milliseconds(fromEpoch:))
            else { throw .invalidData("a trade of another shape") }
            return .trade(StreamTrade(market: market, value: value, time: time, number: number))
        })
}
