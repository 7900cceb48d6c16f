import BTCPriceCore
import FoundationEssentials
import TestSupport
import Testing

@testable import BTCPriceNetworking

/// The messages of the exchanges' streams, and the requests to them.
@Suite struct StreamMessageTests {
    /// A stream with subscriptions to the dollar's and the euro's markets.
    struct Subscription: Sendable {
        let source: StreamSource
        let markets: [Market]

        init(_ name: String) {
            switch name {
            case "binance": source = .binance
            case "coinbase": source = .coinbase
            case "kraken": source = .kraken
            case "bitstamp": source = .bitstamp
            default: fatalError("no such stream in this test: \(name)")
            }
            markets = [name == "binance" ? "BTC/USDT" : "BTC/USD", "BTC/EUR"].map { Market(name, $0) }
        }

        /// The meaning of a text, in one line.
        func meaning(of text: String) throws -> String {
            let message = try #require(HTTPResponse(status: 200, body: Array(text.utf8)).json, "no JSON: \(text)")
            do throws(PriceLoadingError) {
                switch try source.read(message, source.named(markets)) {
                case .trade(let trade):
                    return "\(trade.market.pair) \(trade.value) at \(trade.time.map(String.init) ?? "no time")"
                        + (trade.number.map { ", number \($0)" } ?? "")
                        + (trade.position.isEmpty ? "" : ", with a position")
                case .refused(let market, let reason): return "refused \(market?.pair ?? "all"): \(reason)"
                case .other: return "other"
                }
            } catch {
                return error.kind
            }
        }
    }

    /// Messages as on the exchanges' pages and as recorded, with other numbers: no two prices in a message are equal.
    static let table: [(exchange: String, text: String, expected: String)] = [
        (
            "binance",
            #"{"stream":"btcusdt@aggTrade","data":{"e":"aggTrade","E":1769224657584,"s":"BTCUSDT","a":3821253461,"p":"89879.78000000","q":"0.00068000","f":5808851364,"l":5808851365,"T":1769224657583,"m":true,"M":true}}"#,
            "BTC/USDT 89879.78 at 1769224657583, number 3821253461"
        ),
        // The same in microseconds, as with `timeUnit=MICROSECOND`.
        (
            "binance",
            #"{"stream":"btceur@aggTrade","data":{"e":"aggTrade","E":1769224657584123,"s":"BTCEUR","a":7,"p":"76012.5","q":"1","f":5,"l":6,"T":1769224657583999,"m":true,"M":true}}"#,
            "BTC/EUR 76012.5 at 1769224657583, number 7"
        ),
        (
            "binance",
            #"{"stream":"btcusdt@aggTrade","data":{"e":"aggTrade","E":1769224657584,"s":"BTCEUR","a":7,"p":"76012.5","T":1769224657583}}"#,
            "invalid-data"
        ),
        (
            "binance",
            #"{"stream":"btcusdt@aggTrade","data":{"e":"aggTrade","E":1769224657584,"s":"BTCUSDT","a":7,"q":"76012.5","T":1769224657583}}"#,
            "invalid-data"
        ),
        (
            "binance",
            #"{"stream":"btcusdt@aggTrade","data":{"e":"aggTrade","E":1769224657584,"s":"BTCUSDT","a":7,"p":"76012,5","T":1769224657583}}"#,
            "invalid-data"
        ),
        (
            "binance",
            #"{"stream":"btcusdt@aggTrade","data":{"e":"aggTrade","E":1769224657584,"s":"BTCUSDT","a":7,"p":"76012.5","T":0}}"#,
            "invalid-data"
        ),
        (
            "binance",
            #"{"stream":"ethusdt@aggTrade","data":{"e":"aggTrade","E":1769224657584,"s":"ETHUSDT","a":7,"p":"3001.2","T":1769224657583}}"#,
            "other"
        ),
        (
            "binance",
            #"{"stream":"btcusdt@trade","data":{"e":"trade","E":1790649901913,"s":"BTCUSDT","t":6720857582,"p":"83034.29","q":"0.1","T":1790649901913}}"#,
            "other"
        ),
        ("binance", #"{"stream":"!serverShutdown","data":{"e":"serverShutdown","E":1770123456789}}"#, "other"),
        ("binance", #"{"error":{"code":2,"msg":"Invalid request"},"id":2}"#, "refused all: Invalid request"),
        ("binance", #"{"result":null,"id":1}"#, "other"),

        // The price is that of the last trade, `time` is its time, and `sequence` is another number.
        (
            "coinbase",
            #"{"type":"ticker","sequence":137212619516,"product_id":"BTC-USD","price":"84737.58","open_24h":"84430.55","volume_24h":"1836.96781750","low_24h":"84400","high_24h":"85021.57","volume_30d":"175984.53012145","best_bid":"84737.57","best_bid_size":"0.19921154","best_ask":"84737.59","best_ask_size":"0.05223077","side":"sell","time":"2026-10-03T20:58:31.127510Z","trade_id":1102042811,"last_size":"0.00000025"}"#,
            "BTC/USD 84737.58 at 1791061111127, number 1102042811, with a position"
        ),
        (
            "coinbase",
            #"{"type":"ticker","product_id":"BTC-EUR","price":"72000.01","best_bid":"72000","best_ask":"72000.02","time":"2026-10-07T20:08:00Z","trade_id":8}"#,
            "BTC/EUR 72000.01 at 1791403680000, number 8, with a position"
        ),
        (
            "coinbase",
            #"{"type":"ticker","product_id":"BTC-USDC","price":"72000.01","time":"2026-10-07T20:08:00Z","trade_id":8}"#,
            "other"
        ),
        (
            "coinbase",
            #"{"type":"ticker","product_id":"BTC-USD","best_bid":"72000.01","time":"2026-10-07T20:08:00Z","trade_id":8}"#,
            "invalid-data"
        ),
        ("coinbase", #"{"type":"ticker","product_id":"BTC-USD","price":"72000.01","trade_id":8}"#, "invalid-data"),
        (
            "coinbase",
            #"{"type":"ticker","product_id":"BTC-USD","price":"72000.01","time":"2026-10-07T20:08:00Z"}"#,
            "invalid-data"
        ),
        (
            "coinbase",
            #"{"type":"heartbeat","sequence":90,"last_trade_id":20,"product_id":"BTC-USD","time":"2014-11-07T08:19:28.464459Z"}"#,
            "other"
        ),
        // Only the list of the channel with prices counts.
        (
            "coinbase",
            #"{"type":"subscriptions","channels":[{"name":"heartbeat","product_ids":["BTC-USD","BTC-EUR"]},{"name":"ticker","product_ids":["BTC-EUR"]}]}"#,
            "other"
        ),
        (
            "coinbase", #"{"type":"subscriptions","channels":[{"name":"heartbeat","product_ids":["BTC-USD"]}]}"#,
            "refused all: none of the products was subscribed"
        ),
        (
            "coinbase", #"{"type":"subscriptions","channels":[]}"#,
            "refused all: none of the products was subscribed"
        ),
        (
            "coinbase", #"{"type":"error","message":"Failed to subscribe","reason":"BTC-EUR is not a valid product"}"#,
            "refused BTC/EUR: BTC-EUR is not a valid product"
        ),
        (
            "coinbase", #"{"type":"error","message":"Malformed\n JSON"}"#,
            "refused all: Malformed JSON"
        ),
        ("coinbase", #"{"type":"a type of next year","price":"1","product_id":"BTC-USD"}"#, "other"),

        // Including numbers that are not exact as binary fractions.
        (
            "kraken",
            #"{"channel":"ticker","type":"snapshot","data":[{"symbol":"BTC/USD","bid":62703.4,"bid_qty":0.0318498,"ask":62710.3,"ask_qty":0.00191335,"last":62702.90,"volume":1947.83637005,"vwap":63392.2,"low":62476.1,"high":64196.6,"change":-239.4,"change_pct":-0.38,"timestamp":"2026-07-08T05:24:41.204829Z"}]}"#,
            "BTC/USD 62702.9 at 1783488281204"
        ),
        (
            "kraken",
            #"{"channel":"ticker","type":"update","data":[{"symbol":"BTC/EUR","bid":9007199254740992,"ask":9007199254740994,"last":9007199254740993.00,"timestamp":"2026-07-08T05:24:41.204829Z"}]}"#,
            "BTC/EUR 9007199254740993 at 1783488281204"
        ),
        (
            "kraken",
            #"{"channel":"ticker","type":"update","data":[{"symbol":"BTC/USD","last":0.10000001,"timestamp":"2026-07-08T05:24:41Z"}]}"#,
            "BTC/USD 0.10000001 at 1783488281000"
        ),
        (
            "kraken",
            #"{"channel":"ticker","type":"update","data":[{"symbol":"ETH/USD","last":3001.2,"timestamp":"2026-07-08T05:24:41Z"}]}"#,
            "other"
        ),
        (
            "kraken",
            #"{"channel":"ticker","type":"update","data":[{"symbol":"BTC/USD","vwap":62702.9,"timestamp":"2026-07-08T05:24:41Z"}]}"#,
            "invalid-data"
        ),
        (
            "kraken", #"{"channel":"ticker","type":"update","data":[{"symbol":"BTC/USD","last":62702.9}]}"#,
            "BTC/USD 62702.9 at no time"
        ),
        ("kraken", #"{"channel":"ticker","type":"update","data":[]}"#, "invalid-data"),
        ("kraken", #"{"channel":"heartbeat"}"#, "other"),
        (
            "kraken",
            #"{"channel":"status","type":"update","data":[{"system":"online","upcoming_maintenance":[{"recommended_action":"continue"},{"recommended_action":"disconnect_and_wait"}]}]}"#,
            "other"
        ),
        (
            "kraken",
            #"{"method":"subscribe","result":{"channel":"ticker","event_trigger":"trades","snapshot":true,"symbol":"BTC/EUR"},"success":true,"time_in":"2026-10-03T20:58:30.560234Z","time_out":"2026-10-03T20:58:30.560271Z"}"#,
            "other"
        ),
        (
            "kraken",
            #"{"error":"Currency pair not supported BTC/EUR","method":"subscribe","success":false,"symbol":"BTC/EUR"}"#,
            "refused BTC/EUR: Currency pair not supported BTC/EUR"
        ),
        (
            "kraken", #"{"error":"Channel not supported","method":"subscribe","success":false}"#,
            "refused all: Channel not supported"
        ),
        ("kraken", #"{"method":"pong","req_id":42,"success":true}"#, "other"),
        ("kraken", #"[993,[["354.11","0.89","1618678142.557535","s","l",""]],"trade","BTC/USD"]"#, "other"),

        (
            "bitstamp",
            #"{"data":{"id":650885871,"timestamp":"1791403681","amount":0.00274133,"amount_str":"0.00274133","price":83463.08,"price_str":"83463.09","type":1,"microtimestamp":"1791403680349016","buy_order_id":2058521371389952,"sell_order_id":2058521418514434},"channel":"live_trades_btcusd","event":"trade"}"#,
            "BTC/USD 83463.09 at 1791403680349"
        ),
        (
            "bitstamp",
            #"{"channel":"live_trades_btceur","data":{"amount":1e-08,"price":5.77488e4,"price_str":"5.77488E+4","microtimestamp":"1616297318187000","timestamp":"1616297318"},"event":"trade"}"#,
            "BTC/EUR 57748.8 at 1616297318187"
        ),
        (
            "bitstamp",
            #"{"data":{"price":77204,"price_str":"77204","microtimestamp":"1789456400586000"},"channel":"live_trades_btcusd-perp","event":"trade"}"#,
            "other"
        ),
        (
            "bitstamp",
            #"{"data":{"price":77204,"microtimestamp":"1789456400586000"},"channel":"live_trades_btcusd","event":"trade"}"#,
            "invalid-data"
        ),
        (
            "bitstamp",
            #"{"data":{"price_str":"77204","timestamp":"1789456400"},"channel":"live_trades_btcusd","event":"trade"}"#,
            "invalid-data"
        ),
        ("bitstamp", #"{"event":"bts:subscription_succeeded","channel":"live_trades_btceur","data":{}}"#, "other"),
        (
            "bitstamp",
            #"{"event":"bts:error","channel":"","data":{"code":null,"message":"Invalid channel provided."}}"#,
            "refused all: Invalid channel provided."
        ),
        ("bitstamp", #"{"event":"bts:error","channel":"","data":null}"#, "refused all: an error"),
        ("bitstamp", #"{"event":"bts:request_reconnect","channel":"","data":null}"#, "other"),
        ("bitstamp", #"{"event":"bts:heartbeat","channel":"","data":{"status":"success"}}"#, "other"),
    ]

    @Test(arguments: table.indices) func `a message has its meaning, to the last digit`(row: Int) throws {
        let (exchange, text, expected) = Self.table[row]
        #expect(try Subscription(exchange).meaning(of: text) == expected, "\(text)")
    }

    @Test(arguments: ["binance", "coinbase", "kraken", "bitstamp"])
    func `other JSON is not a price`(name: String) throws {
        for text in ["{}", "[]", "null", "7", #""price""#, #"{"data":[],"channel":{},"event":1,"type":[]}"#] {
            #expect(try Subscription(name).meaning(of: text) == "other", "\(text)")
        }
    }

    @Test func `a price of Coinbase has the position that the response to a request has`() throws {
        let text =
            #"{"type":"ticker","product_id":"BTC-USD","price":"72000.01","time":"2026-10-07T20:08:00.349016Z","trade_id":8}"#
        let json = try #require(HTTPResponse(status: 200, body: Array(text.utf8)).json)
        let source = StreamSource.coinbase
        guard case .trade(let trade) = try source.read(json, source.named([.coinbase])) else {
            Issue.record("no trade")
            return
        }
        let body = #"{"ask":"1","bid":"1","price":"72000.01","time":"2026-10-07T20:08:00.349016Z","trade_id":8}"#
        let polled = try prices(HTTPResponse(status: 200, body: Array(body.utf8)), .coinbase)
        #expect(polled.map(\.position) == [trade.position])
    }

    @Test func `of two trades the later one counts, and of two of one time that with the greater number`() {
        func trade(_ time: Int64, _ number: Int64? = nil) -> StreamTrade {
            StreamTrade(market: .coinbase, value: 1, time: time, number: number)
        }
        #expect(trade(1, 9).isBefore(trade(2, 8)))
        #expect(!trade(2, 8).isBefore(trade(1, 9)))
        #expect(trade(2, 8).isBefore(trade(2, 9)))
        // The later one may be the same trade, or the next one of a burst.
        #expect(!trade(2, 8).isBefore(trade(2, 8)))
        #expect(!trade(2).isBefore(trade(2)))
        #expect(!trade(2, 8).isBefore(trade(2)))
    }

    // MARK: - Requests

    @Test func `the requests are those of the exchanges' pages`() {
        func requests(_ name: String) -> [String] {
            let subscription = Subscription(name)
            let names = subscription.markets.map(subscription.source.name)
            return [subscription.source.target(names)] + subscription.source.subscriptions(names)
        }
        #expect(requests("binance") == ["/stream?streams=btcusdt@aggTrade/btceur@aggTrade"])
        #expect(
            requests("coinbase") == [
                "/",
                #"{"type":"subscribe","product_ids":["BTC-USD","BTC-EUR"],"channels":["ticker","heartbeat"]}"#,
            ])
        #expect(
            requests("kraken") == [
                "/v2",
                #"{"method":"subscribe","params":{"channel":"ticker","symbol":["BTC/USD","BTC/EUR"],"event_trigger":"trades"}}"#,
            ])
        #expect(
            requests("bitstamp") == [
                "/", #"{"event":"bts:subscribe","data":{"channel":"live_trades_btcusd"}}"#,
                #"{"event":"bts:subscribe","data":{"channel":"live_trades_btceur"}}"#,
            ])
    }

    @Test func `no frame to Bitstamp has 512 bytes, for any number of markets`() {
        let markets = Exchange.currencies.map { Market("bitstamp", $0.pair) }
        let source = StreamSource.bitstamp
        let texts = source.subscriptions(markets.map(source.name)) + [source.heartbeat ?? ""]
        #expect(texts.count == markets.count + 1)
        // With the longest head of such a frame.
        for text in texts { #expect(!text.isEmpty && text.utf8.count + 8 < 512) }
    }

    // MARK: - Recorded messages

    /// The recorded messages with a meaning other than ``StreamMessage/other``.
    static let recorded = [
        "fixtures/binance/ws_aggTrade_btcusdt_combined.json":
            "BTC/USDT 89879.78 at 1769224657583, number 3821253461",
        "fixtures/binance/ws_error_unknown_method.json":
            "refused all: Invalid request: unknown variant `NOT_A_METHOD`",
        "fixtures/coinbase_exchange/ws_subscriptions_ack_ticker_batch.json":
            "refused all: none of the products was subscribed",
        "fixtures/coinbase_exchange/ws_ticker_btcusd_2024-01-18.json":
            "BTC/USD 40813.37 at 1705613574368, number 596784415, with a position",
        "fixtures/coinbase_exchange/ws_ticker_btcusd_2026-10-03.json":
            "BTC/USD 84737.58 at 1791061111127, number 1102042811, with a position",
        "fixtures/kraken/ws_v2_subscribe_refused_xbt.json":
            "refused all: Currency pair not supported XBT/USD",
        "fixtures/kraken/ws_v2_ticker_snapshot_btcusd_2026-06-26.json": "BTC/USD 60108.7 at 1782456082476",
        "fixtures/kraken/ws_v2_ticker_snapshot_btcusd_2026-07-08.json": "BTC/USD 62702.9 at 1783488281204",
        "fixtures/kraken/ws_v2_ticker_update_btcusd_2026-09-25.json": "BTC/USD 83744.3 at 1790358506844",
        "fixtures/bitstamp/ws_trade_btcusd_exponent_2021-03-21.json": "BTC/USD 57748.8 at 1616297318187",
        "streams/bitstamp-error-bad_subscription_2026-09-15.json": "refused all: Bad subscription string.",
        "streams/bitstamp-error-incorrect_json_2026-09-15.json": "refused all: Incorrect JSON format.",
        "streams/bitstamp-error-invalid_channel_2026-09-15.json": "refused all: Invalid channel provided.",
        "streams/bitstamp-live_trades-btcusd_2026-10.json": "BTC/USD 83463.08 at 1791403680349",
        "streams/coinbase-error-delisted.json": "refused all: LOOM-USDC is delisted",
        "streams/coinbase-error-level2_needs_authentication.json":
            "refused all: level2, level3, and full channels now require authentication.",
        "streams/coinbase-error-not_a_valid_product_sandbox.json": "refused all: ETH-USD is not a valid product",
        "streams/coinbase-subscriptions-ack_cumulative_2021.json": "refused all: none of the products was subscribed",
    ]

    @Test(
        .enabled(if: Shared.isPresent, "\(Shared.absence)"), arguments: ["binance", "coinbase", "kraken", "bitstamp"])
    func `every recorded message has its meaning`(name: String) throws {
        func files(_ folder: String) throws -> [String] {
            let path = "\(Shared.folder)/\(folder)"
            guard FileManager.default.fileExists(atPath: path) else { return [] }
            return try FileManager.default.contentsOfDirectory(atPath: path)
        }
        let folder = "fixtures/\(name == "coinbase" ? "coinbase_exchange" : name)"
        // A client's message is not a message of an exchange.
        let own = try files(folder).filter { $0.hasPrefix("ws_") && !$0.hasSuffix("_subscribe_request.json") }
        let others = try files("streams").filter { $0.hasPrefix("\(name)-") }
        let subscription = Subscription(name)
        #expect(!own.isEmpty)
        for path in own.map({ "\(folder)/\($0)" }) + others.map({ "streams/\($0)" }) {
            let bytes = try Shared.bytes(path)
            let texts = path.hasSuffix(".ndjson") ? bytes.split(separator: UInt8(ascii: "\n")) : [bytes[...]]
            for text in texts {
                let meaning = try subscription.meaning(of: String(decoding: text, as: UTF8.self))
                #expect(meaning == Self.recorded[path] ?? "other", "\(path)")
            }
        }
    }
}
