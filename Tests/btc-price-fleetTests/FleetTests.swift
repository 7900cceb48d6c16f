import BTCPriceCore
import BTCPriceSocket
import TestSupport
import Testing

@testable import btc_price_fleet

/// A time in seconds after a fixed moment, the same on the clocks of all machines.
private func time(_ seconds: Double) -> ObservationTime {
    ObservationTime(
        wall: Timestamp(milliseconds: 1_787_659_200_000 + Int64(seconds * 1000)),
        boottime: 1_000_000 + Int64(seconds * 1000))
}

private func state(
    _ value: Price, at seconds: Double, currency: String = "USD", change: (inout PriceState) -> Void = { _ in }
)
    -> StateMessage
{
    var state = PriceState(
        tick: 1, freshness: .fresh,
        quote: PriceQuote(
            value: value, currency: currency, timestamp: time(seconds).wall, source: "binance", market: "BTC/USDT"),
        observedBoottime: time(seconds).boottime, confirmation: .confirmed, failure: nil, currency: currency)
    change(&state)
    return StateMessage(instance: "theirs", state: state)
}

/// A message from the publisher alpha.
private func message(
    _ sequence: Int64, at seconds: Double, _ value: Price = 68_900, bootID: String = "one", publisher: String = "alpha",
    of topic: String = "alpha", isRetained: Bool = false, change: (inout PriceState) -> Void = { _ in }
) -> BrokerMessage {
    let quote = QuoteMessage(
        state: state(value, at: seconds, change: change), publisher: publisher, bootID: bootID, sequence: sequence,
        publishedAt: time(seconds).wall, interval: 1000, age: 0)
    return BrokerMessage(
        topic: "btcpriced/v1/\(topic)/quote/BTC-USD", payload: quote.payload(at: time(seconds)), isRetained: isRetained)
}

/// A follower with its clients.
private struct Host {
    var following: Following
    var states: [String: StateMessage] = [:]
    var came: [String] = []
    var counts: [String: Int] = [:]
    var refused: [String?] = []
    var same: [[String]] = []
    var sources: [String] = []
    var filters: [String] = []
    var removed: [String] = []
    /// The filters that were only used to get what the broker has kept.
    var looked: [String] = []
    var dropped: [String] = []

    init(_ named: [String] = ["alpha"]) { following = Following(named: named) }

    mutating func perform(_ actions: [BrokerAction<Following.Effect>]) {
        for action in actions {
            switch action {
            case .subscribe(let filter): filters.append(filter)
            case .unsubscribe(let filter) where filters.last == filter: looked.append(filters.removeLast())
            case .unsubscribe(let filter): removed.append(filter)
            case .effect(.state(let name, let message, _)): states["\(name) \(message.state.currency)"] = message
            case .effect(.dropped(let name, let currency)): dropped.append("\(name) \(currency)")
            case .effect(.came(let name)): came.append(name)
            case .effect(.counted(_, let kind)): counts[kind, default: 0] += 1
            case .effect(.refused(_, let reason)): refused.append(reason)
            case .effect(.sameInstance(let first, let second)): same.append([first, second])
            case .effect(.sources(_, let reports)): sources = reports.map(\.name)
            case .publish: break
            }
        }
    }

    mutating func connect(at seconds: Double) { perform(following.connected(at: time(seconds))) }
    mutating func lose(_ reason: String, at seconds: Double) {
        perform(following.disconnected(reason, at: time(seconds)))
    }
    mutating func receive(_ message: BrokerMessage, at seconds: Double) {
        perform(following.received(message, at: time(seconds)))
    }
    mutating func wait(until seconds: Double) { perform(following.proceed(canPublish: true, at: time(seconds))) }

    var alpha: PriceState { states["alpha USD"]?.state ?? .empty() }
}

@Suite struct FollowingTests {
    @Test func `a message has a price, which three intervals without a message make stale`() {
        var host = Host()
        host.lose("no connection yet", at: -1)
        #expect(host.alpha.failure == "no connection yet")
        host.connect(at: 0)
        #expect(host.filters.contains("btcpriced/v1/alpha/quote/+"))
        #expect((host.alpha.freshness, host.alpha.failure) == (.none, "no message from alpha"))
        host.receive(message(1, at: 0), at: 0.01)
        #expect(host.alpha.age(at: time(1))?.isEstimate == true, "an estimate until the second message")
        host.receive(message(2, at: 1, 68_901), at: 1.01)
        #expect((host.alpha.freshness, host.alpha.quote?.value) == (.fresh, 68_901))
        #expect(host.alpha.age(at: time(2))?.isEstimate == false)
        #expect(host.states["alpha USD"]?.instance == "alpha/theirs")
        host.wait(until: 4)
        #expect(host.alpha.freshness == .fresh)
        #expect(host.following.deadline == time(4.01).boottime + 1)
        host.wait(until: 4.02)
        #expect((host.alpha.freshness, host.alpha.failure) == (.stale, "no message from alpha"))
        // The reason is shown as soon as it is known.
        host.lose("the broker is gone", at: 5)
        #expect(host.alpha.failure == "the broker is gone")
        host.connect(at: 6)
        host.receive(message(3, at: 6.9), at: 7)
        #expect(host.alpha.freshness == .fresh)
    }

    @Test func `a retained message is old: it is shown, but does not count as a price`() {
        var host = Host()
        host.connect(at: 3600)
        host.receive(message(5, at: 0, isRetained: true), at: 3600)
        #expect((host.alpha.freshness, host.alpha.quote?.value) == (.stale, 68_900))
        #expect(host.alpha.isOfUnknownAge)
        #expect(host.alpha.ageByWallClock(at: time(3600)) == .seconds(3600))
        // A retained message that was just published is a price at once.
        host.receive(message(6, at: 3601, isRetained: true), at: 3601.3)
        #expect(host.alpha.freshness == .fresh)
        // The same message again, after a reconnect, changes nothing.
        host.lose("gone", at: 3602)
        host.connect(at: 3602.5)
        host.receive(message(6, at: 3601, isRetained: true), at: 3602.5)
        #expect(host.counts == ["ok": 2])
    }

    @Test func `of several retained messages in sequence none is new`() {
        var host = Host()
        host.connect(at: 7200)
        host.receive(message(5, at: 0, isRetained: true), at: 7200)
        host.lose("gone", at: 7201)
        host.connect(at: 7202)
        host.receive(message(6, at: 6000, bootID: "two", isRetained: true), at: 7202)
        #expect((host.alpha.freshness, host.alpha.quote?.value) == (.stale, 68_900))
        #expect(host.alpha.isOfUnknownAge)
        // Retained messages do not change the measured delay of live ones either.
        for second in [8000.0, 8001] { host.receive(message(Int64(second), at: second, bootID: "three"), at: second) }
        host.receive(message(8002, at: 8002, bootID: "three", isRetained: true), at: 8004)
        host.receive(message(8005, at: 8005, bootID: "three"), at: 8005)
        #expect(host.alpha.age(at: time(8005))?.age == .zero)
        #expect(host.alpha.age(at: time(8005))?.isEstimate == false)
    }

    @Test func `a price that has been stale for hours has the age that its publisher reports`() {
        var host = Host()
        host.connect(at: 0)
        for second in 10_000..<10_700 {
            var old = QuoteMessage(
                state: state(68_900, at: 0) { ($0.ticks.freshness, $0.ticks.failure) = (.stale, "down") },
                publisher: "alpha",
                bootID: "b",
                sequence: Int64(second), publishedAt: time(Double(second)).wall, interval: 1000,
                age: Int64(second) * 1000)
            old.state.state.ticks.number = Int64(second)
            host.receive(
                BrokerMessage(
                    topic: "btcpriced/v1/alpha/quote/BTC-USD", payload: old.payload(at: time(Double(second))),
                    isRetained: false),
                at: Double(second))
        }
        let age = host.alpha.age(at: time(10_699))
        #expect(age?.age == .seconds(10_699))
        #expect(age?.isEstimate == false)
    }

    @Test func `after the correction of a clock that was ahead, its messages are accepted`() {
        var host = Host()
        host.connect(at: 3600)
        host.receive(message(1, at: 3600), at: 3600)
        host.receive(message(2, at: 1), at: 1)
        #expect(host.counts == ["ok": 2])
    }

    @Test func `a message that goes back, or is from the future or from long ago is refused`() {
        var host = Host()
        host.connect(at: 0)
        host.receive(message(10, at: 10), at: 10)
        let cases: [(BrokerMessage, String)] = [
            (message(10, at: 11, 1), "replayed"), (message(9, at: 11, 1), "replayed"),
            (message(11, at: 9, 1), "replayed"), (message(1, at: 9, 1, bootID: "two"), "replayed"),
            (message(11, at: 50, 1), "ahead"), (message(11, at: 12, 1, publisher: "beta"), "malformed"),
            (message(11, at: 12, 1) { $0.currency = "EUR" }, "malformed"),
            (BrokerMessage(topic: "btcpriced/v1/alpha/quote/BTC-USD", payload: Array("[".utf8)), "malformed"),
            (BrokerMessage(topic: "btcpriced/v1/alpha/quote/BTC-USD", payload: Array("{}".utf8)), "malformed"),
        ]
        for (message, kind) in cases {
            let before = host.counts[kind] ?? 0
            host.receive(message, at: 12)
            #expect(host.counts[kind] == before + 1, "\(message)")
            #expect(host.alpha.quote?.value == 68_900)
        }
        #expect(host.refused.count == 1, "told once")
        host.receive(message(11, at: 12), at: 12)
        #expect(host.refused.count == 1, "believed again only after a while")
        // A restart of the publisher, and then a recorded message for a follower without a memory.
        host.receive(message(1, at: 13, 2, bootID: "two"), at: 13)
        #expect(host.alpha.quote?.value == 2)
        var newcomer = Host()
        newcomer.connect(at: 86_400)
        for second in 1...10 {
            newcomer.receive(message(Int64(second), at: Double(second)), at: 86_400 + Double(second))
        }
        #expect(newcomer.counts == ["late": 10])
        #expect((newcomer.alpha.freshness, newcomer.alpha.isOfUnknownAge) == (.stale, true))
        let late = "its message was published 86400 s ago: a broker has kept it, or a clock is wrong"
        #expect(newcomer.alpha.failure == late)
    }

    @Test func `a message that a bridge delivers late shows the last price, and hides no better reason`() {
        var host = Host()
        host.connect(at: 0)
        #expect(host.looked == ["btcpriced/v1/alpha/quote/BTC-USD"])
        host.receive(
            BrokerMessage(topic: "btcpriced/v1/alpha/status", payload: Array(#"{"state":"offline"}"#.utf8)), at: 60)
        host.receive(message(1, at: 0), at: 60)
        #expect((host.alpha.freshness, host.alpha.failure) == (.stale, "alpha is offline"))
        #expect((host.alpha.quote?.value, host.refused.isEmpty) == (68_900, true))
        // One that comes in time is a price.
        host.receive(message(2, at: 61), at: 61)
        #expect(host.alpha.freshness == .fresh)
    }

    @Test func `a currency whose retained message was removed is dropped, and the dollar has no price`() {
        var host = Host()
        host.connect(at: 0)
        host.receive(message(1, at: 0), at: 0)
        let euros = QuoteMessage(
            state: state(1, at: 0, currency: "EUR"), publisher: "alpha", bootID: "one", sequence: 2,
            publishedAt: time(0).wall, interval: 1000, age: 0)
        let topic = "btcpriced/v1/alpha/quote/BTC-EUR"
        host.receive(BrokerMessage(topic: topic, payload: euros.payload(at: time(0)), isRetained: false), at: 0)
        #expect(host.states.keys.sorted() == ["alpha EUR", "alpha USD"])
        host.receive(BrokerMessage(topic: topic, payload: [], isRetained: false), at: 1)
        #expect((host.dropped, host.refused.isEmpty) == (["alpha EUR"], true))
        host.receive(BrokerMessage(topic: "btcpriced/v1/alpha/quote/BTC-USD", payload: [], isRetained: false), at: 1)
        #expect((host.alpha.freshness, host.alpha.failure) == (.none, "alpha does not keep this currency"))
        // An older message stays refused.
        host.receive(message(1, at: 0, 5), at: 1)
        #expect((host.alpha.freshness, host.counts["replayed"]) == (.none, 1))
        host.lose("gone", at: 1.5)
        #expect(host.states["alpha EUR"]?.state.failure != "gone", "it is dropped")
        host.receive(message(3, at: 2), at: 2)
        #expect(host.alpha.freshness == .fresh)
    }

    @Test func `a stale or unconfirmed price stays stale or unconfirmed`() {
        var host = Host()
        host.connect(at: 0)
        host.receive(
            message(1, at: 0) { ($0.ticks.freshness, $0.ticks.failure) = (.stale, "all sources are down") }, at: 0)
        #expect((host.alpha.freshness, host.alpha.failure) == (.stale, "all sources are down"))
        host.receive(message(2, at: 1) { $0.price?.confirmation = .unconfirmed }, at: 1)
        #expect(host.alpha.confirmation == .unconfirmed)
    }

    @Test func `a delayed message has its real age`() {
        var host = Host()
        host.connect(at: 0)
        for second in 0...5 { host.receive(message(Int64(second) + 1, at: Double(second)), at: Double(second) + 0.25) }
        host.receive(message(7, at: 6), at: 8.25)
        #expect(host.alpha.age(at: time(8.25))?.age == .seconds(2))
        host.receive(message(8, at: 7), at: 11)
        #expect(host.alpha.freshness == .stale)
    }

    @Test func `an offline publisher is reported, and the age decides`() {
        var host = Host()
        host.connect(at: 0)
        let offline = BrokerMessage(topic: "btcpriced/v1/alpha/status", payload: Array(#"{"state":"offline"}"#.utf8))
        host.receive(offline, at: 0)
        #expect(host.alpha.failure == "alpha is offline")
        host.receive(message(1, at: 1), at: 1)
        host.receive(offline, at: 1.1)
        #expect(host.alpha.freshness == .fresh)
        host.wait(until: 4.1)
        #expect((host.alpha.freshness, host.alpha.failure) == (.stale, "alpha is offline"))
    }

    @Test func `an instance that another publisher copies is not the same, whoever comes first`() {
        var host = Host(["alpha", "beta"])
        host.connect(at: 0)
        host.receive(message(1, at: 0, publisher: "beta", of: "beta"), at: 0)
        host.receive(message(1, at: 0), at: 0)
        #expect(host.states["beta USD"]?.instance == "beta/theirs")
        #expect(host.states["alpha USD"]?.instance == "alpha/theirs")
        host.receive(message(2, at: 1, publisher: "beta", of: "beta"), at: 1)
        host.receive(message(2, at: 1), at: 1)
        #expect(host.same == [["beta", "alpha"]], "told once, with both names")
        #expect(["alpha USD", "beta USD"].allSatisfy { host.states[$0]?.state.freshness == .fresh })
    }

    @Test func `a publisher that sends too much is ignored for longer each time, and another one is not`() {
        var host = Host(["alpha", "beta"])
        host.connect(at: 0)
        #expect(host.filters.count == 6)
        host.receive(message(1, at: 0), at: 0)
        let junk = BrokerMessage(topic: "btcpriced/v1/alpha/quote/x", payload: [UInt8](repeating: 123, count: 16_384))
        for _ in 0..<2000 { host.receive(junk, at: 0.1) }
        let ofAlpha = ["quote/+", "status", "sources"].map { "btcpriced/v1/alpha/\($0)" }
        #expect(host.removed == ofAlpha)
        #expect(host.refused == ["more than 500 messages or 1024 KiB a second"])
        host.receive(message(2, at: 1), at: 1)
        host.receive(message(1, at: 1, publisher: "beta", of: "beta"), at: 1)
        #expect(host.counts["ok"] == 2, "the message of alpha was on its way")
        #expect(host.states["beta USD"]?.state.freshness == .fresh)
        host.wait(until: 3.1)
        #expect(host.alpha.failure == "more than 500 messages or 1024 KiB a second")
        host.wait(until: 10)
        #expect(host.filters.count == 6)
        host.wait(until: 10.1)
        #expect(host.filters.suffix(3) == ofAlpha[...])
        host.receive(message(3, at: 10.2), at: 10.2)
        #expect(host.alpha.freshness == .fresh)
        // The second time, without a connection in between.
        for _ in 0..<2000 { host.receive(junk, at: 11) }
        host.lose("gone", at: 12)
        host.connect(at: 13)
        #expect(!host.filters.suffix(3).contains("btcpriced/v1/alpha/quote/+"))
        host.wait(until: 30.9)
        #expect(!host.filters.suffix(3).contains("btcpriced/v1/alpha/quote/+"))
        host.wait(until: 31)
        #expect(host.filters.suffix(3) == ofAlpha[...])
        #expect(host.refused.count == 1, "told once")
    }

    @Test func `if all publishers are followed, one that sends too much, known or not, is left out of the topics`() {
        for sender in ["alpha", "stranger"] {
            var host = Host([])
            host.connect(at: 0)
            host.receive(message(1, at: 0), at: 0)
            host.receive(message(1, at: 0, publisher: "beta", of: "beta"), at: 0)
            let junk = BrokerMessage(
                topic: "btcpriced/v1/\(sender)/sources", payload: [UInt8](repeating: 123, count: 131_072))
            for _ in 0..<100 { host.receive(junk, at: 0.1) }
            let kept = sender == "alpha" ? ["beta"] : ["alpha", "beta"]
            #expect(host.filters.dropFirst(3) == FleetTopic.filters(of: kept)[...])
            #expect(host.removed == FleetTopic.filters(of: ["+"]))
            host.wait(until: 11)
            #expect(host.filters.suffix(3) == FleetTopic.filters(of: ["+"])[...])
            #expect(host.removed.dropFirst(3) == FleetTopic.filters(of: kept)[...])
        }
    }

    @Test func `a list of sources without its invalid entries is used, and that is told once`() {
        var host = Host()
        host.connect(at: 0)
        let valid = #"{"name":"kraken","order":1,"market":"BTC/USD","url":"","use":"ready","requests":0,"limits":[]}"#
        for second in [0.0, 10] {
            let text = #"{"sources":[{"name":"binance","use":"unknown"},7,\#(valid)]}"#
            host.receive(BrokerMessage(topic: "btcpriced/v1/alpha/sources", payload: Array(text.utf8)), at: second)
        }
        #expect(host.sources == ["kraken"])
        #expect(host.refused == ["2 of 3 entries in its list of sources are not valid"])
    }

    @Test func `unknown publishers are accepted only if none is named, and up to a limit`() {
        var named = Host(["beta"])
        named.receive(message(1, at: 0), at: 0)
        #expect(named.came.isEmpty)
        var host = Host([])
        host.connect(at: 0)
        #expect(host.filters.contains("btcpriced/v1/+/quote/+"))
        for index in 0..<100 {
            let quote = QuoteMessage(
                state: state(68_900, at: 0), publisher: "p\(index)", bootID: "b", sequence: 1,
                publishedAt: time(0).wall,
                interval: 1000, age: 0)
            let topic = FleetTopic.quote(publisher: "p\(index)", currency: "USD").text
            host.receive(BrokerMessage(topic: topic, payload: quote.payload(at: time(0))), at: 0)
        }
        #expect(host.came.count == Following.most)
        for topic in [
            "btcpriced/v1/../quote/BTC-USD", "btcpriced/v1/A/quote/BTC-USD", "btcpriced/v1/a/b", "x/v1/a/status",
        ] {
            #expect(FleetTopic(topic) == nil)
        }
    }
}

@Suite struct PublisherSocketTests {
    @Test func `a currency's sources are its own, and a currency without a price has a state`() async throws {
        try await onAThread {
            let directory = TemporaryDirectory()
            let socket = try PublisherSocket("alpha", in: directory.path, limits: .fitting()) { _ in }
            defer { socket.stop() }
            socket.tell(state(1, at: 0, currency: "EUR"), interval: 1000)
            let text =
                #"{"name":"binance","order":1,"market":"BTC/USDT","url":"","use":"ready","requests":0,"limits":[]}"#
            socket.tell([try SourceReport(json: try JSONValue(parsing: Array(text.utf8)[...]))])
            var connection = try PriceConnection(path: "\(directory.path)/alpha", timeout: .seconds(60))
            #expect(try connection.listSources().map(\.name) == ["binance"])
            #expect(try connection.listSources("USD").map(\.name) == ["binance"])
            #expect(try connection.listSources("EUR").isEmpty)
            #expect(try connection.getPrice(in: "USD").state.freshness == .none)
            #expect(throws: ClientError.self) { try connection.getPrice(.noCache, in: "USD") }
        }
    }
}

@Suite struct PublishingTests {
    private func published(_ publishing: inout Publishing, at seconds: Double, canPublish: Bool = true)
        -> [BrokerMessage]
    {
        publishing.proceed(canPublish: canPublish, at: time(seconds)).compactMap {
            if case .publish(let message) = $0 { message } else { nil }
        }
    }

    @Test func `only the newest price of each currency is published, once the broker accepts it`() throws {
        let news = DaemonNews()
        var publishing = Publishing(name: "alpha", bootID: "b", isForHomeAssistant: false, news: news)
        news.put(state(1, at: 0), interval: 1000, at: time(0).boottime)
        #expect(published(&publishing, at: 0, canPublish: false).isEmpty)
        news.put(state(2, at: 1), interval: 1000, at: time(1).boottime)
        news.put(state(3, at: 1, currency: "EUR"), interval: 10_000, at: time(1).boottime)
        let messages = published(&publishing, at: 1.5)
        #expect(
            messages.map(\.topic) == [
                "btcpriced/v1/alpha/status", "btcpriced/v1/alpha/quote/BTC-USD", "btcpriced/v1/alpha/quote/BTC-EUR",
            ])
        #expect(messages.allSatisfy { $0.isRetained })
        let dollars = try QuoteMessage(payload: messages[1].payload)
        #expect((dollars.sequence, dollars.state.state.quote?.value, dollars.age) == (1, 2, 500))
        let euros = try QuoteMessage(payload: messages[2].payload)
        #expect((euros.sequence, euros.interval) == (2, 10_000))
        #expect(published(&publishing, at: 2).isEmpty)
    }

    @Test func `what the broker has kept of a currency that the daemon does not keep is removed`() throws {
        let news = DaemonNews()
        var publishing = Publishing(name: "alpha", bootID: "b", isForHomeAssistant: true, news: news)
        #expect(publishing.connected(at: time(0)).count == 2)
        for (publisher, currency) in [("alpha", "USD"), ("alpha", "JPY"), ("beta", "CHF"), ("alpha", "x/#")] {
            let topic = FleetTopic.quote(publisher: publisher, currency: currency).text
            _ = publishing.received(BrokerMessage(topic: topic, payload: [123]), at: time(0))
        }
        news.put(state(1, at: 0), interval: 1000, at: time(0).boottime)
        news.put(state(2, at: 0, currency: "EUR"), interval: 3_600_000, at: time(0).boottime)
        let first = published(&publishing, at: 1)
        #expect(!first.contains { $0.payload.isEmpty }, "it has not said yet what it keeps")
        news.put(kept: ["USD", "EUR"])
        #expect(
            published(&publishing, at: 2).filter(\.payload.isEmpty).map(\.topic) == ["btcpriced/v1/alpha/quote/BTC-JPY"]
        )
        // Both in one turn: what came before the reload is not published after it.
        news.put(state(2, at: 2, currency: "EUR"), interval: 3_600_000, at: time(2).boottime)
        news.put(kept: ["USD"])
        let last = published(&publishing, at: 3)
        #expect(last.map(\.topic) == ["btcpriced/v1/alpha/quote/BTC-EUR"])
        #expect(last[0].payload.isEmpty && last[0].isRetained)
        news.put(state(3, at: 4), interval: 1000, at: time(4).boottime)
        let sensors = try #require(
            published(&publishing, at: 4).first { $0.topic.hasPrefix("homeassistant/") }.map {
                try JSONValue(parsing: $0.payload[...])["cmps"]
            } ?? nil)
        #expect(sensors["price_eur"].map { $0["p"] != nil && $0["stat_t"] == nil } == true, "the sensor is removed")
        #expect(sensors["price_usd"]?["exp_aft"]?.integerValue == 120)
        let hourly = try #require(first.first { $0.topic.hasPrefix("homeassistant/") })
        let before = try JSONValue(parsing: hourly.payload[...])["cmps"]
        #expect(before?["price_eur"]?["exp_aft"]?.integerValue == 10_800)
        // The look for kept messages is over.
        #expect(
            publishing.proceed(canPublish: false, at: time(5)).contains {
                if case .unsubscribe("btcpriced/v1/alpha/quote/+") = $0 { true } else { false }
            })
        #expect(publishing.deadline == nil)
    }

    @Test func `all is repeated when Home Assistant has started, but not without end`() {
        let news = DaemonNews()
        var publishing = Publishing(name: "alpha", bootID: "b", isForHomeAssistant: true, news: news)
        _ = publishing.connected(at: time(-10))
        news.put(state(1, at: 0), interval: 10_000, at: time(0).boottime)
        let first = published(&publishing, at: 0).map(\.topic)
        #expect(first.contains("homeassistant/device/alpha/btcpriced/config"))
        for (second, word, count) in [
            (1.0, "offline", 0), (1, "online", first.count - 1), (2, "online", 0), (6, "", first.count - 1),
        ] {
            let birth = BrokerMessage(topic: "homeassistant/status", payload: Array(word.utf8), isRetained: false)
            _ = publishing.received(birth, at: time(second))
            #expect(published(&publishing, at: second).count == count, "\(second) \(word)")
        }
    }

    @Test func `the status follows the daemon, and the will is offline`() {
        let news = DaemonNews()
        var publishing = Publishing(name: "alpha", bootID: "b", isForHomeAssistant: false, news: news)
        func word(_ message: BrokerMessage?) -> String {
            message.map { String(decoding: $0.payload, as: UTF8.self) }.map { String($0.prefix(17)) } ?? ""
        }
        news.put(state(1, at: 0), interval: 1000, at: time(0).boottime)
        #expect(word(published(&publishing, at: 0).first) == #"{"state":"online""#)
        news.daemonIsGone()
        #expect(word(published(&publishing, at: 1).first) == #"{"state":"offline"#)
        #expect(word(publishing.will) == #"{"state":"offline"#)
        #expect(word(publishing.farewell().first) == #"{"state":"offline"#)
    }

    @Test func `after an outage of the broker an old price is stale, and a daemon that is gone is offline`() throws {
        let news = DaemonNews()
        var publishing = Publishing(name: "alpha", bootID: "b", isForHomeAssistant: true, news: news)
        news.put(state(1, at: 0), interval: 1000, at: time(0).boottime)
        #expect(published(&publishing, at: 0).count == 4)
        news.put(state(2, at: 60), interval: 1000, at: time(60).boottime)
        news.daemonIsGone()
        #expect(published(&publishing, at: 61, canPublish: false).isEmpty)
        _ = publishing.connected(at: time(600))
        let messages = published(&publishing, at: 600)
        let quote = try QuoteMessage(payload: try #require(messages.first).payload)
        #expect((quote.state.state.freshness, quote.state.state.quote?.value, quote.age) == (.stale, 2, 540_000))
        #expect(!messages.map(\.topic).contains("btcpriced/v1/alpha/home-assistant/BTC-USD"))
        var host = Host()
        host.connect(at: 600)
        for var message in messages {
            message.isRetained = false
            host.receive(message, at: 600)
        }
        #expect(host.alpha.freshness == .stale)
        host.wait(until: 610)
        #expect(host.alpha.failure == "alpha is offline")
    }

    @Test func `Home Assistant gets its discovery message, and a price every ten seconds`() {
        let news = DaemonNews()
        var publishing = Publishing(name: "alpha", bootID: "b", isForHomeAssistant: true, news: news)
        _ = publishing.connected(at: time(0))
        var times: [Double] = []
        var discoveries = 0
        for second in stride(from: 0.0, to: 220, by: 1) {
            let isStale = (20...24).contains(second)
            // A short time does not count; a long one makes the values rarer.
            let isUnconfirmed = (40...50).contains(second) || (65...210).contains(second)
            news.put(
                state(1, at: second) {
                    if isStale { $0.ticks.freshness = .stale }
                    if isUnconfirmed { $0.price?.confirmation = .unconfirmed }
                }, interval: 1000, at: time(second).boottime)
            for message in published(&publishing, at: second) {
                if message.topic == "btcpriced/v1/alpha/home-assistant/BTC-USD" { times.append(second) }
                if message.topic == "homeassistant/device/alpha/btcpriced/config" { discoveries += 1 }
            }
        }
        #expect(times == [0, 10, 25, 35, 51, 61, 121, 181, 211])
        #expect(discoveries == 1)
        _ = publishing.connected(at: time(220))
        #expect(
            published(&publishing, at: 220).map(\.topic) == [
                "btcpriced/v1/alpha/status", "btcpriced/v1/alpha/quote/BTC-USD",
                "homeassistant/device/alpha/btcpriced/config", "btcpriced/v1/alpha/home-assistant/BTC-USD",
            ], "a broker that was restarted is told again")
        news.put(state(1, at: 221), interval: 1000, at: time(221).boottime)
        #expect(published(&publishing, at: 221).count == 1)
    }
}

/// The bytes of a message are the agreement of publishers and followers of different versions.
@Suite struct QuoteMessageTests {
    private static let before = #"""
        {"instance":"5f3c2a9d8e7b6a10","tick":86399,"freshness":"fresh","quote":{"value":"68901.225","currency":"USD","timestamp":1787659200123,"source":"binance","market":"BTC/USDT","via":null},"observedBoottime":1000123,"confirmation":"confirmed","failure":null,"warning":"USDT is at 0.9981 USD (by kraken)","consensus":{"sources":["coinbase","kraken"],"outliers":["bitstamp"],"spread":"12.5"},"conversion":{"value":"69032.386","rate":"0.9981","sources":["kraken"],"measuredBoottime":999000},"uncertainty":{"plusMinus":"21.37","markets":4},"currency":"USD","day":{"since":1787572800000,"open":"68000","high":"69120.5","low":"67711.01","change":"901.225","changePercent":"1.33","backfilled":false},"derived":null
        """#
    private static let after = #"""
        ,"ageMs":877,"ageIsEstimate":false,"publisher":"alpha","bootId":"9a","sequence":4711,"publishedAt":1787659201000,"intervalMs":1000}
        """#

    @Test func `the message of an earlier version is read, and written as the same bytes`() throws {
        // Two members came later.
        let later = #","ticking":"running","boottime":1000900"#
        for members in ["", later] {
            let text = Self.before + members + Self.after
            let read = try QuoteMessage(payload: Array(text.utf8))
            #expect(read.sequence == 4711 && read.age == 877 && read.state.state.day?.close == Price("68901.225"))
            #expect((read.state.boottime == nil) == members.isEmpty)
            let written = String(decoding: read.payload(at: time(1)), as: UTF8.self)
            #expect(
                written == Self.before + (members.isEmpty ? #","ticking":null,"boottime":null"# : later) + Self.after)
        }
    }
}

@Suite struct PublisherSocketsTests {
    @Test(arguments: [1, 3, 33, 1000]) func `all sockets together have what one daemon's socket has`(_ sockets: Int) {
        let all = ServerLimits(connections: 24_000)
        let share = PublisherSockets.share(of: all, among: sockets)
        #expect(share.connections * sockets <= all.connections)
        #expect(share.connectionsPerUser >= 12)
        // Below 1 MiB, a single client's replies would not fit.
        #expect(share.queuedBytes * sockets <= max(all.queuedBytes, sockets << 20))
        #expect(share.pendingCalls * sockets <= max(all.pendingCalls, sockets * 16))
    }
}
