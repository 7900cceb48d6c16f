import BTCPriceSocket
import NIOCore
import NIOHTTP1
import TestSupport
import Testing

@testable import BTCPriceCore
@testable import btc_price_http

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
                == #"{"currency":"USD","state":"none","reason":"no update has ended yet"}"#)
    }

    @Test func `an old price has its age and the reason, but not the daemon's error text`() {
        var old = state("USD", "68901.23")
        old.ticks.freshness = .stale
        #expect(
            JSON.object(PriceShapes.price(old, at: now)).text.hasPrefix(
                #"{"currency":"USD","state":"stale","reason":"the last update failed","ageMs":125000,"price":"68901.23""#
            ))
    }

    @Test func `a reason names the kind of failure, and no address`() {
        func reason(_ failures: PriceLoadingError...) -> String {
            let failures = failures.map { SourceFailure(source: "kraken", error: $0) }
            return StaleReason.text(of: FetchFailure(failures: failures).description)
        }
        let silence = PriceLoadingError.unreachable("connection refused")
        #expect(reason(silence) == "no exchange responded")
        #expect(reason(silence, silence) == "no exchange responded")
        #expect(
            reason(.timedOut(after: .seconds(1)), .unavailable("HTTP 503"), .connectionClosed)
                == "no exchange responded")
        #expect(
            reason(.refused("HTTP 403"), .rateLimited("HTTP 429", retryAfter: nil))
                == "the exchanges refuse the requests")
        #expect(reason(.refused("HTTP 403"), silence) == "the exchanges refuse the requests or do not respond")
        #expect(reason(silence, .invalidData("no price")) == "no exchange sent a usable price")
        #expect(reason(.staleData("the same response")) == "no exchange sent a usable price")
        #expect(
            reason(silence, .implausible("a (1) contradict b (2), and only these respond"))
                == "the exchanges contradict each other")
        #expect(
            reason(.implausible("2 have to agree, and only a (1 BTC/USD) has a price")) == "too few exchanges agree")
        #expect(
            reason(.implausible("2 BTC/USD is the first price, and no second source could confirm it"))
                == "no second exchange confirms the price")
        let skipped = FetchFailure(failures: [], skipped: [Skipped(source: "kraken", reason: .limit)])
        #expect(StaleReason.text(of: skipped.description) == "the exchanges' limits allow no request yet")
        #expect(StaleReason.text(of: "https://proxy.example") == "the last update failed")
        #expect(StaleReason.text(of: FetchFailure().description) == "no source can be requested")
        #expect(StaleReason.text(of: nil) == "no update has ended yet")
    }

    @Test func `a pause, and a state that became too old, have reasons of their own`() {
        var state = state("USD", "68901.23")
        state.ticks.freshUntil = 5
        #expect(PriceShapes.reason(of: state) == nil)
        #expect(PriceShapes.reason(of: state.aged(at: 6)) == "no update has ended in time")
        state.ticks.freshness = .stale
        state.ticks.failure = PriceState.pausedFailure
        #expect(PriceShapes.reason(of: state) == "the updates are paused")
        state.ticks.ticking = .idle
        #expect(PriceShapes.reason(of: state) == "the updates are paused while no program reads the price")
    }

    @Test func `a candle has the minutes that it covers and its ticks in doubt, if they are known`() {
        var candle = Candle(start: 1_795_340_400, open: 1, high: 3, low: 1, close: 2, ticks: 60, fresh: 59)
        let start =
            #"{"time":"2026-11-22T09:40:00.000Z","open":"1","high":"3","low":"1","close":"2","ticks":60,"fresh":59,"#
        #expect(JSON.object(PriceShapes.candle(candle)).text == start + #""origin":"own"}"#)
        candle.covered = 38 * 60
        candle.doubtful = 0
        #expect(
            JSON.object(PriceShapes.candle(candle)).text == start
                + #""origin":"own","coveredMinutes":38,"doubtful":0,"coveredSeconds":2280}"#
        )
        let whole = Candle(start: 1_795_340_400, open: 1, high: 3, low: 1, close: 2, origin: "kraken")
        #expect(
            PriceShapes.csv([candle, whole], of: "EUR").split(separator: "\r\n") == [
                "time,open,high,low,close,ticks,fresh,origin,covered_minutes,doubtful,currency,pair,covered_seconds,single",
                "2026-11-22T09:40:00.000Z,1,3,1,2,60,59,own,38,0,EUR,BTC/EUR,2280,",
                "2026-11-22T09:40:00.000Z,1,3,1,2,0,0,kraken,,,EUR,BTC/EUR,,",
            ])
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
        report.claim = MarketClaim(low: 68_763, high: 69_039, isMember: false, contradictedBy: ["coinbase"])
        let text = JSON.object(PriceShapes.source(report)).text
        #expect(!text.contains("example"))
        #expect(text.contains(#""kind":"unreachable""#))
        #expect(text.contains(#""low":"68763","high":"69039","inVote":false,"contradictedBy":["coinbase"]"#))
    }
}

@Suite struct RepresentationTests {
    private func response(_ known: String?) throws -> GatewayResponse {
        let headers = HTTPHeaders(known.map { [("if-none-match", $0)] } ?? [])
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/", headers: headers)
        return Representation(.object(["a": .integer(1)])).response(to: try #require(GatewayRequest(head, .init())))
    }

    @Test func `the age of the price has a header of its own`() throws {
        let present = ObservationTime.now()
        let quote = PriceQuote(
            value: 1, currency: "USD", timestamp: Timestamp(milliseconds: present.wall.milliseconds - 90_000),
            source: "kraken", market: "BTC/USD")
        let state = PriceState(
            tick: 1, freshness: .fresh, quote: quote, observedBoottime: present.boottime - 90_000,
            confirmation: .single,
            failure: nil)
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
        let request = try #require(GatewayRequest(head, .init()))
        let headers = Representation(.object([:]), oldest: state).response(to: request).headers
        #expect(headers.first(name: "age") == "0")
        #expect(headers.first(name: "price-age").flatMap { Int($0) }.map { (90...150).contains($0) } == true)
        #expect(try !response(nil).headers.contains(name: "price-age"))
    }

    @Test func `a client that has the body gets status 304`() throws {
        let tag = try response(nil).headers.first(name: "etag") ?? ""
        #expect(try response(nil).status == .ok)
        for known in [tag, "W/\(tag)", "\"x\", \(tag)", "*"] {
            #expect(try response(known).status == .notModified)
            #expect(try response(known).headers.first(name: "etag") == tag)
            #expect(try response(known).body.readableBytes == 0)
        }
        #expect(try response("\"x\"").status == .ok)
    }
}
