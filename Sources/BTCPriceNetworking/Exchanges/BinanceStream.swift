import BTCPriceCore
import Varlink

extension StreamSource {
    /// Binance spot, `/stream?streams=btcusdt@aggTrade/btceur@aggTrade` (developers.binance.com, WebSocket Streams).
    ///
    /// The target is the subscription, so that nothing is sent: pongs and texts together may be five a second. It has no snapshot and no
    /// heartbeat: only a trade proves a price. A connection is closed after 24 hours. The last price of a request is that of the last
    /// trade, too. Names in upper case are accepted, and nothing comes.
    static let binance = StreamSource(
        baseURL: "wss://data-stream.binance.vision", secondURL: "wss://stream.binance.com:443",
        name: { market in market.pair.replacing("/", with: "").lowercased() + "@aggTrade" },
        target: { names in "/stream?streams=" + names.joined(separator: "/") },
        acknowledges: false,
        bounds: { markets in
            // The dollar's market trades several times a second, the others may be quiet for long.
            let isBusy = markets.contains { $0.currency == .usd }
            return Bounds(
                firstData: isBusy ? 10_000 : 120_000, silence: isBusy ? 15_000 : 120_000,
                oldestFirst: 5000, retirement: 20 * 3_600_000...23 * 3_600_000)
        },
        read: { (message, markets) throws(PriceLoadingError) in
            if let error = message["error"] {
                return .refused(nil, oneLine(error["msg"]?.stringValue ?? "an error"))
            }
            // In a stream of its own, which nobody has subscribed to; the page shows it without one.
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
