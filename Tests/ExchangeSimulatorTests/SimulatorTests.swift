import TestSupport
import Testing

@testable import ExchangeSimulator

@Suite struct FaultScriptTests {
    @Test func `the first matching rule applies`() throws {
        let script = try FaultScript(
            """
            # a comment
            binance  request 2-3      status 429 retry-after 7 body {"code":-1003, "msg":"x"}

            binance  request 5-       reset
            coinbase time 10s-20s     refuse
            coinbase time 500ms-      delay 900ms
            *        request 1        dark
            cryptocompare always      stall-body
            """)
        func fault(_ venue: VenueName, _ request: Int, _ time: Int64 = 0) -> FaultScript.Fault? {
            script.fault(for: venue, request: request, at: time)
        }
        #expect(fault(.binance, 1) == .dark)
        #expect(
            fault(.binance, 2)
                == .answer(status: 429, retryAfter: .seconds(7), body: Array(#"{"code":-1003, "msg":"x"}"#.utf8)))
        #expect(fault(.binance, 4) == nil)
        #expect(fault(.binance, 500) == .reset)
        #expect(fault(.coinbase, 2, 499) == nil)
        #expect(fault(.coinbase, 2, 500) == .delay(milliseconds: 900))
        #expect(script.connectionFault(for: .coinbase, at: 10_000) == .refuse)
        #expect(script.connectionFault(for: .coinbase, at: 20_000) == nil)
        #expect(
            fault(.coinbase, 2, 15_000) == .delay(milliseconds: 900), "what is of requests is no rule for connections")
        #expect(fault(.cryptocompare, 9) == .stallBody)
    }

    @Test(arguments: [
        ("gemini always reset", "line 1: unknown venue 'gemini'"),
        ("\n* sometimes reset", "line 2: expected always, request or time, not 'sometimes'"),
        ("* always explode", "line 1: unknown fault 'explode'"),
        ("* request 0 reset", "line 1: requests are counted from 1"),
        ("* request 5-3 reset", "line 1: requests are counted from 1"),
        ("* request x reset", "line 1: 'x' is not a valid range"),
        ("* time 5-9 reset", "line 1: '5-9' is not a valid range"),
        ("* time 9s-5s reset", "line 1: a time that ends before it begins"),
        ("* always status 42", "line 1: no status"), ("* always status 500 file /none", "line 1: cannot read /none"),
        ("* always delay soon", "line 1: 'soon' is not a valid time"),
        ("* request 1 refuse", "line 1: 'refuse' has no requests to count; use 'always' or 'time'"),
        ("* request 1 tls-alert", "line 1: 'tls-alert' has no requests to count; use 'always' or 'time'"),
        ("* always certificate old", "line 1: unknown certificate 'old'"),
        ("* always huge-body 0", "line 1: no length"),
        ("* always drip -5ms", "line 1: '-5ms' is not a valid time"),
        ("* always delay 9223372036854775807s", "line 1: '9223372036854775807s' is not a valid time"),
    ])
    func `an invalid line is reported`(text: String, expected: String) {
        #expect(throws: FaultScript.Failure(description: expected)) { try FaultScript(text) }
    }
}

@Suite struct ResponseHeaderTests {
    @Test(arguments: VenueName.allCases) func `responses have headers as long as an exchange's`(venue: VenueName) {
        let headers = VenueShape.headers(of: venue)
        let bytes = headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + ": \r\n".utf8.count }
        #expect(headers.count > 15 && (700...1000).contains(bytes), "\(headers.count) headers, \(bytes) bytes")
    }

    @Test func `absurd factors and differences give a price`() {
        #expect(PriceSeries.price("68900", times: 1e300) == "10000000000000.00")
        #expect(PriceSeries.price("68900", plus: .max) == "10000000068900.00")
        #expect(PriceSeries.price("68900", plus: .min) == "0.01")
        #expect(PriceSeries.price("68900", times: 1.1) == "75790.00")
        #expect(PriceSeries.price("68900", plus: -5) == "68899.95")
    }
}

@Suite struct RequestCounterTests {
    @Test func `the peak of requests in any span is compared with the limit`() {
        var counter = RequestCounter(.coinbase)
        for time: Int64 in [0, 100, 999, 1000, 1001, 5000, 5001, 5002, 5003] { counter.count(at: time) }
        // From 100 to 1001 ms, and from 5000 ms on.
        #expect(counter.text == "total 9, most in 1 s 4 of 10")
    }
}

@Suite struct PriceFeedTests {
    private func take(_ count: Int, of feed: PriceSeries) -> [String] {
        var feed = feed
        return (0..<count).map { _ in feed.next() }
    }

    @Test func `a replay gives its rows unchanged, and stays at the last one`() throws {
        let csv = "time,close,volume\r\n1,61828.02000000,5\r\n2,61824.01,6\r\n"
        #expect(take(4, of: try PriceSeries(replaying: csv)) == ["61828.02000000", "61824.01", "61824.01", "61824.01"])
        #expect(take(1, of: try PriceSeries(replaying: csv, column: "volume")) == ["5"])
    }

    @Test(arguments: ["", "a,b\n1,2\n", "close\n", "close\nx\n", "a,close\n1\n", "close\n1.2.3\n"])
    func `a file that can't be replayed is refused`(csv: String) {
        #expect(throws: PriceSeries.Failure.self) { try PriceSeries(replaying: csv) }
    }

    @Test func `a walk is the same for the same seed, moves, and has valid prices`() throws {
        let walk = take(5000, of: PriceSeries(walkSeed: 7))
        #expect(walk == take(5000, of: PriceSeries(walkSeed: 7)))
        #expect(walk != take(5000, of: PriceSeries(walkSeed: 8)))
        #expect(Set(walk).count > 1000)
        let values = walk.compactMap(Double.init)
        #expect(values.count == 5000)
        for (before, after) in zip(values, values.dropFirst()) { #expect(abs(after - before) / before <= 0.00051) }
    }
}
