import BTCPriceCore
import BTCPriceSocket

/// How an exchange's candles are requested and read.
package struct CandleSource: Sendable {
    /// The maximum number of candles in one response.
    let page: Int
    /// Whether the exchange serves only its newest candles.
    let hasNewestOnly: Bool
    /// The path and the query of a request, after the base URL.
    let path:
        @Sendable (_ market: ExchangeDescription.DescribedMarket, _ step: Candle.Step, _ range: Range<Int64>) -> String
    /// The rows of a body, one for each candle; `nil` if there are none.
    let rows: @Sendable (_ body: JSONValue, _ market: ExchangeDescription.DescribedMarket) -> [JSONValue]?
    /// The candle of a row; `nil` if it is not valid.
    let candle: @Sendable (_ row: JSONValue, _ market: Market) -> Candle?

    /// The candles of a response. A row that is not a valid candle costs that row.
    /// - Throws: The exchange's error, or ``PriceLoadingError/invalidData(_:)`` if there are no rows, or none of them is a candle.
    func candles(
        _ response: HTTPResponse, _ description: ExchangeDescription, _ market: ExchangeDescription.DescribedMarket
    ) throws(PriceLoadingError) -> LoadedCandles {
        guard let rows = rows(try description.body(of: response), market) else { throw response.unexpectedBody }
        let candles = rows.compactMap { candle($0, market.market) }
        guard !candles.isEmpty || rows.isEmpty else { throw .invalidData("no candle that is valid") }
        return LoadedCandles(candles, unused: rows.count - candles.count)
    }
}

/// Requests the candles of a market of an exchange.
struct ExchangeCandleLoader: CandleLoader {
    /// The longest body of a response, bytes. A thousand candles have less than 200,000.
    private static let longestBody = 256 * 1024

    let client: ExchangeClient
    let urls: BaseURLs
    let description: ExchangeDescription
    let described: ExchangeDescription.DescribedMarket
    let source: CandleSource

    var market: Market { described.market }
    var page: Int { source.page }
    var hasNewestOnly: Bool { source.hasNewestOnly }

    func load(_ step: Candle.Step, in range: Range<Int64>) async throws(PriceLoadingError) -> LoadedCandles {
        let used = urls.used
        let request = HTTPRequest.json(
            "\(urls.all[used])\(source.path(described, step, range))", longestBody: Self.longestBody)
        var loaded = try await client.get(request) { (response) throws(PriceLoadingError) in
            try urls.check(response, from: used)
            return try source.candles(response, description, described)
        }
        loaded.candles = Self.requested(loaded.candles, step, range)
        return loaded
    }

    /// The candles that were requested, oldest first. Some exchanges send more, such as the current candle, which is not complete.
    static func requested(_ candles: [Candle], _ step: Candle.Step, _ range: Range<Int64>) -> [Candle] {
        candles.filter { range.contains($0.start) && $0.start == step.start(of: $0.start) }
            .sorted { $0.start < $1.start }
    }
}

extension CandleSource {
    /// Binance, `GET /api/v3/klines` (developers.binance.com, REST API, Kline/Candlestick data): arrays of the opening time in
    /// milliseconds, open, high, low, close and others; weight 2.
    static let binance = CandleSource(page: 1000, hasNewestOnly: false) { market, step, range in
        let interval = step == .minute ? "1m" : step == .hour ? "1h" : "1d"
        return "/api/v3/klines?symbol=\(market.name)&interval=\(interval)"
            + "&startTime=\(range.lowerBound * 1000)&endTime=\(range.upperBound * 1000 - 1)&limit=1000"
    } rows: { body, _ in
        body.arrayValue
    } candle: { row, market in
        let fields = row.arrayValue ?? []
        guard fields.count > 4, let time = fields[0].integerValue else { return nil }
        return Candle(
            start: time / 1000, fields[1].decimal, fields[2].decimal, fields[3].decimal, fields[4].decimal, of: market)
    }

    /// Bitstamp, `GET /api/v2/ohlc/btcusd/` (www.bitstamp.net/api, OHLC data): objects whose values are strings.
    static let bitstamp = CandleSource(page: 1000, hasNewestOnly: false) { market, step, range in
        let count = (range.upperBound - range.lowerBound) / step.seconds
        return "/api/v2/ohlc/\(market.name)/?step=\(step.seconds)&limit=\(max(1, count))&start=\(range.lowerBound)"
    } rows: { body, market in
        let isOther = body["data"]?["pair"]?.stringValue.map { $0 != "\(market.base)/\(market.quote)" } ?? false
        return isOther ? nil : body["data"]?["ohlc"]?.arrayValue
    } candle: { row, market in
        guard let time = row["timestamp"]?.wholeNumber else { return nil }
        return Candle(
            start: time, row["open"]?.decimal, row["high"]?.decimal, row["low"]?.decimal, row["close"]?.decimal,
            of: market)
    }

    /// Coinbase Exchange, `GET /products/BTC-USD/candles` (docs.cdp.coinbase.com, Exchange API, Get product candles): arrays of the
    /// time in seconds, low, high, open, close and volume, newest first. At most 300. A span without a trade has no candle.
    static let coinbase = CandleSource(page: 300, hasNewestOnly: false) { market, step, range in
        let text = { (second: Int64) in
            let (date, time) = Timestamp(milliseconds: second * 1000).utc
            return "\(date)T\(time)Z"
        }
        return "/products/\(market.name)/candles?granularity=\(step.seconds)"
            + "&start=\(text(range.lowerBound))&end=\(text(range.upperBound - step.seconds))"
    } rows: { body, _ in
        body.arrayValue
    } candle: { row, market in
        let fields = row.arrayValue ?? []
        guard fields.count > 4, let time = fields[0].integerValue else { return nil }
        return Candle(
            start: time, fields[3].decimal, fields[2].decimal, fields[1].decimal, fields[4].decimal, of: market)
    }

    /// Kraken, `GET /0/public/OHLC` (docs.kraken.com, REST API, Get OHLC data): arrays of the time in seconds, open, high, low, close
    /// and others. The newest 720 of each interval; the last one is not complete.
    static let kraken = CandleSource(page: 720, hasNewestOnly: true) { market, step, range in
        "/0/public/OHLC?pair=\(market.name)&interval=\(step.seconds / 60)&since=\(range.lowerBound - 1)"
    } rows: { body, market in
        body["result"]?.members.first { market.keys.contains($0.name.stringValue ?? "") }?.value.arrayValue
    } candle: { row, market in
        let fields = row.arrayValue ?? []
        guard fields.count > 4, let time = fields[0].integerValue else { return nil }
        return Candle(
            start: time, fields[1].decimal, fields[2].decimal, fields[3].decimal, fields[4].decimal, of: market)
    }
}

extension Candle {
    /// An exchange's candle; `nil` if a price is missing, or the candle is not valid for the market.
    fileprivate init?(start: Int64, _ open: Price?, _ high: Price?, _ low: Price?, _ close: Price?, of market: Market) {
        guard let open, let high, let low, let close else { return nil }
        self.init(
            checkedStart: start, open: open, high: high, low: low, close: close, origin: market.venue,
            in: market.currency)
    }
}
