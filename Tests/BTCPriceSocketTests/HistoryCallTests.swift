import BTCPriceCore
import Testing

@testable import BTCPriceSocket

@Suite struct HistoryCallTests {
    private func read(_ method: String, _ parameters: String, more: Bool = false) throws -> Result<
        PriceCall, PriceCall.Refusal
    >? {
        let text =
            #"{"method":"io.btcpriced.History.\#(method)","parameters":\#(parameters)\#(more ? #","more":true"# : "")}"#
        return PriceCall.read(try Call(decoding: Array(text.utf8)[...]))
    }

    @Test(arguments: [
        HistoryCall.getHistory(HistoryQuery()),
        .getHistory(
            HistoryQuery(
                currency: "EUR", from: Timestamp(milliseconds: 1), to: Timestamp(milliseconds: 99_000), step: .day,
                limit: 7,
                more: true)),
        .getPriceAt(Timestamp(milliseconds: 1_724_596_200_000)), .getPriceAt(Timestamp(milliseconds: 0), "JPY"),
        .getPricesAt([Timestamp(milliseconds: 0), Timestamp(milliseconds: -1)], "JPY", fetch: true),
        .getPricesAt([Timestamp](repeating: Timestamp(milliseconds: 9_999_999_999_999), count: 400)),
        .getDay(), .getDay("EUR"), .getEvents(EventQuery()),
        .getEvents(
            EventQuery(
                currency: "EUR", from: Timestamp(milliseconds: 1000), to: Timestamp(milliseconds: 99_000),
                after: Timestamp(milliseconds: 5000))),
    ])
    func `a call is read back unchanged`(call: HistoryCall) throws {
        let bytes = call.call.encoded().dropLast()
        #expect(bytes.count < ServerLimits(connections: 1).messageBytes)
        #expect(try PriceCall.read(Call(decoding: bytes))?.get() == .history(call))
        #expect(PriceCall.history(call).method.name == call.call.method.split(separator: ".").last.map(String.init))
    }

    @Test(arguments: [
        ("GetHistory", #"{"step":"week"}"#, "step"), ("GetHistory", #"{"limit":0}"#, "limit"),
        ("GetHistory", #"{"limit":-1}"#, "limit"),
        ("GetHistory", #"{"from":"yesterday"}"#, "from"), ("GetHistory", #"{"to":9223372036854775807}"#, "to"),
        ("GetHistory", #"{"currency":7}"#, "currency"), ("GetHistory", #"{"since":1}"#, "since"),
        ("GetHistory", #"{"time":1}"#, "time"),
        ("GetPriceAt", "{}", "time"), ("GetPriceAt", #"{"time":null}"#, "time"),
        ("GetPriceAt", #"{"time":1.5}"#, "time"),
        ("GetPricesAt", "{}", "times"), ("GetPricesAt", #"{"times":[]}"#, "times"),
        ("GetPricesAt", #"{"times":[1,null]}"#, "times"), ("GetPricesAt", #"{"times":[1],"time":1}"#, "time"),
        ("GetPricesAt", #"{"times":[1\#(String(repeating: ",1", count: 400))]}"#, "times"),
        ("GetDay", #"{"currency":["USD"]}"#, "currency"), ("GetDay", #"{"time":1}"#, "time"),
    ])
    func `a wrong parameter is named`(method: String, parameters: String, wrong: String) throws {
        guard case .failure(let refusal)? = try read(method, parameters) else {
            Issue.record("it is accepted")
            return
        }
        #expect(refusal.reply == .invalidParameter(JSONValue(.string(wrong))))
    }

    @Test func `null means the default, and another method is not a history call`() throws {
        let all = #"{"currency":null,"from":null,"to":null,"step":null,"limit":null}"#
        #expect(try read("GetHistory", all)?.get() == .history(.getHistory(HistoryQuery())))
        #expect(try read("GetHistory", "{}", more: true)?.get() == .history(.getHistory(HistoryQuery(more: true))))
        #expect(try read("Forget", "{}") == nil)
    }

    @Test func `a candle and a day are read back unchanged`() throws {
        let candle = Candle(
            start: 1_724_596_200, open: 3, high: 5, low: 2, close: 4, ticks: 60, fresh: 58, origin: "kraken")
        #expect(try Candle(json: JSONValue(.object(candle.json))) == candle)
        var part = candle
        (part.covered, part.doubtful, part.single) = (38 * 60 + 7, 2, 3)
        #expect(try Candle(json: JSONValue(.object(part.json))) == part)
        #expect(
            JSON.object(part.json).text.hasSuffix(
                #","origin":"kraken","coveredMinutes":38,"doubtful":2,"coveredSeconds":2287,"single":3}"#))
        for (name, wrong) in [
            ("coveredMinutes", Int64(0)), ("coveredMinutes", 1441), ("doubtful", 59), ("doubtful", -1),
            ("coveredSeconds", 0), ("coveredSeconds", 86_401), ("single", 59),
        ] {
            var json = part.json
            json[name] = .integer(wrong)
            #expect(throws: JSONFieldError.self, "\(name) \(wrong)") { try Candle(json: JSONValue(.object(json))) }
        }
        // Version 1.0.0 sends minutes only.
        var old = part.json
        (old["coveredSeconds"], old["single"]) = (nil, nil)
        #expect(try Candle(json: JSONValue(.object(old))).covered == 38 * 60)
        let day = PriceDay(
            since: Timestamp(milliseconds: 1000), open: 100, high: 130, low: 90, close: 99, isBackfilled: true,
            until: Timestamp(milliseconds: 9000), coveredMinutes: 700)
        #expect(try PriceDay(json: JSONValue(.object(day.json))) == day)
        #expect(
            JSON.object(day.json).text
                == #"{"since":1000,"open":"100","high":"130","low":"90","change":"-1","changePercent":"-1","backfilled":true,"until":9000,"coveredMinutes":700}"#
        )
        #expect(PriceDay(since: day.since, open: 0, high: 0, low: 0, close: 0).changePercent == 0)
    }

    @Test(arguments: [(Int64(0), Int64(3)), (29, 3), (30, 4), (59, 4)])
    func `the price at a moment is the nearer one of the first and the last price`(second: Int64, expected: Int64)
        throws
    {
        let candle = Candle(start: 600, open: 3, high: 5, low: 2, close: 4)
        let known = PriceAt(candle, .minute, at: 600 + second)
        #expect(known.price == Price(expected))
        #expect(try PriceAt(json: Reply.priceAt(known, in: "USD").parameters) == known)
        #expect(PriceAt(candle, .second, at: 600).price == 3)
        for moment in [
            MomentMessage(Timestamp(milliseconds: 600_000), known),
            MomentMessage(Timestamp(milliseconds: 1), nil, notFetched: "no exchange has it"),
        ] { #expect(try MomentMessage(json: JSONValue(.object(moment.json))) == moment) }
    }
}
