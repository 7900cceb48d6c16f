import BTCPriceCore
import CLinux
import TestSupport
import Testing

@testable import BTCPriceSocket

/// A connection without a socket.
@Suite struct ConnectionTests {
    /// A connection with its reply cache, and everything that it has written.
    struct Client {
        var connection: Connection
        var replies: ReplyCache
        var written = ""
        var now: BootTime = 0

        init(holding state: PriceState? = sample(1), limits: ServerLimits = limits()) {
            connection = Connection(limits: limits, at: 0)
            replies = ConnectionTests.replies(limits)
            if let state {
                replies.show(
                    [(state, UInt64(state.ticks.number))], of: replies.instance, version: UInt64(state.ticks.number))
            }
        }

        mutating func sends(_ text: String) -> Connection.Request? { sends(Array(text.utf8)) }

        mutating func sends(_ bytes: [UInt8]) -> Connection.Request? {
            connection.received(bytes[...], at: now)
            return connection.proceed(replies: &replies, at: now)
        }

        /// Takes all pending output, `step` bytes at a time.
        mutating func reads(step: Int = .max) -> [String] {
            while connection.wantsOutput { takes(step) }
            defer { written = "" }
            return written.split(separator: "\0").map(String.init)
        }

        mutating func takes(_ step: Int) {
            let part = connection.withOutput { Array($0.prefix(step)) }
            written += String(decoding: part, as: UTF8.self)
            connection.wrote(part.count, at: now)
        }
    }

    static func replies(_ limits: ServerLimits = limits()) -> ReplyCache {
        ReplyCache(instance: "i", limits: limits)
    }

    static func limits() -> ServerLimits {
        ServerLimits(
            connections: 10, messageBytes: 1000, pendingCalls: 2, timeout: .seconds(3), sendBufferBytes: 4096,
            watchersPerTurn: 2)
    }

    static func sample(_ tick: Int64, _ currency: String = "USD") -> PriceState {
        PriceState(
            tick: tick, freshness: .fresh,
            quote: PriceQuote(
                value: Price(tick), currency: currency, timestamp: Timestamp(milliseconds: 0), source: "binance",
                market: "BTC/USDT"),
            observedBoottime: 0, confirmation: .single, failure: nil, currency: currency, freshUntil: 2000)
    }

    static let getPrice = #"{"method":"io.btcpriced.Price.GetPrice"}"# + "\0"
    static let watchPrice = #"{"method":"io.btcpriced.Price.WatchPrice","more":true}"# + "\0"

    private func ticks(_ replies: [String]) -> [Int64] {
        replies.compactMap { text in
            (try? Reply(decoding: Array(text.utf8)[...]))?.parameters["state"]?.objectValue?["tick"]?.integerValue
        }
    }

    private func error(_ replies: [String]) -> String? {
        replies.first.flatMap { try? Reply(decoding: Array($0.utf8)[...]) }?.error
    }

    @Test func `a call gets the held price`() {
        var client = Client()
        #expect(client.sends(Self.getPrice) == nil)
        #expect(ticks(client.reads(step: 7)) == [1])
        #expect(client.connection.wantsInput)
    }

    @Test func `a call byte by byte is the same call`() {
        var client = Client()
        for character in Self.getPrice { #expect(client.sends(String(character)) == nil) }
        #expect(ticks(client.reads()) == [1])
    }

    @Test func `pipelined calls get their replies in order, also around a fetch`() throws {
        var client = Client()
        let fetch = #"{"method":"io.btcpriced.Price.GetPrice","parameters":{"cachePolicy":"noCache"}}"# + "\0"
        let info = #"{"method":"org.varlink.service.GetInfo"}"# + "\0"
        #expect(client.sends(Self.getPrice + fetch + info + Self.getPrice) == .ask(.getPrice(.noCache)))
        #expect(ticks(client.reads()) == [1])
        #expect(!client.connection.wantsInput, "nothing else is looked at while the fetch is under way")
        client.connection.answered(
            CallAnswer(.state(StateMessage(instance: "i", state: Self.sample(7)))), replies: &client.replies, at: 0)
        var replies = client.reads()
        #expect(client.connection.proceed(replies: &client.replies, at: 0) == nil)
        replies += client.reads()
        #expect(replies.count == 3)
        #expect(ticks([replies[0]]) == [7])
        #expect(replies[1].contains("\"product\":\"btc-priced\""))
        #expect(ticks([replies[2]]) == [1])
    }

    @Test func `the next of several replies is made after the client has read the last one`() throws {
        var client = Client()
        let history = #"{"method":"io.btcpriced.History.GetHistory","more":true}"# + "\0"
        let first = PriceCall.history(.getHistory(HistoryQuery(more: true)))
        let second = PriceCall.history(.getHistory(HistoryQuery(from: Timestamp(milliseconds: 60_000), more: true)))
        #expect(client.sends(history + Self.getPrice) == .ask(first))
        client.connection.answered(
            CallAnswer(Reply(parameters: ["part": .integer(1)]), next: second), replies: &client.replies, at: 0)
        #expect(client.connection.proceed(replies: &client.replies, at: 0) == nil, "it is not taken yet")
        #expect(client.reads() == [#"{"parameters":{"part":1},"continues":true}"#])
        #expect(client.connection.hasCallsWaiting)
        #expect(client.connection.proceed(replies: &client.replies, at: 0) == .ask(second))
        client.connection.answered(
            CallAnswer(Reply(parameters: ["part": .integer(2)])), replies: &client.replies, at: 0)
        var replies = client.reads()
        #expect(client.connection.proceed(replies: &client.replies, at: 0) == nil)
        replies += client.reads()
        #expect(replies.first == #"{"parameters":{"part":2}}"#)
        #expect(ticks(Array(replies.dropFirst())) == [1])
        #expect(client.replies.counts.replied.succeeded(.getHistory) == 1)
    }

    @Test func `without a held price a plain call fetches`() {
        var client = Client(holding: nil)
        #expect(client.sends(Self.getPrice) == .ask(.getPrice(.localFirst)))
    }

    @Test func `a oneway call gets no reply`() {
        var client = Client()
        let oneway = Self.getPrice.replacing("}\0", with: ",\"oneway\":true}\0")
        #expect(client.sends(oneway + Self.getPrice) == nil)
        #expect(ticks(client.reads()) == [1])
        let fetch =
            #"{"method":"io.btcpriced.Price.GetPrice","parameters":{"cachePolicy":"noCache"},"oneway":true}"# + "\0"
        #expect(client.sends(fetch) == .ask(.getPrice(.noCache)))
        client.connection.answered(
            CallAnswer(.state(StateMessage(instance: "i", state: Self.sample(7)))), replies: &client.replies, at: 0)
        #expect(client.reads().isEmpty)
        #expect(client.connection.wantsInput)
    }

    @Test(arguments: [
        ("io.btcpriced.Price.Nope", "org.varlink.service.MethodNotFound"),
        ("io.other.Thing.Get", "org.varlink.service.InterfaceNotFound"),
        ("Nonsense", "org.varlink.service.MethodNotFound"),
        ("io.btcpriced.Price.WatchPrice", "org.varlink.service.ExpectedMore"),
    ])
    func `an unknown call is an error, and the connection continues`(method: String, expected: String) {
        var client = Client()
        #expect(client.sends(#"{"method":"\#(method)"}"# + "\0") == nil)
        #expect(error(client.reads()) == expected)
        #expect(client.sends(Self.getPrice) == nil)
        #expect(ticks(client.reads()) == [1])
    }

    @Test(arguments: ["nonsense\0", "[]\0", "{\"method\":1}\0", "\0", String(repeating: "x", count: 1001)])
    func `an invalid message ends the connection, after the replies to earlier calls`(junk: String) {
        var client = Client()
        #expect(client.sends(Self.getPrice + junk) == nil)
        #expect(!client.connection.wantsInput)
        #expect(!client.connection.isFinished)
        #expect(ticks(client.reads()) == [1])
        #expect(client.connection.isFinished)
    }

    @Test func `a few calls are processed in a turn, and the next ones after their replies were read`() {
        var client = Client()
        #expect(client.sends(String(repeating: Self.getPrice, count: 100)) == nil)
        var turns: [Int] = []
        while client.connection.wantsOutput {
            #expect(!client.connection.wantsInput)
            #expect(client.connection.proceed(replies: &client.replies, at: 0) == nil, "replies are unread")
            turns.append(client.reads().count)
            #expect(client.connection.proceed(replies: &client.replies, at: 0) == nil)
        }
        #expect(turns == Array(repeating: 8, count: 12) + [4])
        #expect(client.connection.wantsInput)
    }

    @Test func `a client that has shut down its sending side gets the replies to all calls`() {
        var client = Client()
        #expect(client.sends(String(repeating: Self.getPrice, count: 20)) == nil)
        client.connection.inputEnded()
        var answered = 0
        while !client.connection.isFinished {
            answered += client.reads().count
            #expect(client.connection.proceed(replies: &client.replies, at: 0) == nil)
        }
        #expect(answered == 20)
    }

    @Test func `what is held counts replies and calls, and nothing is held once all are answered and read`() {
        var client = Client()
        #expect(client.sends(String(repeating: Self.getPrice, count: 12)) == nil)
        let held = client.connection.heldBytes
        #expect(held > 8 * 300 + 4 * Self.getPrice.utf8.count && held < 8 * 1500)
        _ = client.reads()
        #expect(client.connection.proceed(replies: &client.replies, at: 0) == nil)
        _ = client.reads()
        #expect(client.connection.proceed(replies: &client.replies, at: 0) == nil)
        #expect(client.connection.heldBytes == 0)
        _ = client.sends(String(Self.getPrice.prefix(20)))
        #expect(client.connection.heldBytes == 20)
    }

    @Test func `calls that are cut by the reads are not counted as held once they are answered`() {
        var client = Client()
        let calls = Array(String(repeating: Self.getPrice, count: 1000).utf8)
        for start in stride(from: 0, to: calls.count, by: 500) {
            _ = client.sends(Array(calls[start..<min(start + 500, calls.count)]))
            repeat {
                _ = client.reads()
            } while client.connection.proceed(replies: &client.replies, at: 0) != nil || client.connection.wantsOutput
            #expect(client.connection.heldBytes <= 2 * Self.getPrice.utf8.count)
        }
        #expect(client.connection.heldBytes == 0)
    }

    @Test func `an error repeats at most 64 characters of a name`() throws {
        let long = String(repeating: "x", count: 900)
        for text in [
            #"{"method":"\#(long).B"}"#, #"{"method":"\#(long)"}"#,
            #"{"method":"io.btcpriced.Price.GetPrice","parameters":{"\#(long)":1}}"#,
            #"{"method":"io.btcpriced.Price.GetPrice","parameters":{"currency":"\#(long)"}}"#,
        ] {
            var client = Client()
            _ = client.sends(text + "\0")
            let reply = client.reads()[0]
            #expect(reply.utf8.count < 200 && reply.contains("xxx…\""), "\(reply)")
        }
    }

    @Test func `a client that has shut down its sending side still gets its reply`() {
        var client = Client()
        #expect(client.sends(Self.getPrice) == nil)
        client.connection.inputEnded()
        #expect(!client.connection.isFinished)
        #expect(ticks(client.reads()) == [1])
        #expect(client.connection.isFinished)
    }

    @Test func `a watcher gets the current state and then each one`() {
        var client = Client()
        #expect(client.sends(Self.watchPrice) == .watch(["USD"]))
        client.connection.watch(
            [(client.replies.reply(nil, continues: true, at: 0), "USD")], version: 1, at: 0)
        #expect(client.connection.isWatching)
        #expect(!client.connection.wantsInput)
        var seen = ticks(client.reads())
        for tick in 2...5 as ClosedRange<Int64> {
            client.connection.publish(state(tick), Self.sample(tick), version: UInt64(tick), at: 0)
            seen += ticks(client.reads(step: 11))
        }
        #expect(seen == [1, 2, 3, 4, 5])
    }

    @Test func `a slow watcher gets the newest next, not a backlog`() {
        var client = Client()
        _ = client.sends(Self.watchPrice)
        client.connection.watch(
            [(client.replies.reply(nil, continues: true, at: 0), "USD")], version: 1, at: 0)
        // The watcher has read a part of the first state, which must be completed.
        client.takes(10)
        for tick in 2...1000 as ClosedRange<Int64> {
            client.connection.publish(state(tick), Self.sample(tick), version: UInt64(tick), at: 0)
        }
        #expect(ticks(client.reads()) == [1, 1000])
    }

    @Test func `a state waits until the one before of its currency was read, and then the newest is sent`() {
        var client = Client()
        _ = client.sends(Self.watchPrice)
        client.connection.watch([(state(1), "USD"), (state(2), "EUR")], version: 2, at: 0)
        var (isRead, seen) = (false, [Int64]())
        func write() {
            while client.connection.wantsOutput, client.connection.mayWrite({ isRead }) { client.takes(.max) }
            seen = ticks(client.written.split(separator: "\0").map(String.init))
        }
        write()
        #expect(seen == [1, 2], "one of each currency")
        for tick in 3...9 as ClosedRange<Int64> {
            client.connection.publish(state(tick), Self.sample(tick), version: UInt64(tick), at: 0)
            write()
        }
        #expect(seen == [1, 2])
        #expect(client.connection.interest == clinux_out | clinux_edge)
        isRead = true
        write()
        #expect(seen == [1, 2, 9])
        #expect(client.connection.interest == 0)
    }

    @Test func `a state is not sent twice`() {
        var client = Client()
        _ = client.sends(Self.watchPrice)
        client.connection.watch([(state(5), "USD")], version: 5, at: 0)
        client.connection.publish(state(4), Self.sample(4), version: 4, at: 0)
        client.connection.publish(state(5), Self.sample(5), version: 5, at: 0)
        #expect(ticks(client.reads()) == [5])
    }

    @Test func `a slow watcher of two currencies gets the newest of each`() {
        var client = Client()
        let euros = #"{"method":"io.btcpriced.Price.WatchPrice","more":true,"parameters":{"currencies":["EUR","USD"]}}"#
        client.replies.show([(Self.sample(1), 1), (Self.sample(2, "EUR"), 2)], of: client.replies.instance, version: 2)
        #expect(client.sends(euros + "\0") == .watch(["EUR", "USD"]))
        client.connection.watch([(state(2), "EUR"), (state(1), "USD")], version: 2, at: 0)
        client.takes(10)
        for tick in 3...1000 as ClosedRange<Int64> {
            let sample = Self.sample(tick, tick % 10 == 0 ? "EUR" : "USD")
            client.connection.publish(state(tick), sample, version: UInt64(tick), at: 0)
        }
        client.connection.publish(state(2000), Self.sample(2000, "CHF"), version: 2000, at: 0)
        // The first state must be completed.
        #expect(ticks(client.reads()) == [2, 999, 1000])
    }

    @Test func `each currency has its own price, and the error for an unknown one lists the known ones`() throws {
        var client = Client()
        client.replies.show([(Self.sample(1), 1), (Self.sample(2, "EUR"), 2)], of: client.replies.instance, version: 2)
        func call(_ method: String, _ parameters: String) -> String {
            #"{"method":"io.btcpriced.Price.\#(method)","more":true,"parameters":{\#(parameters)}}"# + "\0"
        }
        #expect(client.sends(Self.getPrice + call("GetPrice", #""currency":"EUR""#)) == nil)
        #expect(ticks(client.reads()) == [1, 2])
        for text in [
            call("GetPrice", #""currency":"CHF""#), call("WatchPrice", #""currencies":["USD","CHF"]"#),
            call("ListSources", #""currency":"CHF""#),
        ] {
            #expect(client.sends(text) == nil)
            let reply = try Reply(decoding: Array(client.reads()[0].utf8)[...])
            #expect(reply.error == PriceInterface.unknownCurrency)
            #expect(try reply.parameters.required("known", .texts) == ["USD", "EUR"])
        }
    }

    @Test func `a state that has become old is sent as stale`() throws {
        var replies = Self.replies()
        replies.show([(Self.sample(1), 1)], of: replies.instance, version: 1)
        func freshness(at boottime: BootTime) throws -> String? {
            let bytes = replies.reply(nil, continues: false, at: boottime)
            return try Reply(decoding: bytes.dropLast()).parameters["state"]?.objectValue?["freshness"]?.stringValue
        }
        #expect(try freshness(at: 2000) == "fresh")
        #expect(try freshness(at: 2001) == "stale")
        replies.show([(Self.sample(2), 2)], of: replies.instance, version: 2)
        #expect(try freshness(at: 0) == "fresh")
    }

    // MARK: Time-outs

    @Test func `time-outs apply to a call, to the rest of a message, and to reading`() {
        var client = Client()
        func overdue(at now: BootTime) -> Connection.Patience? {
            client.connection.overdue(client.replies.limits, at: now)
        }
        #expect(overdue(at: 59_999) == nil)
        #expect(overdue(at: 60_000) == .idle)
        client.now = 50_000
        _ = client.sends(Self.getPrice)
        _ = client.reads()
        #expect(overdue(at: 109_999) == nil)
        #expect(overdue(at: 110_000) == .idle, "counted from the call")
        client.now = 100_000
        for character in Self.getPrice.prefix(20) {
            _ = client.sends(String(character))
            client.now += 100
        }
        #expect(overdue(at: 102_999) == nil)
        #expect(overdue(at: 103_000) == .message, "counted from its first byte, however often another one comes")
        _ = client.sends(String(Self.getPrice.dropFirst(20)))
        #expect(client.now == 102_000)
        #expect(overdue(at: 107_999) == nil)
        #expect(overdue(at: 108_000) == .write)
        client.now = 107_000
        client.takes(5)
        #expect(overdue(at: 112_999) == nil, "counted from the last byte that it took")
        #expect(overdue(at: 113_000) == .write)
        _ = client.reads()
        #expect(overdue(at: 113_000) == nil)
    }

    @Test func `a watcher's time-out applies only to unread output, and a pending reply has none`() {
        var client = Client()
        _ = client.sends(Self.watchPrice)
        client.connection.watch(
            [(client.replies.reply(nil, continues: true, at: 0), "USD")], version: 1, at: 0)
        _ = client.reads()
        func overdue(at now: BootTime) -> Connection.Patience? {
            client.connection.overdue(client.replies.limits, at: now)
        }
        #expect(overdue(at: 1_000_000) == nil)
        client.connection.publish(state(2), Self.sample(2), version: 2, at: 1_000_000)
        client.connection.publish(state(3), Self.sample(3), version: 3, at: 1_005_000)
        #expect(overdue(at: 1_005_999) == nil)
        #expect(overdue(at: 1_006_000) == .write, "a newer one in its place is no sign of life")
        var asking = Client(holding: nil)
        _ = asking.sends(Self.getPrice)
        #expect(asking.connection.overdue(asking.replies.limits, at: 1_000_000) == nil)
    }

    @Test(arguments: [
        #"{"method":"io.btcpriced.Price.GetPrice","parameters":{}}"#,
        #"{"method": "io.btcpriced.Price.GetPrice", "parameters": {}}"#,
        #" { "parameters" : { "cachePolicy" : null } , "method" : "io.btcpriced.Price.GetPric\u0065", "more": false }"#,
    ])
    func `the same call gets the same reply, however it is written`(text: String) {
        var (plain, other) = (Client(), Client())
        #expect(plain.sends(Self.getPrice + Self.getPrice) == nil)
        #expect(other.sends(text + "\0" + text + "\0") == nil)
        #expect(plain.reads() == other.reads())
        #expect(other.replies.counts.calls == 2 && other.replies.counts.priceCalls == 2)
    }

    private func state(_ tick: Int64) -> [UInt8] {
        ReplyCache.reply(Self.sample(tick), instance: "i", continues: true, at: 0)
    }

    // MARK: The greatest age

    static func getPrice(within maxAge: Int64) -> String {
        #"{"method":"io.btcpriced.Price.GetPrice","parameters":{"maxAgeMs":\#(maxAge)}}"# + "\0"
    }

    @Test func `a price that is too old is refused with its age, and never sent`() throws {
        var client = Client()
        client.now = 1500
        #expect(client.sends(Self.getPrice(within: 1500) + Self.getPrice(within: 1499)) == nil)
        let replies = client.reads()
        #expect(ticks(replies) == [1])
        #expect(
            replies.last
                == #"{"error":"io.btcpriced.Price.TooOld","parameters":{"ageMs":1500,"reason":null}}"#)
        #expect(client.replies.counts.replied.failed(.getPrice) == 1)
        var unknown = Self.sample(1)
        unknown.price?.observedBoottime = nil
        unknown.ticks.failure = "no tick"
        client = Client(holding: unknown)
        #expect(client.sends(Self.getPrice(within: 1 << 40)) == nil)
        #expect(
            client.reads() == [
                #"{"error":"io.btcpriced.Price.TooOld","parameters":{"ageMs":null,"reason":"no tick"}}"#
            ])
    }

    @Test func `before the first tick after a pause, a price that is too old is requested, unless a user has paused`() {
        var idle = Self.sample(1)
        (idle.ticks.awaitsTick, idle.ticks.ticking) = (true, .idle)
        var client = Client(holding: idle)
        client.now = 5000
        #expect(client.sends(Self.getPrice(within: 1000)) == .ask(.getPrice(.localFirst, maxAge: 1000)))
        #expect(client.replies.counts.priceCalls == 1)
        idle.ticks.ticking = .paused
        client = Client(holding: idle)
        client.now = 5000
        #expect(client.sends(Self.getPrice(within: 1000)) == nil)
        #expect(error(client.reads()) == "io.btcpriced.Price.TooOld")
    }

    @Test func `a watch with a greatest age ends with the first price that is older`() {
        var client = Client()
        let watch = #"{"method":"io.btcpriced.Price.WatchPrice","more":true,"parameters":{"maxAgeMs":1000}}"# + "\0"
        client.now = 2000
        #expect(client.sends(watch) == nil, "it does not begin")
        #expect(error(client.reads()) == "io.btcpriced.Price.TooOld")
        client.now = 500
        #expect(client.sends(watch) == .watch(["USD"], maxAge: 1000))
        client.connection.watch([(state(1), "USD")], maxAge: 1000, version: 1, at: 500)
        client.connection.publish(state(2), Self.sample(2), version: 2, at: 1000)
        var idle = Self.sample(3)
        (idle.ticks.awaitsTick, idle.ticks.ticking) = (true, .running)
        client.connection.publish(state(3), idle, version: 3, at: 1500)
        #expect(ticks(client.reads()) == [2], "the first tick is still to come")
        #expect(client.connection.isWatching)
        client.connection.publish(state(4), Self.sample(4), version: 4, at: 1500)
        client.connection.publish(state(5), Self.sample(5), version: 5, at: 1000)
        #expect(!client.connection.isFinished)
        let replies = client.reads()
        #expect(replies.count == 1 && error(replies) == "io.btcpriced.Price.TooOld")
        #expect(client.connection.isFinished, "the connection is closed")
    }

    @Test func `replies share an encoding, with the time at which it was made, for a tenth of a second`() throws {
        var replies = Self.replies()
        replies.show([(Self.sample(1), 1)], of: replies.instance, version: 1)
        func boottime(at time: BootTime) throws -> Int64? {
            let reply = try Reply(decoding: replies.reply(nil, continues: false, at: time).dropLast())
            return reply.parameters["state"]?["boottime"]?.integerValue
        }
        #expect(try boottime(at: 1000) == 1000)
        #expect(try boottime(at: 1100) == 1000)
        #expect(try boottime(at: 1101) == 1101)
    }
}
