import Glibc

extension VenueShape {
    /// A request for candles.
    struct CandleRequest {
        let pair: Pair
        let seconds: Int64
        /// The range of their starts, Unix seconds.
        let range: Range<Int64>
        /// The maximum number of candles, from the oldest.
        let limit: Int
        /// Whether the exchange refuses a request for more candles.
        var isRefused = false

        /// - Parameters:
        ///   - start: Unix seconds; `nil` for the newest candles.
        ///   - end: The last start, Unix seconds; `nil` for now.
        init(_ pair: Pair, each seconds: Int64, from start: Int64?, to end: Int64?, limit: Int, now: Int64) {
            (self.pair, self.seconds, self.limit) = (pair, seconds, limit)
            // However much is requested, no more is computed.
            let last = max(0, min(end ?? now, now))
            let length = Int64(limit) * seconds
            let first = max(0, min(start ?? last - last % seconds - length + seconds, last + 1))
            range = first..<min(last + 1, first + length + seconds)
        }
    }

    /// Parses a request for candles; `nil` for another request, or one that the exchange does not know.
    func candles(of request: Request, now: Int64) -> CandleRequest? {
        let (path, query) = (request.path, request.query)
        func number(_ name: String) -> Int64? { query[name].flatMap { Int64($0) } }
        let known = Pair.known(to: venue)
        func pair(_ fits: (Pair) -> Bool) -> Pair? { known.first(where: fits) }
        switch venue {
        case .cryptocompare: return nil
        case .binance:
            guard path == "/api/v3/klines", let pair = pair({ query["symbol"] == "BTC\($0.quote)" }),
                let seconds = ["1m": Int64(60), "1h": 3600, "1d": 86_400][query["interval"] ?? ""]
            else { return nil }
            let limit = max(1, min(1000, number("limit") ?? 500))
            return CandleRequest(
                pair, each: seconds, from: number("startTime").map { $0 / 1000 },
                to: number("endTime").map { $0 / 1000 }, limit: Int(limit), now: now)
        case .bitstamp:
            guard let pair = pair({ path == "/api/v2/ohlc/btc\($0.quote.lowercased())/" }),
                let seconds = number("step"), [60, 3600, 86_400].contains(seconds),
                let limit = number("limit"), (1...1000).contains(limit)
            else { return nil }
            return CandleRequest(
                pair, each: seconds, from: number("start"), to: number("end"), limit: Int(limit), now: now)
        case .coinbase:
            guard let pair = pair({ path == "/products/BTC-\($0.quote)/candles" }),
                let seconds = number("granularity"), [60, 3600, 86_400].contains(seconds)
            else { return nil }
            guard query["start"] != nil || query["end"] != nil else {
                return CandleRequest(pair, each: seconds, from: nil, to: nil, limit: 300, now: now)
            }
            guard let start = query["start"].flatMap(Self.time), let end = query["end"].flatMap(Self.time), start <= end
            else { return nil }
            var request = CandleRequest(pair, each: seconds, from: start, to: end, limit: 300, now: now)
            request.isRefused = (end - start) / seconds >= 300
            return request
        case .kraken:
            guard path == "/0/public/OHLC", let pair = pair({ $0.krakenNames.contains(query["pair"] ?? "") }),
                let minutes = query["interval"] == nil ? 1 : number("interval"), [1, 60, 1440].contains(minutes)
            else { return nil }
            let since = min(max(0, number("since") ?? 0), now)
            // The latest 720, whatever the request.
            let oldest = now - now % (minutes * 60) - 719 * minutes * 60
            return CandleRequest(
                pair, each: minutes * 60, from: max(since + 1, oldest), to: now, limit: 720, now: now)
        }
    }

    func answer(_ candles: [PriceCourse.Candle], to request: CandleRequest) -> Answer {
        let rate = request.pair.rate
        func text(_ cents: Int64) -> String { PriceSeries.price(PriceSeries.text(cents), times: rate) }
        let rows = candles.prefix(request.limit).map { candle in
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
                request.isRefused
                    ? #"{"message":"granularity too small for the requested time range. Count of aggregations requested exceeds 300"}"#
                    : "[\(rows.reversed().joined(separator: ","))]"
            case .kraken:
                #"{"error":[],"result":{"\#(request.pair.krakenKey)":[\#(rows.joined(separator: ","))],"last":\#(candles.dropLast().last?.start ?? 0)}}"#
            }
        return Answer(status: request.isRefused ? 400 : 200, body: Array(body.utf8))
    }

    /// The Unix seconds of `2026-08-25T14:30:00Z`, also with a fraction of a second.
    private static func time(_ text: String) -> Int64? {
        let numbers = text.split { !$0.isNumber }.compactMap { Int32($0) }
        guard (6...7).contains(numbers.count), text.last == "Z" else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
        return Int64(timegm(&parts))
    }
}
