import Glibc

extension VenueShape {
    /// A request for candles.
    struct CandleRequest {
        let pair: Pair
        let seconds: Int64
        /// The range of their starts, Unix seconds.
        var range: Range<Int64>
        /// The maximum number of candles, from the oldest; `nil` for no limit.
        var limit: Int?
    }

    /// Parses a request for candles; `nil` for another request, or one that the exchange does not know.
    func candles(of request: Request, now: Int64) -> CandleRequest? {
        let path = request.uri.prefix { $0 != "?" }
        var query: [Substring: Substring] = [:]
        for part in request.uri.dropFirst(path.count + 1).split(separator: "&") {
            let name = part.prefix { $0 != "=" }
            query[name] = part.dropFirst(name.count + 1)
        }
        let known = Pair.known(to: venue)
        func pair(_ fits: (Pair) -> Bool) -> Pair? { known.first(where: fits) }
        switch venue {
        case .cryptocompare: return nil
        case .binance:
            guard path == "/api/v3/klines", let pair = pair({ query["symbol"] == "BTC\($0.quote)" }),
                let seconds = ["1m": Int64(60), "1h": 3600, "1d": 86_400][query["interval"] ?? ""]
            else { return nil }
            let start = query["startTime"].flatMap { Int64($0) } ?? 0
            let end = query["endTime"].flatMap { Int64($0) } ?? .max
            return CandleRequest(
                pair: pair, seconds: seconds, range: start / 1000..<max(start / 1000, min(end / 1000, now) + 1),
                limit: min(1000, query["limit"].flatMap { Int($0) } ?? 500))
        case .bitstamp:
            guard let pair = pair({ path == "/api/v2/ohlc/btc\($0.quote.lowercased())/" }),
                let seconds = query["step"].flatMap({ Int64($0) }), [60, 3600, 86_400].contains(seconds),
                let limit = query["limit"].flatMap({ Int($0) }), (1...1000).contains(limit)
            else { return nil }
            let start = query["start"].flatMap { Int64($0) } ?? now - Int64(limit) * seconds
            return CandleRequest(pair: pair, seconds: seconds, range: start..<max(start, now + 1), limit: limit)
        case .coinbase:
            guard let pair = pair({ path == "/products/BTC-\($0.quote)/candles" }),
                let seconds = query["granularity"].flatMap({ Int64($0) }), [60, 3600, 86_400].contains(seconds),
                let start = query["start"].flatMap({ Self.time($0) }),
                let end = query["end"].flatMap({ Self.time($0) }),
                end >= start
            else { return nil }
            return CandleRequest(pair: pair, seconds: seconds, range: start..<end + 1)
        case .kraken:
            guard path == "/0/public/OHLC", let pair = pair({ query["pair"] == $0.krakenName[...] }),
                let minutes = query["interval"].flatMap({ Int64($0) }), [1, 60, 1440].contains(minutes)
            else { return nil }
            let since = query["since"].flatMap { Int64($0) } ?? 0
            // The latest 720, whatever the request.
            let oldest = now - now % (minutes * 60) - 719 * minutes * 60
            return CandleRequest(
                pair: pair, seconds: minutes * 60, range: max(since + 1, oldest)..<max(since + 1, oldest, now + 1))
        }
    }

    func answer(_ candles: [PriceCourse.Candle], to request: CandleRequest) -> Answer {
        let rate = request.pair.rate
        func text(_ cents: Int64) -> String { PriceSeries.price(PriceSeries.text(cents), times: rate) }
        if let limit = request.limit, candles.count > limit {
            return answer(Array(candles.prefix(limit)), to: request)
        }
        let rows = candles.map { candle in
            let (open, high, low, close) = (text(candle.open), text(candle.high), text(candle.low), text(candle.close))
            return switch venue {
            case .binance, .cryptocompare:
                #"[\#(candle.start * 1000),"\#(open)","\#(high)","\#(low)","\#(close)","12.5",\#((candle.start + request.seconds) * 1000 - 1),"861000.0",1024,"6.2","430000.0","0"]"#
            case .bitstamp:
                #"{"timestamp":"\#(candle.start)","open":"\#(open)","high":"\#(high)","low":"\#(low)","close":"\#(close)","volume":"3.21"}"#
            case .coinbase: "[\(candle.start),\(low),\(high),\(open),\(close),4.56]"
            case .kraken:
                #"[\#(candle.start),"\#(open)","\#(high)","\#(low)","\#(close)","\#(close)","1.23456789",42]"#
            }
        }
        let body =
            switch venue {
            case .binance, .cryptocompare: "[\(rows.joined(separator: ","))]"
            case .bitstamp:
                #"{"data":{"ohlc":[\#(rows.joined(separator: ","))],"pair":"\#(request.pair.rawValue)"}}"#
            case .coinbase:
                rows.count > 300
                    ? #"{"message":"granularity too small for the requested time range. Count of aggregations requested exceeds 300"}"#
                    : "[\(rows.reversed().joined(separator: ","))]"
            case .kraken:
                #"{"error":[],"result":{"\#(request.pair.krakenKey)":[\#(rows.joined(separator: ","))],"last":\#(candles.dropLast().last?.start ?? 0)}}"#
            }
        return Answer(status: venue == .coinbase && rows.count > 300 ? 400 : 200, body: Array(body.utf8))
    }

    /// The Unix seconds of `2026-08-25T14:30:00Z`.
    private static func time(_ text: Substring) -> Int64? {
        let numbers = text.split { !$0.isNumber }.compactMap { Int32($0) }
        guard numbers.count == 6, text.last == "Z" else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
        return Int64(timegm(&parts))
    }
}
