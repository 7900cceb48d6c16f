import BTCPriceCore
import Testing

@testable import BTCPriceNetworking

@Suite struct CandleTests {
    private func read(_ name: String, _ body: String, status: Int = 200) throws -> [Candle] {
        try load(name, body, status: status).candles
    }

    private func load(_ name: String, _ body: String, status: Int = 200) throws -> LoadedCandles {
        let exchange = try #require(Exchange.all.first { $0.name == name })
        let market = try #require(exchange.description.markets.first { $0.market.currency == .usd })
        let source = try #require(exchange.candles)
        return try source.candles(
            HTTPResponse(status: status, body: Array(body.utf8)), exchange.description, market)
    }

    private func candle(_ open: String, _ high: String, _ low: String, _ close: String, origin: String) -> Candle {
        let price = { (text: String) in Price(text) ?? 0 }
        return Candle(
            start: 1_787_659_200, open: price(open), high: price(high), low: price(low), close: price(close),
            origin: origin)
    }

    /// As the exchanges' pages show them; the order of the prices differs.
    private static let bodies: [(String, String)] = [
        (
            "binance",
            #"[[1787659200000,"68901.2","68950","68890.1","68900.5","12.5",1787659259999,"861000.0",1024,"6.2","430000.0","0"]]"#
        ),
        (
            "bitstamp",
            #"{"data":{"ohlc":[{"close":"68900.5","high":"68950","low":"68890.1","open":"68901.2","timestamp":"1787659200","volume":"3.2"}],"pair":"BTC/USD"}}"#
        ),
        ("coinbase", "[[1787659200,68890.1,68950,68901.2,68900.5,4.56]]"),
        (
            "kraken",
            #"{"error":[],"result":{"XXBTZUSD":[[1787659200,"68901.2","68950","68890.1","68900.5","68900.9","1.2",42]],"last":1787659140}}"#
        ),
    ]

    @Test(arguments: 0..<4) func `each exchange's candles are read`(index: Int) throws {
        let (source, body) = Self.bodies[index]
        #expect(try read(source, body) == [candle("68901.2", "68950", "68890.1", "68900.5", origin: source)])
        // A high below the close can't be.
        for wrong in [
            body.replacing("68950", with: "68899"), body.replacing("68890.1", with: "68900.9"),
            body.replacing("68890.1", with: "0"),
        ] {
            #expect(throws: PriceLoadingError.invalidData("no candle that is valid")) { try read(source, wrong) }
        }
        for wrong in ["{}", "[]x", "", "null", #"{"data":{}}"#, #"{"error":[],"result":{}}"#] {
            #expect(throws: PriceLoadingError.self) { try read(source, wrong) }
        }
        #expect(throws: PriceLoadingError.rateLimited("HTTP 429", retryAfter: nil)) {
            try read(source, "", status: 429)
        }
    }

    @Test(arguments: 0..<4) func `a number that can't be a price or a time is refused`(index: Int) throws {
        let (source, body) = Self.bodies[index]
        let times = ["1787659200000", "1787659200"].first { body.contains($0) } ?? ""
        let absurd = [
            "0", "-1", "1e-9", "0.999", "100000001", "1e10", "1e11", "1e28", "1e30", "1e128", "9223372036854775807",
            "18446744073709551616", "NaN", "null", "[]", "{}", String(repeating: "9", count: 100_000),
        ]
        for value in absurd {
            for price in ["68901.2", "68950", "68890.1", "68900.5"] {
                // As a string and as a number, whichever the exchange sends.
                for written in [value, "\"\(value)\""] {
                    let wrong = body.replacing("\"\(price)\"", with: written).replacing(price, with: value)
                    guard wrong != body else { continue }
                    #expect(throws: PriceLoadingError.self, "\(wrong.prefix(300))") { try read(source, wrong) }
                }
            }
        }
        for value in ["-1", "-9223372036854775808", "9223372036854775807", "1e30", "null", "\"\"", "[]"] {
            let wrong = body.replacing("\"\(times)\"", with: value).replacing(times, with: value)
            let candles = (try? read(source, wrong)) ?? []
            #expect(ExchangeCandleLoader.requested(candles, .minute, 60..<2_000_000_000).isEmpty, "\(value)")
        }
    }

    @Test func `a row that is not a candle costs that row`() throws {
        let rows = (0..<3).map { "[\(1_787_659_200 + $0 * 60),68890.1,68950,68901.2,68900.5,4.56]" }
        let bad = #"[1787659380,68890.1,"x",68901.2,68900.5,4.56]"#
        let loaded = try load("coinbase", "[\(rows[0]),\(bad),\(rows[1]),null,\(rows[2])]")
        #expect((loaded.candles.count, loaded.unused) == (3, 2))
    }

    @Test func `Kraken's errors have status 200, and an empty list of candles is an error`() throws {
        #expect(throws: PriceLoadingError.rateLimited("EGeneral:Too many requests", retryAfter: nil)) {
            try read("kraken", #"{"error":["EGeneral:Too many requests"]}"#)
        }
        #expect(try read("coinbase", "[]").isEmpty)
        #expect(try read("kraken", #"{"error":[],"result":{"XXBTZUSD":[],"last":0}}"#).isEmpty)
    }

    @Test func `only requested candles are accepted, from the oldest on, without the present one`() {
        let all = [300, 60, 120, 130, 180, 240].map { Candle(start: $0, 68_900) }
        #expect(ExchangeCandleLoader.requested(all, .minute, 120..<240).map(\.start) == [120, 180])
    }

    @Test func `the requests are those of the exchanges' pages`() throws {
        let range: Range<Int64> = 1_787_659_200..<1_787_659_200 + 300 * 60
        func path(_ name: String, _ step: Candle.Step) throws -> String {
            let exchange = try #require(Exchange.all.first { $0.name == name })
            return try #require(exchange.candles).path(
                try #require(exchange.description.markets.first { $0.market.currency == .usd }), step, range)
        }
        #expect(
            try path("binance", .minute)
                == "/api/v3/klines?symbol=BTCUSDT&interval=1m&startTime=1787659200000&endTime=1787677199999&limit=1000")
        #expect(try path("bitstamp", .minute) == "/api/v2/ohlc/btcusd/?step=60&limit=300&start=1787659200")
        #expect(
            try path("coinbase", .minute)
                == "/products/BTC-USD/candles?granularity=60&start=2026-08-25T12:00:00Z&end=2026-08-25T16:59:00Z")
        #expect(try path("kraken", .day) == "/0/public/OHLC?pair=XBTUSD&interval=1440&since=1787659199")
    }

    @Test func `there are candles for each market except those in USDT`() {
        let usd = Exchange.all.filter { $0.candles != nil && $0.markets[.usd]?.isInTether == false }.map(\.name)
        #expect(usd == ["coinbase", "bitstamp", "kraken"])
    }
}
