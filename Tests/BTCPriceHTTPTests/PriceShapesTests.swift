import BTCPriceAPI
import BTCPriceCore
import NIOCore
import NIOHTTP1
import Testing
import Varlink

@testable import BTCPriceHTTP

@Suite struct PriceShapesTests {
    private let now = ObservationTime(wall: Timestamp(milliseconds: 1_795_340_125_112), boottime: 125_005)

    private func state(_ currency: String, _ value: String, at seconds: Int64 = 1_795_340_000) -> PriceState {
        PriceState(
            tick: 1, freshness: .fresh,
            quote: PriceQuote(
                value: Price(value) ?? 0, currency: currency, timestamp: Timestamp(milliseconds: seconds * 1000 + 112),
                source: "kraken", market: "BTC/\(currency)"),
            observedBoottime: 5, confirmation: .confirmed, failure: "https://proxy.example refused",
            uncertainty: Uncertainty(plusMinus: Price("4.10") ?? 0, markets: 3), currency: currency)
    }

    @Test func `mempool's format has numbers, and the time of the oldest price`() {
        let text = JSON.object(
            PriceShapes.mempoolPrices([state("USD", "68901.23"), state("EUR", "59411.020000001", at: 1_795_339_990)])
        ).text
        #expect(text == #"{"time":1795339990,"USD":68901.23,"EUR":59411.020000001}"#)
    }

    @Test func `the format of rate providers`() {
        #expect(JSON.object(PriceShapes.rates([state("USD", "68901.23")])).text == #"{"BTC":{"USD":68901.23}}"#)
    }

    @Test func `the format of BTCPay Server`() {
        #expect(
            PriceShapes.rateList([state("USD", "68901.23")]).text
                == #"[{"name":"US Dollar","cryptoCode":"BTC","currencyPair":"BTC_USD","code":"USD","rate":68901.23}]"#)
    }

    @Test func `our own format has the exact decimal, and no error text`() {
        #expect(
            JSON.object(PriceShapes.price(state("USD", "68901.23"), at: now)).text
                == #"{"currency":"USD","state":"fresh","price":"68901.23","time":"2026-11-22T09:33:20.112Z","source":"kraken","market":"BTC/USD","confirmation":"confirmed","uncertainty":{"plusMinus":"4.1","markets":3}}"#
        )
        #expect(
            JSON.object(PriceShapes.price(.empty(), at: now)).text
                == #"{"currency":"USD","state":"none","reason":"the last update failed"}"#)
    }

    @Test func `an old price has its age and the reason, but not the daemon's error text`() {
        var old = state("USD", "68901.23")
        old.freshness = .stale
        #expect(
            JSON.object(PriceShapes.price(old, at: now)).text.hasPrefix(
                #"{"currency":"USD","state":"stale","reason":"the last update failed","ageMs":125000,"price":"68901.23""#
            ))
        old.failure = PriceState.pausedFailure
        #expect(PriceShapes.reason(of: old) == "the updates are paused")
    }

    @Test func `the format of LNbits`() {
        #expect(
            JSON.object(PriceShapes.aggregate(state("EUR", "59411.02"))).text
                == #"{"currency":"EUR","rates":{"median":59411.02}}"#)
    }

    @Test func `a source is shown without its address and the text of its error`() {
        var report = SourceReport(
            name: "kraken", order: 1, market: "BTC/USD", address: "https://secret.example", use: .failing, requests: 7,
            limits: [])
        report.lastFailure = .init(
            at: Timestamp(milliseconds: 0), kind: "unreachable", reason: "proxy.example refused")
        let text = JSON.object(PriceShapes.source(report)).text
        #expect(!text.contains("example"))
        #expect(text.contains(#""kind":"unreachable""#))
    }
}

@Suite struct RepresentationTests {
    private func response(_ known: String?) throws -> GatewayResponse {
        let headers = HTTPHeaders(known.map { [("if-none-match", $0)] } ?? [])
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/", headers: headers)
        return Representation(.object(["a": .integer(1)])).response(to: try #require(GatewayRequest(head, .init())))
    }

    @Test func `a client that has the body gets status 304`() throws {
        let tag = try response(nil).headers.first(name: "etag") ?? ""
        #expect(try response(nil).status == .ok)
        for known in [tag, "W/\(tag)", "\"x\", \(tag)", "*"] {
            #expect(try response(known).status == .notModified)
            #expect(try response(known).body.readableBytes == 0)
        }
        #expect(try response("\"x\"").status == .ok)
    }
}
