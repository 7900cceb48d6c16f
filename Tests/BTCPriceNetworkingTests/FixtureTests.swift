import BTCPriceCore
import FoundationEssentials
import TestSupport
import Testing

@testable import BTCPriceNetworking

/// Every recorded body of the five sources over HTTP, with its status (fixtures/INDEX.md).
@Suite struct FixtureTests {
    static let table: [(exchange: String, file: String, status: Int, expected: String)] = [
        ("binance", "binance/ticker_price_success_2026.json", 200, "66836.69"),
        ("binance", "binance/ticker_price_success_2020.json", 200, "7044.54"),
        ("binance", "binance/ticker_price_success_recorded_pretty.json", 200, "60740"),
        ("binance", "binance/ticker_price_docs_example.json", 200, "invalid-data"),
        ("binance", "binance/error_400_invalid_symbol.json", 400, "refused"),
        ("binance", "binance/error_400_illegal_characters.json", 400, "refused"),
        ("binance", "binance/error_400_illegal_characters_2025.json", 400, "refused"),
        ("binance", "binance/error_429_too_much_weight_1200.json", 429, "rate-limited"),
        ("binance", "binance/error_429_too_much_weight_6000.json", 429, "rate-limited"),
        ("binance", "binance/error_418_ip_banned_2026.json", 418, "rate-limited for 129 s"),
        ("binance", "binance/error_418_ip_banned_short.json", 418, "rate-limited for 120 s"),
        ("binance", "binance/error_451_restricted_location.json", 451, "refused"),
        ("binance", "binance/error_403_cloudfront_waf_2023.html", 403, "refused"),
        ("binance", "binance/error_502_nginx.html", 502, "unavailable"),
        ("binance", "binance/error_404_nginx.html", 404, "refused"),
        ("binance", "binance/error_1001_disconnected.json", 500, "unavailable"),
        ("binance", "binance/error_1007_timeout.json", 408, "unavailable"),
        ("binance", "binance/exchangeInfo_rateLimits.json", 200, "invalid-data"),
        (
            "cryptocompare", "cryptocompare/generateAvg_success_btcusd_coinbase_2025-01-24.json", 200,
            "103457.51 at 1737685911000"
        ),
        ("cryptocompare", "cryptocompare/price_success_usd_usdt.json", 200, "invalid-data"),
        ("cryptocompare", "cryptocompare/pricemulti_success_btc_usd_2025-07-21.json", 200, "invalid-data"),
        ("cryptocompare", "cryptocompare/error_401_api_key_required_2026.json", 401, "refused"),
        ("cryptocompare", "cryptocompare/error_200_rate_limit_keyless_2024.json", 200, "rate-limited"),
        ("cryptocompare", "cryptocompare/error_200_rate_limit_keyless_2020.json", 200, "rate-limited"),
        ("cryptocompare", "cryptocompare/error_200_rate_limit_paid_key_2025.json", 200, "rate-limited"),
        ("cryptocompare", "cryptocompare/error_200_unknown_fsym.json", 200, "refused"),
        ("cryptocompare", "cryptocompare/error_200_required_param.json", 200, "refused"),
        ("cryptocompare", "cryptocompare/error_200_no_data_tosymbol.json", 200, "refused"),
        ("cryptocompare", "cryptocompare/error_200_param_too_long.json", 200, "refused"),
        ("cryptocompare", "cryptocompare/error_200_market_not_for_pair.json", 200, "refused"),
        ("cryptocompare", "cryptocompare/error_not_implemented_2017.json", 200, "refused"),
        (
            "coinbase", "coinbase_exchange/ticker_btcusd_2026-06-19.json", 200,
            "63212.97 at 1781887413016 trade 1040406588"
        ),
        (
            "coinbase", "coinbase_exchange/ticker_btcusd_2023-06-16.json", 200,
            "25499.81 at 1686882412037 trade 539894971"
        ),
        ("coinbase", "coinbase_exchange/error_404_notfound.json", 404, "refused"),
        ("coinbase", "coinbase_exchange/error_429_public_rate_limit.json", 429, "rate-limited"),
        ("coinbase", "coinbase_exchange/error_400_user_agent_required.json", 400, "refused"),
        ("coinbase", "coinbase_exchange/time_success.json", 200, "invalid-data"),
        // The USDT market's ticker has the form of the requested one, and does not name its market.
        ("bitstamp", "bitstamp/ticker_btcusdt_2024-03-13.json", 200, "73285 at 1710328241000"),
        ("bitstamp", "bitstamp/ticker_all_item_btcusd_2023-06-12.json", 200, "invalid-data"),
        ("bitstamp", "bitstamp/error_429_rate_limit.json", 429, "rate-limited"),
        ("bitstamp", "bitstamp/error_429_rate_limit.json", 400, "rate-limited"),
        ("kraken", "kraken/ticker_assetversion1_btcusd_btcusdt_usdtusd_2026-06-24.json", 200, "61027.5"),
        ("kraken", "kraken/error_200_unknown_pair.json", 200, "refused"),
        ("kraken", "kraken/error_200_service_unavailable.json", 200, "unavailable"),
        ("kraken", "kraken/error_200_service_unavailable.json", 500, "unavailable"),
        ("kraken", "kraken/error_200_service_unavailable.json", 503, "unavailable"),
        ("kraken", "kraken/error_520_cloudflare_start_2016.html", 520, "unavailable"),
        ("kraken", "kraken/system_status.json", 200, "invalid-data"),
    ]

    @Test(.enabled(if: Shared.isPresent, "\(Shared.absence)"), arguments: table.indices)
    func `a real body is a price or the right error`(row: Int) throws {
        let (exchange, file, status, expected) = Self.table[row]
        var answer = Case(exchange, status, "", expected)
        answer.name = file
        answer.body = try Shared.bytes("fixtures/\(file)")
        #expect(answer.outcome == expected, "\(file)")
    }

    /// Every fixture has a test, including new ones.
    @Test(.enabled(if: Shared.isPresent, "\(Shared.absence)"))
    func `no fixture of the five is left out`() throws {
        let folders = ["binance", "cryptocompare", "coinbase_exchange", "bitstamp", "kraken"]
        let files = try folders.flatMap { folder in
            try FileManager.default.contentsOfDirectory(atPath: "\(Shared.folder)/fixtures/\(folder)").map {
                "\(folder)/\($0)"
            }
        }
        // Except bodies of websockets, and the two sequences, which have their own tests.
        let http = files.filter { !$0.contains("ws") && !$0.contains("/sequence_") }
        #expect(Set(http) == Set(Self.table.map(\.file)))
    }

    /// Every response with any status is a price within the bounds, or an error.
    @Test(.enabled(if: Shared.isPresent, "\(Shared.absence)"))
    func `no exchange's body is a wrong number in any loader`() throws {
        let root = "\(Shared.folder)/fixtures"
        for folder in try FileManager.default.contentsOfDirectory(atPath: root) where !folder.hasSuffix(".md") {
            for file in try FileManager.default.contentsOfDirectory(atPath: "\(root)/\(folder)") {
                for exchange in Exchange.all.map(\.name) {
                    var answer = Case(exchange, 200, "", "")
                    answer.body = try Shared.bytes("fixtures/\(folder)/\(file)")
                    let isPrice = answer.outcome.first?.isNumber == true
                    let isExpected = Self.table.contains {
                        $0.exchange == exchange && $0.file == "\(folder)/\(file)" && $0.expected.first?.isNumber == true
                    }
                    // Coinbase's stream has the fields of its ticker and more.
                    let isSameShape = exchange == "coinbase" && file.hasPrefix("ws_ticker")
                    #expect(
                        !isPrice || isExpected || isSameShape, "\(exchange) read \(folder)/\(file) as \(answer.outcome)"
                    )
                }
            }
        }
    }

    @Test(.enabled(if: Shared.isPresent, "\(Shared.absence)"))
    func `the response of a stale cache node is refused`() throws {
        let lines = String(
            decoding: try Shared.bytes("fixtures/coinbase_exchange/sequence_stale_replay_2018-01-01.ndjson"),
            as: UTF8.self
        )
        .split(separator: "\n")
        var book = ObservationBook(currency: .usd)
        let now = ObservationTime(wall: Timestamp(milliseconds: 1_514_811_297_000), boottime: 0)
        var outcomes: [String] = []
        for line in lines {
            let loaded = try prices(
                HTTPResponse(
                    status: 200, retryAfter: nil, date: Case.date, encoding: nil, body: Array(line.utf8)), .coinbase)
            do throws(PriceLoadingError) {
                outcomes.append("\(try book.record(loaded, of: loaded[0].market, at: now).value)")
            } catch {
                outcomes.append(error.kind)
            }
        }
        #expect(outcomes == ["750.6", "750.6", "stale-data", "750.6", "750.6"])
    }
}
