import BTCPriceCore
import FoundationEssentials
import TestSupport
import Testing

@testable import BTCPriceNetworking

/// A status and a body, and what the loader makes of them: a price, or a kind of failure.
struct Case: Sendable, CustomTestStringConvertible {
    let exchange: String
    var name: String
    let status: Int
    var body: [UInt8]
    let expected: String

    var testDescription: String { "\(exchange) \(status) \(name)" }

    init(_ exchange: String, _ status: Int, _ body: String, _ expected: String) {
        (self.exchange, self.status, self.body, self.expected) = (exchange, status, Array(body.utf8), expected)
        name = String(body.prefix(60))
    }

    /// What the loader makes of it: `68901.23` with its mark, or the error's kind.
    var outcome: String {
        let answer = ExchangeAnswer(status: status, retryAfter: nil, body: body)
        do throws(PriceLoadingError) {
            let loaded =
                switch exchange {
                case "binance": try BinancePriceLoader.read(answer)
                case "cryptocompare": try CryptoComparePriceLoader.read(answer)
                case "coinbase": try CoinbasePriceLoader.read(answer)
                default: throw .refused("no such exchange in this test: \(exchange)")
                }
            try QuoteCheck.judge(loaded, after: nil)
            let time = loaded.mark.time.map { " at \($0.milliseconds)" } ?? ""
            let trade = loaded.mark.trade.map { " trade \($0)" } ?? ""
            return "\(loaded.value)\(time)\(trade)"
        } catch {
            return error.kind
        }
    }
}

/// Every shape of answer, in small bodies of our own.
@Suite struct AnswerTests {
    static let coinbase =
        #"{"ask":"1","bid":"1","price":"63212.97","time":"2026-06-19T16:43:33.016274911Z","trade_id":7}"#
    static let cryptocompare =
        #"{"RAW":{"FROMSYMBOL":"BTC","TOSYMBOL":"USD","PRICE":75500.99,"LASTUPDATE":1737685911}}"#
    static let html = "<html><body>502 Bad Gateway</body></html>"

    static let cases: [Case] = [
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":"66836.69000000"}"#, "66836.69"),
        Case("binance", 200, " {\n \"price\" : \"60740.00000000\", \"symbol\" : \"BTCUSDT\" }\n", "60740"),
        // A number instead of a string, and an exponent: both are seen in exchanges' answers.
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":75500.99}"#, "75500.99"),
        Case("binance", 200, #"{"symbol":"BTCUSDT","price":"6.683669E4"}"#, "66836.69"),
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
        Case("binance", 200, #"{"code":-1121,"msg":"Invalid symbol."}"#, "invalid-data"),
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
        Case(
            "binance", 418, #"{"code":-1003,"msg":"Way too many requests; IP banned until 1514883415037."}"#,
            "rate-limited"),
        Case("binance", 429, #"{"code":-1003,"msg":"Too much request weight used"}"#, "rate-limited"),
        Case("binance", 451, #"{"code":0,"msg":"Service unavailable from a restricted location"}"#, "refused"),
        Case("binance", 500, "", "unavailable"),
        Case("binance", 502, html, "unavailable"),
        Case("cryptocompare", 200, cryptocompare, "75500.99 at 1737685911000"),
        Case("cryptocompare", 200, cryptocompare.replacing("75500.99", with: "103457"), "103457 at 1737685911000"),
        Case("cryptocompare", 200, cryptocompare.replacing("BTC", with: "ETH"), "invalid-data"),
        Case("cryptocompare", 200, cryptocompare.replacing("USD", with: "EUR"), "invalid-data"),
        Case("cryptocompare", 200, cryptocompare.replacing("1737685911", with: "9223372036854775807"), "invalid-data"),
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
            "unavailable"),
        Case("cryptocompare", 200, #"{"Data":{},"Err":{"type":2,"message":"API key required"}}"#, "refused"),
        Case("cryptocompare", 200, html, "invalid-data"),
        Case("cryptocompare", 401, #"{"Data":{},"Err":{"type":2,"message":"API key required"}}"#, "refused"),
        Case("cryptocompare", 502, #"{"Response":"Error"}"#, "unavailable"),
        Case("coinbase", 200, coinbase, "63212.97 at 1781887413016 trade 7"),
        Case("coinbase", 200, coinbase.replacing(".016274911Z", with: "Z"), "63212.97 at 1781887413000 trade 7"),
        Case("coinbase", 200, coinbase.replacing("2026-06-19T16", with: "yesterday"), "invalid-data"),
        Case("coinbase", 200, coinbase.replacing("\"63212.97\"", with: "true"), "invalid-data"),
        Case("coinbase", 200, #"{"message":"NotFound"}"#, "invalid-data"),
        Case("coinbase", 200, html, "invalid-data"),
        Case("coinbase", 400, #"{"message":"User-Agent header is required."}"#, "refused"),
        Case("coinbase", 404, #"{"message":"NotFound"}"#, "refused"),
        Case("coinbase", 429, #"{"message":"Public rate limit exceeded"}"#, "rate-limited"),
        Case("coinbase", 500, "{}", "unavailable"),
        Case("coinbase", 520, html, "unavailable"),
    ]

    @Test(arguments: cases) func `an answer is a price or the right error`(answer: Case) {
        #expect(answer.outcome == answer.expected)
    }

    @Test func `an error names the status and the exchange's own word, on one line`() {
        let answer = ExchangeAnswer(
            status: 429, retryAfter: "17", body: Array("{\"code\":-1003,\"msg\":\"Too\\nmuch\\u001b[31m\"}".utf8))
        #expect(throws: PriceLoadingError.rateLimited("HTTP 429, Too much [31m", retryAfter: .seconds(17))) {
            try BinancePriceLoader.read(answer)
        }
        let long = ExchangeAnswer(
            status: 400, retryAfter: nil,
            body: Array("{\"code\":1,\"msg\":\"\(String(repeating: "x", count: 5000))\"}".utf8))
        #expect(throws: PriceLoadingError.refused("HTTP 400, \(String(repeating: "x", count: 157))...")) {
            try BinancePriceLoader.read(long)
        }
    }

    @Test(arguments: [
        ("1970-01-01T00:00:00Z", 0), ("2000-02-29T23:59:59.999Z", 951_868_799_999),
        ("2018-01-01T02:34:46.419000Z", 1_514_774_086_419), ("2026-06-19T16:43:33.016274911Z", 1_781_887_413_016),
        ("2100-03-01T00:00:00.5Z", 4_107_542_400_500),
    ])
    func `venue times are read to the millisecond`(text: String, expected: Int64) {
        #expect(VenueTime.milliseconds(fromRFC3339: text) == expected)
    }

    @Test(arguments: [
        "", "2026-06-19", "2026-06-19 16:43:33Z", "2026-06-19T16:43:33", "2026-06-19T16:43:33+02:00",
        "2026-13-19T16:43:33Z",
        "2026-06-19T24:43:33Z", "2026-06-19T16:43:33.Z", "2026-06-19T16:43:33,5Z", "2026-06-19T16:43:3٣Z",
        "20x6-06-19T16:43:33Z",
    ])
    func `what is no venue time is not read`(text: String) {
        #expect(VenueTime.milliseconds(fromRFC3339: text) == nil)
    }
}
