import BTCPriceCore
import ExchangeSimulator
import NIOCore
import NIOWebSocket
import Synchronization
import TestSupport
import Testing

@testable import BTCPriceNetworking

/// The streams of exchanges against a real server.
@Suite(.timeLimit(.minutes(3))) struct StreamFeedTests {
    /// The news and the events of the streams.
    final class Log: Sendable {
        private let state = Mutex<(news: [StreamNews], events: [StreamEvent])>(([], []))

        var news: [StreamNews] { state.withLock { $0.news } }
        var events: [StreamEvent] { state.withLock { $0.events } }

        func add(_ news: StreamNews) { state.withLock { $0.news.append(news) } }
        func add(_ event: StreamEvent) { state.withLock { $0.events.append(event) } }

        /// The prices of a market, or of all if it is `nil`.
        func prices(of market: Market? = nil) -> [LoadedPrice] {
            news.compactMap { news in
                guard case .price(let price) = news, market ?? price.market == price.market else { return nil }
                return price
            }
        }
    }

    struct Setup {
        let simulator: Simulator
        let loop: TickLoop
        let client: ExchangeClient
        let venue: VenueName
        let log: Log
        /// The streams' markets, in the order of the currencies.
        let streams: [any PriceStream]
        let markets: [Market]

        /// - Parameters:
        ///   - faults: The faults of the exchange's streams, such as `always cut`; empty for none.
        ///   - prices: A file of prices; `nil` for a random walk.
        ///   - trades: The number of trades per second.
        ///   - addresses: The number of addresses of the stream, all of them the same.
        init(
            _ name: String, _ currencies: [Currency] = [.usd], faults: String = "", prices: String? = nil,
            trades: Double = 20, addresses: Int = 1
        ) async throws {
            let log = Log()
            self.log = log
            let exchange = try #require(Exchange.all.first { $0.name == name })
            venue = try #require(VenueName(rawValue: name))
            let feed: PriceSeries
            if let prices { feed = try .init(replaying: prices) } else { feed = .init(walkSeed: 1) }
            simulator = try await Simulator.start(
                feed: feed, script: FaultScript(faults.isEmpty ? "" : "\(name) stream \(faults)"), trades: trades)
            loop = TickLoop()
            client = try ExchangeClient(
                HTTPTransportSettings(userAgent: "btc-priced/test", connectTimeout: .seconds(11)),
                on: loop)
            let url = "ws" + simulator.url(of: venue).dropFirst(4)
            let all = exchange.streams(
                client, urls: Array(repeating: url, count: addresses), for: currencies, now: { .now() },
                report: { log.add($0) })
            markets = currencies.compactMap { exchange.markets[$0] }
            streams = markets.compactMap { all[$0] }
        }

        var counts: StreamCounter { simulator.streams(of: venue) }

        func start(every interval: Duration = .milliseconds(20)) {
            for stream in streams { stream.start(every: interval) { [log] in log.add($0) } }
        }

        func end() async throws {
            for stream in streams { stream.stop() }
            #expect(try await StreamFeedTests.until { counts.open == 0 })
            await client.shutdown()
            await loop.shutDown()
            await simulator.stop()
        }
    }

    /// Waits for a condition; false after a timeout.
    private static func until(_ isSo: () -> Bool) async throws -> Bool {
        let end = ContinuousClock.now.advanced(by: .seconds(60))
        while !isSo() {
            guard ContinuousClock.now < end else { return false }
            try await Task.sleep(for: .milliseconds(5))
        }
        return true
    }

    // MARK: - Prices

    @Test(arguments: ["binance", "coinbase", "bitstamp", "kraken"])
    func `a stream brings prices until it is stopped, and again after a new start`(name: String) async throws {
        let setup = try await Setup(name)
        setup.start()
        #expect(try await Self.until { setup.log.prices().count > 3 }, "\(setup.log.events)")
        for price in setup.log.prices() {
            #expect(price.value > 1000)
            #expect(price.market == setup.markets[0])
            #expect(price.push?.way == .stream)
            #expect(price.position.time != nil)
        }
        #expect(setup.log.events == [])
        #expect(setup.counts.opened == 1)
        #expect(setup.simulator.requests(of: setup.venue) == 0)
        setup.streams[0].stop()
        #expect(try await Self.until { setup.counts.open == 0 })
        let before = setup.log.prices().count
        setup.start()
        #expect(try await Self.until { setup.log.prices().count > before })
        #expect(setup.counts.opened == 2)
        try await setup.end()
    }

    @Test(arguments: [("binance", 0), ("coinbase", 1), ("kraken", 1), ("bitstamp", 2)])
    func `several currencies share a connection, which lasts while one of them needs it`(name: String, requests: Int)
        async throws
    {
        let setup = try await Setup(name, [.usd, .eur])
        let (log, markets) = (setup.log, setup.markets)
        setup.start()
        _ = try await Self.until { markets.allSatisfy { !log.prices(of: $0).isEmpty } }
        let dollars = try #require(log.prices(of: markets[0]).last, "\(log.events)")
        let euros = try #require(log.prices(of: markets[1]).last, "\(log.events)")
        // A euro costs more than a dollar, so the price in euros is lower.
        #expect(euros.value < dollars.value)
        #expect(setup.counts.opened == 1)
        #expect(setup.counts.received == requests)
        setup.streams[0].stop()
        let before = log.prices(of: markets[1]).count
        #expect(try await Self.until { log.prices(of: markets[1]).count > before + 2 })
        #expect(setup.counts.open == 1)
        setup.streams[1].stop()
        #expect(try await Self.until { setup.counts.open == 0 })
        try await setup.end()
    }

    @Test(arguments: [
        ("kraken", "fragments"), ("coinbase", "fragments"), ("binance", "bytes"), ("kraken", "bytes"),
        ("bitstamp", "big-ping"), ("binance", "ping-flood"), ("coinbase", "wrong-pair"), ("bitstamp", "wrong-pair"),
        ("binance", "burst 100"), ("coinbase", "with-101"), ("kraken", "with-101"),
    ])
    func `prices are read whatever the form of the frames`(name: String, fault: String) async throws {
        let setup = try await Setup(name, faults: "always \(fault)")
        setup.start()
        #expect(try await Self.until { setup.log.prices().count > 5 })
        #expect(setup.log.events == [])
        #expect(setup.counts.opened == 1)
        try await setup.end()
    }

    @Test func `a first price in the same write as the response is read`() async throws {
        // The next price comes much later.
        let setup = try await Setup("binance", faults: "always with-101", trades: 0.01)
        setup.start()
        #expect(try await Self.until { !setup.log.prices().isEmpty })
        #expect(setup.counts.opened == 1)
        try await setup.end()
    }

    @Test func `the connection is read only once in an interval, and what has come is one price`() async throws {
        let setup = try await Setup("binance", trades: 200)
        setup.start(every: .milliseconds(500))
        #expect(try await Self.until { setup.counts.messages >= 600 && !setup.log.prices().isEmpty })
        let (told, sent) = (setup.log.prices().count, setup.counts.messages)
        #expect(told * 20 < sent, "\(told) of \(sent)")
        #expect(setup.counts.opened == 1 && setup.log.events == [])
        try await setup.end()
    }

    @Test func `older trades in the same write do not hide the newest one`() async throws {
        let rising = (1...2000).map { "\(60_000 + $0)" }.joined(separator: "\n")
        let setup = try await Setup("kraken", faults: "always repeat", prices: "close\n\(rising)\n", trades: 10)
        setup.start()
        #expect(try await Self.until { setup.log.prices().count > 5 })
        // The market stands still.
        setup.simulator.set(try FaultScript("kraken stream always maintenance"))
        let exchange = try #require(Exchange.all.first { $0.name == "kraken" })
        let access = Exchange.Access(client: setup.client, baseURL: setup.simulator.url(of: .kraken))
        let loader = try #require(exchange.loaders(access, for: [.usd]).first)
        let polled = try await loader.load()[0].value
        let isNewest = try await Self.until { setup.log.prices().last?.value == polled }
        #expect(isNewest, "\(polled) was traded, and the stream has \(setup.log.prices().last?.value ?? 0)")
        try await setup.end()
    }

    // MARK: - The end of a stream

    /// The fault, the reason that the operator sees, and the time to the next attempt in milliseconds.
    typealias Failure = (exchange: String, fault: String, reason: String, isRefused: Bool, wait: ClosedRange<Int64>)

    static let failures: [Failure] = [
        ("kraken", "bad-accept", "no WebSocket: a wrong Upgrade or Sec-WebSocket-Accept", false, 0...500),
        ("binance", "status 403", "HTTP 403", true, 300_000...600_000),
        ("coinbase", "status 429 retry-after 30", "HTTP 429", false, 30_000...30_000),
        ("bitstamp", "status 503 retry-after 7", "HTTP 503", false, 7000...7000),
        ("coinbase", "redirect", "HTTP 302 instead of a stream", false, 0...500),
        ("binance", "status 200 body <html>", "HTTP 200 instead of a stream", false, 0...500),
        ("coinbase", "reset", "not reached: ", false, 0...500),
        ("kraken", "dark", "no connection in time", false, 0...500),
        ("coinbase", "ack-empty", "none of the products was subscribed", true, 600_000...600_000),
        ("kraken", "refuse-subscription", "Currency pair not supported BTC/USD", true, 600_000...600_000),
        ("bitstamp", "refuse-subscription", "Invalid channel provided.", true, 600_000...600_000),
        ("kraken", "close 1000 bye", "closed with 1000, bye", false, 0...500),
        ("binance", "close 1002", "closed with 1002", true, 300_000...600_000),
        ("kraken", "close 1008", "closed with 1008", false, 30_000...60_000),
        ("kraken", "close 1011", "closed with 1011", false, 5000...5000),
        ("kraken", "close 1013 come back later", "closed with 1013, come back later", false, 30_000...30_000),
        ("kraken", "close 1005", "the server sends a close frame that is not valid", false, 5000...5000),
        ("kraken", "cut", "not reached: the connection was closed", false, 0...500),
        ("bitstamp", "half-close", "not reached: the connection was closed", false, 0...500),
        ("kraken", "masked", "the server sends a masked frame", false, 5000...5000),
        ("binance", "rsv", "the server sends a frame with a reserved bit", false, 5000...5000),
        ("coinbase", "opcode", "the server sends a frame with a reserved opcode", false, 5000...5000),
        ("bitstamp", "bad-utf8", "the server sends a text that is not UTF-8", false, 5000...5000),
        ("binance", "huge 300000", "the server sends a frame that is too long", false, 5000...5000),
    ]

    @Test(arguments: failures.indices) func `each end of a stream has its reason and its wait`(row: Int) async throws {
        let (name, fault, expected, isExpectedRefused, waits) = Self.failures[row]
        let setup = try await Setup(name, faults: "always \(fault)")
        setup.start()
        _ = try await Self.until { !setup.log.events.isEmpty }
        let event = try #require(setup.log.events.first)
        guard case .ended(let reason, let isRefused, let wait) = event else {
            Issue.record("\(event)")
            return
        }
        #expect(reason.hasPrefix(expected), "\(reason)")
        #expect(isRefused == isExpectedRefused)
        #expect(waits.contains(wait.wholeMilliseconds), "\(wait)")
        try await setup.end()
    }

    /// Counts what a connection brings.
    private final class FrameCounter: WebSocketDelegate, Sendable {
        let counts = Mutex((texts: 0, frames: 0, bytes: 0))

        func opened(_ connection: WebSocketConnection) {}

        func received(_ texts: [ByteBuffer], frames: Int, bytes: Int, on connection: WebSocketConnection) {
            counts.withLock { $0 = ($0.texts + texts.count, $0.frames + frames, $0.bytes + bytes) }
        }

        func ended(_ end: WebSocketEnd, _ connection: WebSocketConnection) {}
    }

    @Test func `frames without a text count, too`() async throws {
        let setup = try await Setup("kraken", faults: "always ping-flood")
        let (counter, client) = (FrameCounter(), setup.client)
        let request = try #require(HTTPRequest("\(setup.simulator.url(of: setup.venue))/v2"))
        let connection = try await client.eventLoop.submit {
            let connection = client.webSocket(request, delegate: counter)
            connection.open()
            return connection
        }.get()
        let isCounted = try await Self.until {
            client.eventLoop.execute { connection.read() }
            return counter.counts.withLock { $0.frames - $0.texts > 300 && $0.bytes > 300 }
        }
        #expect(isCounted, "\(counter.counts.withLock { $0 })")
        client.eventLoop.execute { connection.close(.normalClosure) }
        try await setup.end()
    }

    @Test(arguments: ["cut", "half-close", "close 1001 restarting"])
    func `after a restart of the server a stream continues at once`(fault: String) async throws {
        let setup = try await Setup("kraken", faults: "request 1 \(fault)")
        setup.start()
        #expect(try await Self.until { setup.counts.opened == 2 })
        let before = setup.log.prices().count
        #expect(try await Self.until { setup.log.prices().count > before })
        #expect(setup.log.events.count == 1)
        try await setup.end()
    }

    @Test(arguments: ["kraken", "coinbase"])
    func `a limit is passed on to the requests`(name: String) async throws {
        let setup = try await Setup(name, faults: "always status 429 retry-after 30")
        setup.start()
        _ = try await Self.until { !setup.log.events.isEmpty && !setup.log.news.isEmpty }
        #expect(
            setup.log.events == [.ended("HTTP 429", isRefused: false, retryIn: .seconds(30))],
            "\(setup.log.events)")
        let told = StreamNews.limited(.rateLimited("its stream: HTTP 429", retryAfter: .seconds(30)))
        #expect(setup.log.news == [told])
        #expect(setup.counts.refused == 1)
        // A stop and a start do not shorten the wait.
        setup.streams[0].stop()
        setup.start()
        try await setup.end()
        #expect(setup.counts.refused == 1)
    }

    @Test(arguments: [1, 2]) func `if the region is not served, the other address is used`(addresses: Int)
        async throws
    {
        let setup = try await Setup("binance", faults: "request 1 status 451", addresses: addresses)
        setup.start()
        _ = try await Self.until { !setup.log.events.isEmpty }
        guard case .ended("HTTP 451", let isRefused, _) = setup.log.events.first else {
            Issue.record("\(setup.log.events)")
            return
        }
        #expect(isRefused == (addresses == 1))
        if addresses == 2 { #expect(try await Self.until { !setup.log.prices().isEmpty }) }
        try await setup.end()
    }

    @Test func `an absent server is tried again`() async throws {
        let setup = try await Setup("kraken")
        setup.simulator.set(try FaultScript("kraken always refuse"))
        // The simulator closes its port a moment later, and then all connections.
        setup.start()
        #expect(try await Self.until { !setup.log.events.isEmpty })
        setup.simulator.set(.none)
        #expect(try await Self.until { !setup.log.prices().isEmpty })
        try await setup.end()
    }
}
