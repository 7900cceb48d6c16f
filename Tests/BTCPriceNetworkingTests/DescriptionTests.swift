import BTCPriceCore
import BTCPriceSocket
import Configuration
import FoundationEssentials
import TestSupport
import Testing

@testable import BTCPriceNetworking

/// A saved body of an exchange of the library, and what its description finds there.
struct Sample: Sendable, CustomTestStringConvertible {
    let exchange: String
    let file: String
    let currency: Currency
    /// The exchange's name of the market, if the body is of another one than bitcoin's.
    let name: String
    /// The price, or `spread` if the quotes are too far apart.
    let price: String
    /// The exchange's time, milliseconds since 1970.
    let time: Int64?

    var testDescription: String { exchange }

    init(_ exchange: String, _ file: String, _ currency: String, _ name: String, _ price: String, _ time: Int64?) {
        (self.exchange, self.file, self.name, self.price, self.time) = (exchange, file, name, price, time)
        self.currency = Currency(rawValue: currency) ?? .usd
    }

    /// The description from the library, with the market of the body alone.
    func description() throws -> ExchangeDescription {
        let path = "\(Library.folder)/\(exchange).toml"
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let market = name.isEmpty ? "{}" : "{ name = \"\(name)\" }"
        let own = text.split(separator: "\n").first { $0.hasPrefix("markets") && $0.contains(" \(currency) =") }
        let markets = name.isEmpty && own != nil ? String(own ?? "") : "markets = { \(currency) = \(market) }"
        let lines = text.split(separator: "\n").map { $0.hasPrefix("markets") ? markets[...] : $0 }
        return try Library.descriptions(lines.joined(separator: "\n"), path)[0]
    }

    /// A response with a body, made when the body's time says.
    func response(_ body: [UInt8], status: Int = 200) -> HTTPResponse {
        HTTPResponse(
            status: status, retryAfter: nil, date: Self.httpDate(time ?? 1_785_050_000_000), encoding: nil, body: body)
    }

    /// A date as in a header, a second later. The day of the week is not read.
    static func httpDate(_ milliseconds: Int64) -> String {
        let parts = Timestamp(milliseconds: milliseconds + 1000).utcText.split { "-: ".contains($0) }
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        return
            "Sun, \(parts[2]) \(months[(Int(parts[1]) ?? 1) - 1]) \(parts[0]) \(parts[3]):\(parts[4]):\(parts[5]) GMT"
    }
}

/// The descriptions that are installed with the package.
enum Library {
    static let folder = "\(root)/packaging/exchanges"
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().path()

    static func descriptions(_ text: String, _ path: String = "c.toml") throws -> [ExchangeDescription] {
        try ConfigurationFile(text: text, path: path).tables(in: "exchange").map { try ExchangeDescription($0, $1) }
    }

    static let files: [String] =
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).filter { $0 != "currencies.toml" }
        .sorted()
}

@Suite struct LibraryTests {
    static let samples = [
        Sample("bit2c", "bit2c_btcnis.json", "ILS", "", "30774.26", nil),
        Sample("bit2me", "bit2me_btcusdt.json", "EUR", "BTC/USDT", "68320", 1_716_910_904_745),
        Sample("bitbank", "bitbank_btcjpy.json", "JPY", "", "927013", 1_518_089_497_970),
        Sample("bitfinex", "bitfinex_tickers.json", "USD", "", "7381.6", nil),
        Sample("bitflyer", "bitflyer_btcjpy.json", "JPY", "", "2004925", 1_513_755_859_230),
        Sample("bithumb", "bithumb_btc-usdc.json", "KRW", "BTC-USDC", "0.00001659", 1_782_948_933_650),
        Sample("bitkub", "bitkub_ada-crv_thb.json", "THB", "ADA_THB", "37.36", nil),
        Sample("bitopro", "bitopro_btctwd.json", "TWD", "", "1182449", nil),
        Sample("bitso", "bitso_btcmxn.json", "MXN", "", "139280.35", 1_531_901_662_000),
        Sample("bitvavo", "bitvavo_ethbtc.json", "EUR", "ETH-BTC", "0.023039", 1_590_381_666_900),
        Sample("btcmarkets", "btcmarkets_bataud.json", "AUD", "BAT-AUD", "0.3769", 1_596_997_703_280),
        Sample("btcturk", "btcturk_btctry.json", "TRY", "", "462485", 1_618_826_361_234),
        Sample("buda", "buda_btcclp.json", "CLP", "", "879789", nil),
        Sample("coincheck", "coincheck_btcjpy.json", "JPY", "", "5053001", 1_644_249_683_000),
        Sample("coindcx", "coindcx_btcinr.json", "INR", "", "6180699.01", 1_717_616_755_000),
        Sample("coinjar", "coinjar_btcaud.json", "AUD", "", "9757", 1_527_470_361_577),
        Sample("coinmate", "coinmate_btcczk.json", "CZK", "", "94896.47", 1_507_059_635_000),
        Sample("coinone", "coinone_krw-btc.json", "KRW", "", "50062000", 1_701_073_357_818),
        Sample("coinsph", "coinsph_ethusdt.json", "PHP", "ETHUSDT", "1599.68", nil),
        Sample("cryptocom", "cryptocom_btcusd.json", "USD", "", "30446", 1_687_403_045_415),
        Sample("firi", "firi_btcnok.json", "NOK", "", "827301.99", nil),
        Sample("foxbit", "foxbit_btcbrl.json", "BRL", "", "358504.6934", 1_704_067_200_000),
        Sample("gemini", "gemini_btcusd.json", "USD", "", "4407.82", nil),
        Sample("gopax", "gopax_eth-krw.json", "KRW", "ETH-KRW", "799500", 1_520_864_251_652),
        Sample("independentreserve", "independentreserve_xbtusd.json", "USD", "", "43378.43", 1_642_200_749_502),
        Sample("indodax", "indodax_btcidr.json", "IDR", "", "96501000", 1_537_069_397_000),
        Sample("itbit", "itbit_xbtusd.json", "USD", "", "4364.76", 1_507_339_716_427),
        Sample("luno", "luno_xbtaud.json", "AUD", "", "59997.99", 1_642_201_439_301),
        Sample("max", "max_btctwd.json", "TWD", "", "247491.1", 1_533_026_139_000),
        Sample("mercado", "mercado_btcbrl.json", "BRL", "", "14700", 1_506_998_526_000),
        Sample("nbx", "nbx_btcnok.json", "NOK", "", "825709.43", nil),
        Sample("ndax", "ndax_btccad.json", "CAD", "", "19069.32", 1_607_040_406_424),
        Sample("okx", "okx_ethbtc.json", "EUR", "ETH-BTC", "0.0732", 1_621_440_583_784),
        Sample("onetrading", "onetrading_btceur.json", "EUR", "", "8143.91", 1_594_362_454_951),
        Sample("paymium", "paymium_btceur.json", "EUR", "", "33313.53", 1_643_381_654_000),
        Sample("quidax", "quidax_btcngn.json", "NGN", "", "90691052", 1_784_144_760_000),
        Sample("revolutx", "revolutx_btcusd.json", "USD", "", "119980", 1_785_313_433_816),
        Sample("upbit", "upbit_krw-btc.json", "KRW", "", "7493000", 1_531_099_277_000),
        Sample("valr", "valr_btczar.json", "ZAR", "", "spread", 1_655_057_345_002),
        Sample("whitebit", "whitebit_v4_bchrub.json", "UAH", "BCH_RUB", "32830.21", nil),
        Sample("zebpay", "zebpay_btcinr.json", "INR", "", "9992788.465", 1_756_811_917_290),
    ]

    @Test(.enabled(if: Shared.isPresent, "\(Shared.absence)"), arguments: samples)
    func `a description finds the price and the time in a saved body`(sample: Sample) throws {
        let description = try sample.description()
        let body = try Shared.bytes("described/\(sample.file)")
        let market = try #require(description.markets.first { $0.market.currency == sample.currency })
        let reader = TickerReader(description, [market])
        guard sample.price != "spread" else {
            #expect(throws: PriceLoadingError.self) { try reader.prices(sample.response(body)) }
            return
        }
        let found = try reader.prices(sample.response(body))
        #expect(found.map(\.value.description) == [sample.price])
        let time = description.timeMeaning == .reply ? nil : sample.time
        #expect(found[0].position.time?.milliseconds == time)
    }

    @Test func `each file of the library has a sample, and its exchange has the name of the file`() throws {
        #expect(Library.files.count >= 40)
        for file in Library.files {
            let text = try String(contentsOfFile: "\(Library.folder)/\(file)", encoding: .utf8)
            let names = try Library.descriptions(text, file).map(\.name)
            #expect(names.map { "\($0).toml" } == [file])
            #expect(Self.samples.contains { "\($0.exchange).toml" == file }, "\(file)")
            #expect(text.contains("checked against a saved body, not live"), "\(file)")
        }
    }

    /// What a simulated exchange responds is read as the price that it was made from.
    @Test(arguments: samples) func `a description reads what it describes`(sample: Sample) throws {
        let text = try String(contentsOfFile: "\(Library.folder)/\(sample.exchange).toml", encoding: .utf8)
        let description = try #require(try Library.descriptions(text).first)
        for group in description.groups(of: description.markets) {
            let prices = group.all.enumerated().map { ($1.market, "6890\($0).25") }
            let time = Timestamp(milliseconds: 1_785_050_000_123)
            let body = description.body(prices: prices, time: time, sequence: 7)
            let response = HTTPResponse(
                status: 200, retryAfter: nil, date: Sample.httpDate(time.milliseconds), encoding: nil, body: body)
            let found = try TickerReader(description, group.all).prices(response)
            #expect(found.map(\.value.description) == prices.map(\.1), "\(String(decoding: body, as: UTF8.self))")
            if description.timeMeaning != nil, description.timeMeaning != .reply {
                #expect(found.allSatisfy { $0.position.time == time })
            }
            let target = description.url(for: group.all, at: "")
            #expect(Set(description.requested(by: target)) == Set(group.all.map(\.market)))
        }
    }

    /// Twenty ways in which a body may be wrong.
    @Test(.enabled(if: Shared.isPresent, "\(Shared.absence)"), arguments: samples.filter { $0.price != "spread" })
    func `no wrong body gives a wrong price`(sample: Sample) throws {
        let description = try sample.description()
        let market = try #require(description.markets.first { $0.market.currency == sample.currency })
        let reader = TickerReader(description, [market])
        let body = Body(bytes: try Shared.bytes("described/\(sample.file)"), description: description, market: market)
        let last = body.text(description.price)
        func outcome(_ bytes: [UInt8], status: Int = 200) -> String? {
            (try? reader.prices(sample.response(bytes, status: status)))?.first?.value.description
        }
        func isRefused(_ bytes: [UInt8], status: Int = 200, _ why: String) {
            #expect(
                outcome(bytes, status: status) == nil, "\(why): \(String(decoding: bytes.prefix(600), as: UTF8.self))")
        }
        let price = description.price ?? description.bid
        for wrong in [
            "null", "0", "\"0.00\"", "-5", "\"-5\"", "\"NaN\"", "\"\"", "\"68,901.23\"", "\" 1\"", "true", "[]", "{}",
        ] {
            isRefused(body.with(price, wrong), "a price \(wrong)")
        }
        isRefused(body.without(price), "no price")
        isRefused(Array("<html>Just a moment...</html>".utf8), "HTML")
        isRefused([], "nothing")
        isRefused(Array(body.bytes.prefix(body.bytes.count / 2)), "half of it")
        for status in [204, 301, 403, 418, 429, 500] { isRefused(body.bytes, status: status, "status \(status)") }
        // Of another market. Some bodies don't say of which they are.
        if description.namesTheMarket {
            let other = Body.replacing(market.name, with: "XXX", in: body.bytes)
            if other != body.bytes { isRefused(other, "another market") }
        }
        // The same digits as a number or as a text are the same price.
        if let text = last {
            #expect(outcome(body.with(price, text)) == sample.price)
            #expect(outcome(body.with(price, "\"\(text)\"")) == sample.price)
        }
        // An error with status 200.
        for place in description.errors where place.value(in: body.document) == nil && place.tokens.count == 1 {
            isRefused(Array("{\"\(place.tokens[0])\":\"maintenance\"}".utf8), "an error")
        }
        if description.timeMeaning != nil {
            for wrong in ["null", "\"soon\"", "-1", "{}"] {
                isRefused(body.with(description.time, wrong), "a time \(wrong)")
            }
        }
        if description.timeMeaning == .reply {
            isRefused(body.with(description.time, "1500000000"), "an old response")
        }
        guard let bid = body.text(description.bid), let ask = body.text(description.ask),
            // Buda's saved bid is above the ask.
            let low = Price(bid), let high = Price(ask), low < high
        else { return }
        let swapped = Body(bytes: body.with(description.bid, ask), description: description, market: market)
            .with(description.ask, bid)
        if let last {
            // Quotes that are not in order are ignored.
            #expect(outcome(swapped) == Price(last)?.description)
            #expect(outcome(body.with(description.bid, "0")) == Price(last)?.description)
            isRefused(body.with(price, "\(high * 2)"), "a last price far above the ask")
            isRefused(body.with(price, "\(low * Price(5, scale: 1))"), "a last price far below the bid")
        } else {
            isRefused(swapped, "swapped quotes")
        }
        isRefused(body.with(description.ask, "\(high * 2)"), "a wide spread")
    }
}

/// A saved body that can be changed at the places of a description.
private struct Body {
    let bytes: [UInt8]
    let description: ExchangeDescription
    let market: ExchangeDescription.DescribedMarket

    var document: JSONValue { (try? JSONValue(parsing: bytes[...])) ?? JSONValue(.null) }

    /// The value at a place of the market, within ``bytes``.
    private func value(_ place: String?) -> JSONValue? {
        guard let place else { return nil }
        var part = document
        if let row = description.row {
            let wanted = market.placeholders().fill(row.value)
            let rows = row.array.value(in: document)?.arrayValue ?? []
            part = rows.first { row.place.value(in: $0)?.isString(equalTo: wanted) == true } ?? part
        }
        return market.keys.lazy.compactMap { key in
            Place(market.placeholders(key: key).fill(place, escaping: JSONPointer.escaped))?.value(in: part, document)
        }.first
    }

    /// The digits at a place.
    func text(_ place: String?) -> String? {
        value(place).map { String(decoding: $0.rawString ?? $0.text, as: UTF8.self) }
    }

    func with(_ place: String?, _ text: String) -> [UInt8] {
        guard let range = value(place)?.text.indices else { return [] }
        return Array(bytes[..<range.lowerBound]) + Array(text.utf8) + Array(bytes[range.upperBound...])
    }

    /// The body with another name for the member, or a shorter array.
    func without(_ place: String?) -> [UInt8] {
        guard let range = value(place)?.text.indices else { return [] }
        let before = bytes[..<range.lowerBound]
        guard let name = before.lastIndex(of: UInt8(ascii: "\"")),
            bytes[name + 1..<range.lowerBound].contains(UInt8(ascii: ":"))
        else { return with(place, "null") }
        return Array(bytes[..<name]) + Array("Z".utf8) + Array(bytes[name...])
    }

    static func replacing(_ text: String, with other: String, in bytes: [UInt8]) -> [UInt8] {
        Array(String(decoding: bytes, as: UTF8.self).replacing(text, with: other).utf8)
    }
}
