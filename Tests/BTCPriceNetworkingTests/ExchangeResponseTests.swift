import BTCPriceCore
import BTCPriceSocket
import FoundationEssentials
import TestSupport
import Testing

@testable import BTCPriceNetworking

/// A status and a body, with the expected result of the loader: a price, or a kind of failure.
struct Case: Sendable, CustomTestStringConvertible {
    let exchange: String
    var name: String
    let status: Int
    var body: [UInt8]
    let expected: String
    var retryAfter: String?

    var testDescription: String { "\(exchange) \(status) \(name)" }

    /// The exchange's clock in all cases: 1,785,050,000 s since 1970.
    static let date = "Sun, 26 Jul 2026 07:13:20 GMT"

    init(_ exchange: String, _ status: Int, _ body: String, _ expected: String, retryAfter: String? = nil) {
        (self.exchange, self.status, self.body, self.expected) = (exchange, status, Array(body.utf8), expected)
        self.retryAfter = retryAfter
        name = String(body.prefix(60))
    }

    /// The loader's result: `68901.23` with its position, or the error's kind, with its seconds if it has them.
    var outcome: String {
        let answer = HTTPResponse(
            status: status, retryAfter: retryAfter, date: Self.date, encoding: nil, body: body)
        do throws(PriceLoadingError) {
            let dollars = Exchange.all.first { $0.name == exchange }?.markets[.usd]
            let found = try prices(answer, exchange == "kraken" ? Market.kraken : [dollars ?? .binance])
            let loaded = found[0]
            var book = ObservationBook(currency: .usd)
            let then = ObservationTime(wall: Timestamp(milliseconds: 0), boottime: 0)
            try book.record([loaded], of: loaded.market, at: then)
            let time = loaded.position.time.map { " at \($0.milliseconds)" } ?? ""
            let trade = loaded.position.sequence.map { " trade \($0)" } ?? ""
            return "\(loaded.value)\(time)\(trade)"
        } catch {
            guard let pause = error.retryAfter else { return error.kind }
            return "\(error.kind) for \(pause.components.seconds) s"
        }
    }
}

/// Every form of response, in small bodies written for the test.
@Suite struct ExchangeResponseTests {
    static let coinbase =
        #"{"ask":"1","bid":"1","price":"63212.97","time":"2026-06-19T16:43:33.016274911Z","trade_id":7}"#
    static let cryptocompare =
        #"{"RAW":{"FROMSYMBOL":"BTC","TOSYMBOL":"USD","PRICE":75500.99,"LASTUPDATE":1737685911}}"#
    static let bitstamp = #"{"timestamp":"1686600672","last":"25846","volume":"1903.9","pair":"BTC/USD"}"#
    static let kraken = #"{"error":[],"result":{"XXBTZUSD":{"a":["1"],"c":["61027.50000","0.1"],"o":"62650.3"}}}"#
    static func banned(_ until: String) -> String {
        #"{"code":-1003,"msg":"Way too much request weight used; IP banned until \#(until). Please use …"}"#
    }
    static let html = "<html><body>502 Bad Gateway</body></html>"

    static let cases: [Case] = [
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":"66836.69000000"}"#, "66836.69"),
        Case("binance", 200, " {\n \"price\" : \"60740.00000000\", \"symbol\" : \"BTCUSDT\" }\n", "60740"),
        // A number instead of a string, and an exponent: both occur in exchanges' responses.
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":75500.99}"#, "75500.99"),
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":"6.683669E4"}"#, "66836.69"),
        // Too many digits are rounded.
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":3.00000000000000000000000000000000000001}"#, "3"),
        Case("binance", 200, #"{"symbol":"LTCBTC","price":"4.00000200"}"#, "invalid-data"),
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":"0.00000000"}"#, "invalid-data"),
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":"-5"}"#, "invalid-data"),
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":"850867136053.72"}"#, "invalid-data"),
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":"NaN"}"#, "invalid-data"),
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":"12abc"}"#, "invalid-data"),
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":"68,901.23"}"#, "invalid-data"),
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":""}"#, "invalid-data"),
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":null}"#, "invalid-data"),
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":1e400}"#, "invalid-data"),
        Case("binance", 200, #"{"symbol":"BTCUSDT"}"#, "invalid-data"),
        Case("binance", 200, #"{"code":-1121,"msg":"Invalid symbol."}"#, "refused"),
        Case("binance", 200, #"[{"symbol":"BTCUSDT","price":"1"}]"#, "invalid-data"),
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":"668"#, "invalid-data"),
        Case("binance", 200, "", "invalid-data"),
        Case("binance", 200, "\u{0}\u{1}\u{2}", "invalid-data"),
        Case("binance", 200, html, "invalid-data"),
        Case("binance", 204, "", "invalid-data"),
        Case("binance", 301, "", "unavailable"),
        Case("binance", 400, #"{"code":-1100,"msg":"Illegal characters"}"#, "refused"),
        Case("binance", 403, html, "refused"),
        Case("binance", 404, html, "refused"),
        Case("binance", 408, #"{"code":-1007,"msg":"Timeout"}"#, "unavailable"),
        // A ban that is over by the exchange's own clock, one that is not, in each unit, and one that never ends.
        Case("binance", 418, banned("1514883415037"), "rate-limited for 120 s"),
        Case("binance", 418, banned("1785050129644"), "rate-limited for 129 s"),
        Case("binance", 418, banned("1785050129"), "rate-limited for 129 s"),
        Case("binance", 418, banned("1785050129644000"), "rate-limited for 129 s"),
        Case("binance", 418, banned("9999999999999"), "rate-limited for 259200 s"),
        Case("binance", 418, banned("99999999999999999999"), "rate-limited for 120 s"),
        Case("binance", 418, html, "rate-limited for 120 s"),
        Case("binance", 418, banned("1785050129644"), "rate-limited for 300 s", retryAfter: "300"),
        Case("binance", 429, "{}", "rate-limited for 17 s", retryAfter: "17"),
        Case("binance", 429, "{}", "rate-limited for 0 s", retryAfter: "0"),
        Case("binance", 429, "{}", "rate-limited for 60 s", retryAfter: "Sun, 26 Jul 2026 07:14:20 GMT"),
        Case("binance", 429, "{}", "rate-limited for 60 s", retryAfter: "Sunday, 26-Jul-26 07:14:20 GMT"),
        Case("binance", 429, "{}", "rate-limited for 60 s", retryAfter: "Sun Jul 26 07:14:20 2026"),
        Case("binance", 429, "{}", "rate-limited", retryAfter: "Sun, 26 Jul 2026 07:13:19 GMT"),
        Case("binance", 429, "{}", "rate-limited", retryAfter: "-5"),
        Case("binance", 429, "{}", "rate-limited", retryAfter: "soon"),
        Case("binance", 429, "{}", "rate-limited for 259200 s", retryAfter: "999999999999999"),
        Case("binance", 503, html, "unavailable for 3600 s", retryAfter: "3600"),
        Case("binance", 503, html, "unavailable"),
        Case("binance", 429, #"{"code":-1003,"msg":"Too much request weight used"}"#, "rate-limited"),
        Case("binance", 451, #"{"code":0,"msg":"Service unavailable from a restricted location"}"#, "refused"),
        Case("binance", 500, "", "unavailable"),
        Case("binance", 502, html, "unavailable"),
        Case("cryptocompare", 200, cryptocompare, "75500.99 at 1737685911000"),
        Case("cryptocompare", 200, cryptocompare.replacing("75500.99", with: "103457"), "103457 at 1737685911000"),
        Case("cryptocompare", 200, cryptocompare.replacing("BTC", with: "ETH"), "invalid-data"),
        Case("cryptocompare", 200, cryptocompare.replacing("USD", with: "EUR"), "invalid-data"),
        Case("cryptocompare", 200, cryptocompare.replacing("1737685911", with: "99"), "invalid-data"),
        Case("cryptocompare", 200, cryptocompare.replacing("75500.99", with: "0"), "invalid-data"),
        Case("cryptocompare", 200, #"{"USD":75500.99}"#, "invalid-data"),
        Case(
            "cryptocompare", 200, #"{"Response":"Error","Message":"over your rate limit","Type":99,"Data":{}}"#,
            "rate-limited"),
        Case(
            "cryptocompare", 200, #"{"Response":"Error","Message":"fsym is a required param.","Type":2,"Data":{}}"#,
            "refused"),
        Case(
            "cryptocompare", 200, #"{"Response":"Error","Message":"","Type":1,"Data":[],"ErrorsSummary":"x"}"#,
            "refused"),
        Case("cryptocompare", 200, #"{"Data":{},"Err":{"type":2,"message":"API key required"}}"#, "refused"),
        Case("cryptocompare", 200, html, "invalid-data"),
        Case("cryptocompare", 401, #"{"Data":{},"Err":{"type":2,"message":"API key required"}}"#, "refused"),
        Case("cryptocompare", 502, #"{"Response":"Error"}"#, "unavailable"),
        Case(
            "cryptocompare", 200, cryptocompare.replacing("1737685911", with: "1737685911250"),
            "75500.99 at 1737685911250"),
        Case("bitstamp", 200, bitstamp, "25846 at 1686600672000"),
        Case("bitstamp", 200, bitstamp.replacing("\"1686600672\"", with: "1686600672"), "25846 at 1686600672000"),
        Case("bitstamp", 200, bitstamp.replacing("1686600672", with: "1686600672123456"), "25846 at 1686600672123"),
        Case("bitstamp", 200, bitstamp.replacing("1686600672", with: "12"), "invalid-data"),
        Case("bitstamp", 200, bitstamp.replacing("\"25846\"", with: "\"2.5846E4\""), "25846 at 1686600672000"),
        Case("bitstamp", 200, bitstamp.replacing("25846", with: "-1"), "invalid-data"),
        Case("bitstamp", 200, bitstamp.replacing("BTC/USD", with: "ETH/USD"), "invalid-data"),
        Case("bitstamp", 200, "[\(bitstamp)]", "invalid-data"),
        Case("bitstamp", 400, #"{"status":"error","reason":"exceeded","code":"400.002"}"#, "rate-limited"),
        Case(
            "bitstamp", 400, #"{"status":"error","reason":"exceeded","response_code":"400.002"}"#,
            "rate-limited for 9 s",
            retryAfter: "9"),
        Case("bitstamp", 400, #"{"status":"error","reason":"bad","code":"400.001"}"#, "refused"),
        Case("bitstamp", 404, html, "refused"),
        Case("bitstamp", 429, #"{"status":"error","reason":"exceeded","code":"400.002"}"#, "rate-limited"),
        Case("kraken", 200, kraken, "61027.5"),
        Case("kraken", 200, kraken.replacing("XXBTZUSD", with: "BTC/USD"), "61027.5"),
        Case("kraken", 200, kraken.replacing("XXBTZUSD", with: "XETHZUSD"), "invalid-data"),
        Case("kraken", 200, kraken.replacing("\"61027.50000\",\"0.1\"", with: ""), "invalid-data"),
        Case("kraken", 200, #"{"error":[]}"#, "invalid-data"),
        Case("kraken", 200, #"{"error":[],"result":null}"#, "invalid-data"),
        Case("kraken", 200, #"{"error":["EQuery:Unknown asset pair"],"result":{}}"#, "refused"),
        Case("kraken", 200, #"{"error":["EService:Unavailable"]}"#, "unavailable"),
        Case("kraken", 200, #"{"error":["EService:Busy"]}"#, "unavailable"),
        Case("kraken", 200, #"{"error":["EGeneral:Internal error"]}"#, "unavailable"),
        Case("kraken", 200, #"{"error":["EAPI:Rate limit exceeded"]}"#, "rate-limited"),
        Case("kraken", 200, #"{"error":["EGeneral:Too many requests"]}"#, "rate-limited"),
        Case("kraken", 200, #"{"error":["EGeneral:Temporary lockout"]}"#, "rate-limited for 9 s", retryAfter: "9"),
        Case("kraken", 200, #"{"error":["EGeneral:Permission denied"]}"#, "refused"),
        Case("kraken", 520, html, "unavailable"),
        Case("coinbase", 200, coinbase, "63212.97 at 1781887413016 trade 7"),
        Case("coinbase", 200, coinbase.replacing(".016274911Z", with: "Z"), "63212.97 at 1781887413000 trade 7"),
        Case("coinbase", 200, coinbase.replacing("2026-06-19T16", with: "yesterday"), "invalid-data"),
        Case("coinbase", 200, coinbase.replacing("\"63212.97\"", with: "true"), "invalid-data"),
        Case("coinbase", 200, #"{"message":"NotFound"}"#, "refused"),
        Case("coinbase", 200, html, "invalid-data"),
        Case("coinbase", 400, #"{"message":"User-Agent header is required."}"#, "refused"),
        Case("coinbase", 404, #"{"message":"NotFound"}"#, "refused"),
        Case("coinbase", 429, #"{"message":"Public rate limit exceeded"}"#, "rate-limited"),
        Case("coinbase", 500, "{}", "unavailable"),
        Case("coinbase", 520, html, "unavailable"),
    ]

    @Test(arguments: cases) func `a response is a price or the right error`(answer: Case) {
        #expect(answer.outcome == answer.expected)
    }

    @Test func `an error has the status and the exchange's own text, on one line`() {
        let answer = HTTPResponse(
            status: 429, retryAfter: "17", date: Case.date, encoding: nil,
            body: Array("{\"code\":-1003,\"msg\":\"Too\\nmuch\\u001b[31m\"}".utf8))
        #expect(throws: PriceLoadingError.rateLimited("HTTP 429, Too much [31m", retryAfter: .seconds(17))) {
            try prices(answer, Market.binance)
        }
        let long = HTTPResponse(
            status: 400, retryAfter: nil, date: Case.date, encoding: nil,
            body: Array("{\"code\":1,\"msg\":\"\(String(repeating: "x", count: 5000))\"}".utf8))
        #expect(throws: PriceLoadingError.refused("HTTP 400, \(String(repeating: "x", count: 157))...")) {
            try prices(long, Market.binance)
        }
    }

    /// The names and forms of the pairs in other currencies. A public project recorded Kraken's CHF body; the others have the form of the
    /// exchanges' documentation (Get Ticker Information; Symbol price ticker; Get product ticker; Ticker).
    @Test func `every currency is read from its exchange's name for it`() throws {
        func answer(_ body: String) -> HTTPResponse {
            HTTPResponse(status: 200, retryAfter: nil, date: Case.date, encoding: nil, body: Array(body.utf8))
        }
        let tickers = ["XXBTZUSD", "XXBTZEUR", "XXBTZGBP", "XBTCHF", "XXBTZCAD", "XBTAUD", "XXBTZJPY", "USDTZUSD"]
            .enumerated().map { "\"\($1)\":{\"c\":[\"6890\($0).10000\",\"0.1\"]}" }.joined(separator: ",")
        let markets = Exchange.currencies.map { Market("kraken", $0.pair) } + [Market.kraken[1]]
        let loaded = try prices(answer("{\"error\":[],\"result\":{\(tickers)}}"), markets)
        #expect(loaded.map(\.market) == markets)
        #expect(loaded.map(\.value.description) == (0...7).map { "6890\($0).1" })
        let recorded = #"""
            {"error":[],"result":{"XBTCHF":{"a":["59038.50000","1","1.000"],"b":["59005.80000","1","1.000"],"c":["59042.10000",\#
            "0.00010000"],"v":["18.59019190","22.18713969"],"p":["58359.33086","58399.49802"],"t":[1420,1641]}}}
            """#
        let francs = Market("kraken", "BTC/CHF")
        #expect(try prices(answer(recorded), [francs]).map(\.value.description) == ["59042.1"])
        #expect(throws: PriceLoadingError.self) { try prices(answer(recorded), Market.kraken) }

        let euros = #"{"symbol":"BTCEUR","price":"22746.00000000"}"#
        #expect(try prices(answer(euros), Market("binance", "BTC/EUR"))[0].value == 22746)
        #expect(throws: PriceLoadingError.self) { try prices(answer(euros), .binance) }
        let pounds = Market("bitstamp", "BTC/GBP")
        let bitstamp = #"{"timestamp":"1686600672","last":"20846","pair":"BTC/GBP"}"#
        #expect(try prices(answer(bitstamp), pounds)[0].market == pounds)
        #expect(throws: PriceLoadingError.self) { try prices(answer(bitstamp), Market.bitstamp) }
        let coinbase = Self.coinbase
        #expect(try prices(answer(coinbase), Market("coinbase", "BTC/EUR"))[0].value > 0)
    }

    @Test func `a foreign text is short by every measure, and neither reverses nor breaks a line`() {
        let endless = "a" + String(repeating: "\u{301}", count: 32_000)
        #expect(oneLine(endless).unicodeScalars.count == 160)
        #expect(oneLine("a\u{202E}b\u{2028}c\u{9B}31m") == "a b c 31m")
        #expect(oneLine(String(repeating: " ", count: 5000) + "x") == "")
    }

    @Test func `an encoded body is an error, since no encoding was requested`() {
        let answer = HTTPResponse(
            status: 200, retryAfter: nil, date: Case.date, encoding: "gzip", body: [0x1F, 0x8B, 8, 0])
        #expect(throws: PriceLoadingError.invalidData("a body encoded as gzip")) {
            try prices(answer, Market.binance)
        }
    }

    @Test(arguments: [
        ("{\"symbol\":\"BTCUSDT\",\n\"price\":NaN}", "not JSON: line 2, column 9: expected a value"),
        (
            "{\"symbol\":\"BTCUSDT\",\"price\":\"668",
            "not JSON: line 1, column 33: a string without its end"
        ),
        ("\u{FEFF}Service Unavailable", "not JSON: line 1, column 1: expected a value"),
        ("\u{FEFF} <html></html>", "a page of HTML instead of JSON"), ("\u{FEFF}", "an empty body"),
    ])
    func `what is wrong with a body is told with its place`(body: String, expected: String) {
        let response = HTTPResponse(status: 200, body: Array(body.utf8))
        #expect(throws: PriceLoadingError.invalidData(expected)) { try prices(response, Market.binance) }
    }

    @Test func `a byte order mark is skipped`() throws {
        let body = "\u{FEFF}{\"symbol\":\"BTCUSDT\",\"price\":\"66836.69\"}"
        #expect(
            try prices(HTTPResponse(status: 200, body: Array(body.utf8)), Market.binance)[0].value.description
                == "66836.69")
    }

    @Test func `only the beginning of an error's text is read`() throws {
        let text = String(repeating: "x", count: 2000)
        let value = try JSONValue(parsing: Array("\"\(text)\"".utf8)[...])
        #expect(value.errorText == String(text.prefix(1000)))
    }

    @Test(arguments: [
        ("1970-01-01T00:00:00Z", 0), ("2000-02-29T23:59:59.999Z", 951_868_799_999),
        ("2018-01-01T02:34:46.419000Z", 1_514_774_086_419), ("2026-06-19T16:43:33.016274911Z", 1_781_887_413_016),
        ("2100-03-01T00:00:00.5Z", 4_107_542_400_500), ("2026-06-19T16:43:33", 1_781_887_413_000),
        ("2026-06-19T18:43:33+02:00", 1_781_887_413_000), ("2026-06-19T11:13:33.5-05:30", 1_781_887_413_500),
        ("2026-06-19T16:43:33.0162749", 1_781_887_413_016), ("0000-01-01T00:00:00Z", -62_167_219_200_000),
        ("2026-06-19T18:43:33+0200", 1_781_887_413_000), ("2026-06-19 16:43:33Z", 1_781_887_413_000),
        ("2026-06-19 16:43:33", 1_781_887_413_000), ("2026-06-19t16:43:33z", 1_781_887_413_000),
    ])
    func `venue times are read to the millisecond`(text: String, expected: Int64) {
        #expect(VenueTime.milliseconds(fromISO8601: text) == expected)
    }

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777_000), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777_000),
        ("Sun Nov  6 08:49:37 1994", 784_111_777_000), ("Thu, 29 Feb 2024 23:59:60 GMT", 1_709_251_200_000),
        ("Sun, 06 Nov 1994 08:49:37 CET", nil), ("Sun, 06 Nox 1994 08:49:37 GMT", nil), ("", nil), ("soon", nil),
        ("Sun, 06 Nov 1994 25:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:49 GMT", nil),
    ])
    func `a header's date is read in all three forms`(text: String, expected: Int64?) {
        #expect(VenueTime.milliseconds(fromHTTPDate: text) == expected)
    }

    @Test(arguments: [
        "", "2026-06-1", "2026-13-19", "2026-06-19  16:43:33Z", "2026-06-19T16:43:33+2400", "2026-06-19T16:43:33+24:00",
        "2026-13-19T16:43:33Z",
        "2026-06-19T24:43:33Z", "2026-06-19T16:43:33.Z", "2026-06-19T16:43:33,5Z", "2026-06-19T16:43:3٣Z",
        "20x6-06-19T16:43:33Z",
    ])
    func `an invalid venue time is refused`(text: String) {
        #expect(VenueTime.milliseconds(fromISO8601: text) == nil)
    }
}
