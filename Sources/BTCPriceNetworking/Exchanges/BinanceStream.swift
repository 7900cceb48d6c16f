import BTCPriceCore
import Varlink

extension StreamSource {
    /// Binance spot, `/stream?streams=btcusdt@aggTrade/btceur@aggTrade` (developers.binance.com, WebSocket Streams).
    ///
    /// The request's target names the streams, so the client sends no subscription: it may send five messages a second, pongs included.
    /// There is no snapshot and no heartbeat: only a trade proves a price. The server closes a connection after 24 hours. The price in
    /// the response to a request is also that of the last trade. Names in upper case are accepted, but no messages follow.
    static let binance = StreamSource(
        baseURL: "wss://data-stream.binance.vision", secondURL: "wss://stream.binance.com:443",
        name: { market in market.pair.replacing("/", with: "").lowercased() + "@aggTrade" },
        target: { names in "/stream?streams=" + names.joined(separator: "/") },
        acknowledges: false,
        bounds: { markets in
            // The dollar's market trades several times a second. The others may be quiet for a long time.
            let isBusy = markets.contains { $0.currency == .usd }
            return Bounds(
                firstData: isBusy ? 10_000 : 120_000, silence: isBusy ? 15_000 : 120_000,
                oldestFirst: 5000, retirement: 20 * 3_600_000...23 * 3_600_000)
        },
        priceMark: "aggTrade",
        read: { (message, markets) throws(PriceLoadingError) in
            if let error = message["error"] {
                return .refused(nil, oneLine(error["msg"]?.stringValue ?? "an error"))
            }
            // `serverShutdown` comes in a stream of its own, without a subscription. The documentation shows it without a stream.
            let event = message["data"] ?? message
            if event["e"]?.isString("serverShutdown") == true { return .leaving }
            guard event["e"]?.isString("aggTrade") == true, let stream = message["stream"]?.stringValue,
                let market = markets[stream]
            else { return .other }
            guard let symbol = event["s"]?.stringValue, stream.hasPrefix(symbol.lowercased() + "@") else {
                throw .invalidData("the price of another market")
            }
            guard let value = event["p"]?.decimal, let number = event["a"]?.integerValue,
                let time = event["T"]?.integerValue.flatMap(VenueTime.milliseconds(fromEpoch:)),
                let sent = event["E"]?.integerValue.flatMap(VenueTime.milliseconds(fromEpoch:))
            else { throw .invalidData("a trade of another shape") }
            return .trade(StreamTrade(market: market, value: value, time: time, number: number, sent: sent))
        })
}
