import Testing

@testable import ExchangeSimulator

@Suite struct StreamFaultTests {
    @Test func `a rule for streams applies only to streams, and other rules do not`() throws {
        let script = try FaultScript(
            """
            coinbase stream request 1 status 429 retry-after 30
            coinbase always           price 8200
            kraken BTC/EUR stream time 5s- lag 200ms
            kraken   stream always    close 1013 come back later
            """)
        func fault(_ venue: VenueName, _ number: Int, _ pairs: [Pair] = [.usd], _ time: Int64 = 0) -> FaultScript.Fault?
        {
            script.fault(for: venue, request: number, of: pairs, scope: .stream, at: time)
        }
        #expect(fault(.coinbase, 1) == .answer(status: 429, retryAfter: .seconds(30), body: []))
        #expect(fault(.coinbase, 2) == nil)
        #expect(fault(.coinbase, 0) == nil, "it has another script's number")
        #expect(script.fault(for: .coinbase, request: 1, at: 0) == .price(fixed: "8200", factor: 1))
        #expect(fault(.kraken, 7) == .stream(.close(code: 1013, reason: "come back later")))
        #expect(fault(.kraken, 7, [.usd, .eur], 5000) == .stream(.lag(milliseconds: 200)))
        #expect(script.fault(for: .kraken, request: 7, at: 5000) == nil)
    }

    @Test(arguments: [
        ("* always silent", "line 1: unknown fault 'silent'"),
        ("* stream always drip 5ms", "line 1: unknown fault 'drip' of a stream"),
        ("* stream always refuse", "line 1: unknown fault 'refuse' of a stream"),
        ("* stream request 1 burst 700", "line 1: 'burst' has no requests to count; use 'always' or 'time'"),
        ("* stream always close now", "line 1: no code"),
        ("* stream always lag -5ms", "line 1: '-5ms' is not a valid time"),
    ])
    func `an invalid line is reported`(text: String, expected: String) {
        #expect(throws: FaultScript.Failure(description: expected)) { try FaultScript(text) }
    }
}

@Suite struct StreamShapeTests {
    private let trade = Trade(number: 3, dollars: "68900.5", nanoseconds: 1_791_403_680_349_016_000)

    private func reply(_ venue: VenueName, _ text: String, held: StreamShape.Held = .init()) -> (
        texts: [String], added: StreamShape.Held
    ) {
        let shape = StreamShape(venue: venue)
        switch shape.request(text) {
        case .subscribe(let subscription): return shape.reply(to: subscription, held: held)
        case .ping(let id): return ([shape.pong(id, now: 0)], .init())
        case .invalid(let reply): return ([reply], .init())
        }
    }

    @Test func `Binance subscribes by the address, only in lower case`() throws {
        let shape = StreamShape(venue: .binance)
        let names = try #require(shape.subscription(uri: "/stream?streams=btcusdt%40aggTrade/BTCEUR@aggTrade"))
        #expect(shape.pairs(of: names) == [.usdt])
        #expect(shape.subscription(uri: "/ws/btceur@aggTrade").map(shape.pairs) == [.eur])
        #expect(shape.subscription(uri: "/v2") == nil)
        #expect(
            shape.message(of: trade, in: .usdt, price: "68900.5")
                == #"{"stream":"btcusdt@aggTrade","data":{"e":"aggTrade","E":1791403680350,"s":"BTCUSDT","a":3821253464,"p":"68900.50000000","q":"0.00068000","f":5808851367,"l":5808851367,"T":1791403680349,"m":true,"M":true}}"#
        )
    }

    @Test func `Coinbase subscribes to known names, and lists all subscriptions`() {
        let (texts, added) = reply(
            .coinbase, #"{"type":"subscribe","product_ids":["ETH-USD","BTC-USD"],"channels":["ticker","heartbeat"]}"#,
            held: .init(trades: [.eur]))
        #expect(added == .init(trades: [.usd], heartbeats: [.usd]))
        #expect(
            texts == [
                #"{"type":"error","message":"Failed to subscribe","reason":"ETH-USD is not a valid product"}"#,
                #"{"type":"subscriptions","channels":[{"name":"ticker","product_ids":["BTC-EUR","BTC-USD"],"account_ids":null},{"name":"heartbeat","product_ids":["BTC-USD"],"account_ids":null}]}"#,
            ])
        // The heartbeat and the response to a request have the same number.
        let heartbeat = StreamShape(venue: .coinbase).heartbeat(of: .usd, trade: trade, now: trade.nanoseconds)
        #expect(heartbeat?.contains(#""last_trade_id":1040000003,"product_id":"BTC-USD""#) == true)
        let answer = VenueShape(venue: .coinbase).answer(
            VenueShape.Request(uri: ""), prices: [(.usd, "68900.5")], trade: trade, clockAhead: 0, tetherRate: "1")
        let body = String(decoding: answer.body, as: UTF8.self)
        #expect(body.contains(#""trade_id":1040000003,"#) && body.contains("2026-10-07T20:08:00.349016000Z"))
    }

    @Test func `Kraken replies for each symbol, and its prices are numbers`() {
        let (texts, added) = reply(
            .kraken, #"{"method":"subscribe","params":{"channel":"ticker","symbol":["BTC/USD","XBT/USD"]},"req_id":4}"#)
        #expect(added == .init(trades: [.usd]))
        #expect(texts.count == 2)
        #expect(texts.first?.contains(#""req_id":4,"result":{"channel":"ticker","#) == true)
        #expect(texts.last?.contains(#""success":false,"symbol":"XBT/USD""#) == true)
        #expect(texts.last?.hasPrefix(#"{"error":"Currency pair not supported XBT/USD""#) == true)
        #expect(reply(.kraken, #"{"method":"ping","req_id":42}"#).texts.first?.hasPrefix(#"{"method":"pong","#) == true)
        let message = StreamShape(venue: .kraken).message(of: trade, in: .usd, price: "68900.50", isSnapshot: true)
        #expect(message.contains(#""type":"snapshot""#) && message.contains(#""last":68900.50,"#))
    }

    @Test func `Bitstamp acknowledges unknown pairs, but not in upper case`() {
        func channel(_ name: String) -> (texts: [String], added: StreamShape.Held) {
            reply(.bitstamp, #"{"event":"bts:subscribe","data":{"channel":"\#(name)"}}"#)
        }
        #expect(channel("live_trades_btcusd").added == .init(trades: [.usd]))
        #expect(channel("live_trades_btcxyz").added == .init())
        #expect(channel("live_trades_btcxyz").texts.first?.contains("bts:subscription_succeeded") == true)
        #expect(channel("live_trades_BTCUSD").texts.first?.contains("Invalid channel provided.") == true)
        #expect(reply(.bitstamp, "{").texts.first?.contains("Incorrect JSON format.") == true)
        #expect(reply(.bitstamp, "{}").texts.first?.contains("Bad subscription string.") == true)
    }

    @Test func `a burst has one time and falling prices`() {
        let burst = trade.burst(of: 3)
        #expect(burst.map(\.dollars) == ["68900.5", "68900.49", "68900.48"])
        #expect(burst.map(\.number) == [3, 4, 5])
        #expect(Set(burst.map(\.nanoseconds)).count == 1)
    }
}
