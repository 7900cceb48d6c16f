import BTCPriceCore
import TestSupport
import Testing

@testable import BTCPriceNetworking

/// A machine with its connection and its events. All times are milliseconds since the start of the test.
private struct Run {
    private static let boot: BootTime = 50_000_000
    private static let wall: Int64 = 1_791_000_000_000

    let markets: [Market]
    private(set) var machine: StreamMachine
    /// Whether the connection is open or being opened.
    private(set) var isOpen = false
    /// The times and addresses of the openings.
    private(set) var attempts: [Int64] = []
    private(set) var addresses: [String] = []
    private(set) var sent: [String] = []
    private(set) var prices: [LoadedPrice] = []
    private(set) var events: [StreamEvent] = []
    /// The time of the last event.
    private(set) var clock: Int64 = 0

    init(_ source: StreamSource, _ pairs: [String] = ["BTC/USD"]) {
        markets = pairs.map { Market("exchange", $0) }
        machine = StreamMachine(source, urls: ["wss://127.0.0.1:1", "wss://127.0.0.1:2"], markets: markets)
    }

    var values: [Price] { prices.map(\.value) }

    /// The ends of the connections.
    var ends: [String] {
        events.compactMap { event in
            guard case .ended(let reason, let isRefused, let wait) = event else { return nil }
            return "\(reason), again in \(wait.wholeMilliseconds) ms" + (isRefused ? ", refused" : "")
        }
    }

    /// The next deadline.
    var next: Int64? { machine.nextDeadline.map { $0 - Self.boot } }

    private mutating func perform(_ actions: [StreamMachine.Action], at now: Int64) {
        clock = max(clock, now)
        for action in actions {
            switch action {
            case .open(let url):
                #expect(!isOpen)
                isOpen = true
                attempts.append(now)
                addresses.append(url)
            case .close:
                #expect(isOpen)
                isOpen = false
            case .send(let text):
                #expect(isOpen)
                sent.append(text)
            case .price(let price): prices.append(price)
            case .report(let event): events.append(event)
            }
        }
    }

    mutating func start(at now: Int64 = 0) {
        let actions = machine.start(at: Self.boot + now)
        perform(actions, at: now)
    }

    mutating func stop(at now: Int64) {
        let actions = machine.stop(at: Self.boot + now)
        perform(actions, at: now)
        #expect(!isOpen)
        #expect(next == nil)
    }

    mutating func open(at now: Int64) {
        let actions = machine.opened(at: Self.boot + now)
        perform(actions, at: now)
    }

    /// Starts with a connection that is open at 100 ms.
    mutating func connect() {
        start()
        open(at: 100)
    }

    mutating func receive(_ message: StreamMessage, at now: Int64) {
        let actions = machine.received(message, at: Self.boot + now)
        perform(actions, at: now)
    }

    /// A trade with an age.
    mutating func trade(_ value: Price, at now: Int64, age: Int64 = 0, number: Int64? = nil, of index: Int = 0) {
        let time = Self.wall + now - age
        receive(.trade(StreamTrade(market: markets[index], value: value, time: time, number: number)), at: now)
    }

    /// Frames of any kind arrive.
    mutating func count(_ frames: Int, bytes: Int = 0, at now: Int64) {
        let actions = machine.counted(frames, bytes: bytes, at: Self.boot + now)
        perform(actions, at: now)
    }

    mutating func end(_ kind: StreamBackoff.Kind = .transient, at now: Int64, jitter: Double = 1) {
        let actions = machine.ended(kind, "over", at: Self.boot + now, jitter: jitter)
        perform(actions, at: now)
    }

    mutating func useNextAddress() -> Bool { machine.useNextAddress() }

    /// The timer fires.
    mutating func fire(at now: Int64, jitter: Double = 1) {
        let actions = machine.timerFired(at: Self.boot + now, jitter: jitter)
        perform(actions, at: now)
        let isDone = next.map { $0 > now } ?? true
        #expect(isDone, "what is due is done")
    }

    /// Time passes, and the timer fires at each deadline.
    mutating func pass(to now: Int64) {
        for _ in 0..<10_000 {
            guard let due = next, due <= now else {
                clock = max(clock, now)
                return
            }
            fire(at: max(due, clock))
        }
        Issue.record("there is no end of deadlines")
    }
}

@Suite(.timeLimit(.minutes(3))) struct StreamMachineTests {
    // MARK: - Opening

    @Test func `a connection that is not open in time is closed, and opened again`() {
        var run = Run(.kraken)
        run.start()
        run.pass(to: 4999)
        #expect(run.isOpen)
        run.pass(to: 5000)
        #expect(!run.isOpen)
        #expect(run.ends == ["no connection in time, again in 500 ms"])
        run.pass(to: 5500)
        #expect(run.attempts == [0, 5500])
        run.open(at: 5600)
        #expect(run.sent.count == 1)
    }

    @Test func `a refused market ends nothing, but the refusal of all markets ends the connection`() {
        var run = Run(.coinbase, ["BTC/USD", "BTC/EUR"])
        run.connect()
        run.receive(.refused(run.markets[1], "delisted"), at: 200)
        run.trade(100, at: 300)
        #expect(run.events == [.refusedMarket(run.markets[1], "delisted")])
        #expect(run.values == [100])
        var each = run
        run.receive(.refused(nil, "no more"), at: 400)
        #expect(run.ends == ["no more, again in 600000 ms, refused"])
        each.receive(.refused(each.markets[0], "delisted"), at: 400)
        #expect(each.ends == ["delisted, again in 600000 ms, refused"])
    }

    @Test func `if the region is not served, the next address is used, as long as there is one`() {
        var run = Run(.kraken)
        run.start()
        let hasAnother = run.useNextAddress()
        run.end(at: 100)
        run.pass(to: 600)
        let hasThird = run.useNextAddress()
        #expect(hasAnother && !hasThird)
        run.end(at: 700)
        run.pass(to: 1700)
        #expect(run.addresses == ["wss://127.0.0.1:1/v2", "wss://127.0.0.1:2/v2", "wss://127.0.0.1:2/v2"])
    }

    // MARK: - Prices

    @Test func `each trade of a wanted market is a price, with the time of the trade`() {
        var run = Run(.binance, ["BTC/USD", "BTC/EUR"])
        run.connect()
        run.trade(100, at: 1000, age: 40)
        run.trade(86, at: 1100, of: 1)
        run.receive(.trade(StreamTrade(market: Market("exchange", "BTC/GBP"), value: 75, time: 1)), at: 1200)
        run.receive(.other, at: 1300)
        #expect(run.values == [100, 86])
        #expect(run.prices.map(\.market) == run.markets)
        #expect(run.prices[0].position == FeedPosition(time: Timestamp(milliseconds: 1_791_000_000_960)))
        #expect(run.prices[0].push?.way == .stream)
    }

    @Test func `a trade older than the last one is ignored`() {
        var run = Run(.binance)
        run.connect()
        run.trade(100, at: 1000, number: 5)
        run.trade(99, at: 1100, age: 200, number: 6)
        run.trade(98, at: 1200, age: 200, number: 4)
        // Trades with the same time, as in a burst.
        run.trade(101, at: 1300, age: 300, number: 6)
        #expect(run.values == [100, 101])
        run.trade(97, at: 2000, age: 601_000, number: 7)
        #expect(run.values == [100, 101])
        // Before that, the time of the last one was wrong.
        run.trade(102, at: 2000, age: 601_001, number: 8)
        #expect(run.values == [100, 101, 102])
    }

    // MARK: - Ends

    @Test func `a stream that falls silent is closed`() {
        var run = Run(.kraken)
        run.connect()
        run.receive(.other, at: 300)
        run.pass(to: 5299)
        #expect(run.isOpen)
        run.pass(to: 5300)
        #expect(run.ends == ["no message for 5 s, again in 500 ms"])
    }

    @Test func `a heartbeat is sent every 15 s, and without a response the stream is silent`() {
        var run = Run(.bitstamp)
        run.connect()
        for now: Int64 in [15_100, 30_100, 45_100] {
            run.pass(to: now)
            run.receive(.other, at: now + 100)
        }
        run.pass(to: 65_199)
        #expect(run.sent.dropFirst() == Array(repeating: #"{"event":"bts:heartbeat"}"#, count: 4)[...])
        #expect(run.isOpen)
        run.pass(to: 65_200)
        #expect(run.ends == ["no message for 20 s, again in 500 ms"])
    }

    @Test(arguments: [(100_000, 0), (0, 51_200_000)])
    func `a connection that brings 20,000 messages or 10 MB a second for 5 s is ended`(frames: Int, bytes: Int) {
        var run = Run(.binance)
        run.connect()
        run.count(frames, bytes: bytes, at: 1000)
        #expect(run.isOpen)
        run.count(201, bytes: 102_401, at: 1010)
        #expect(run.ends == ["it brings more than 20000 messages or 10000 KiB a second, again in 300000 ms"])
    }

    // MARK: - Trying again

    @Test(arguments: [(Int64(59_999), "over, again in 2000 ms"), (60_000, "over, again in 500 ms")])
    func `only a connection with prices for a minute makes the next failure a first one`(
        lasting: Int64, expected: String
    ) {
        var run = Run(.binance)
        run.start()
        run.end(at: 0)
        run.pass(to: 500)
        run.end(at: 500)
        run.pass(to: 1500)
        run.open(at: 1600)
        run.trade(100, at: 2000)
        var stopped = run
        run.end(at: 2000 + lasting)
        #expect(run.ends.last == expected)
        stopped.stop(at: 2000 + lasting)
        stopped.start(at: 70_000)
        stopped.end(at: 70_100)
        #expect(stopped.ends.last == expected)
    }

    @Test func `there are at most ten attempts in five minutes, also over a stop and a start`() {
        var run = Run(.kraken)
        run.start()
        while run.attempts.count < 10 {
            run.end(at: run.clock, jitter: 0)
            run.fire(at: run.next ?? 0, jitter: 0)
        }
        #expect(run.attempts.last == 91_500)
        run.end(at: 91_500, jitter: 0)
        #expect(run.next == 300_000)
        run.stop(at: 91_600)
        run.start(at: 91_700)
        run.pass(to: 299_999)
        #expect(!run.isOpen)
        run.pass(to: 300_000)
        #expect(run.isOpen)
    }

    @Test(arguments: [
        (StreamBackoff.Kind.busy(least: 5000), Int64(5000)), (.limited(retryAfter: 60_000), 60_000),
        (.limited(retryAfter: nil), 60_000), (.refused, 600_000), (.unexpected, 500),
    ])
    func `a wait that the exchange requires lasts over a stop and a start`(kind: StreamBackoff.Kind, rest: Int64) {
        var run = Run(.kraken)
        run.start()
        run.end(kind, at: 100)
        run.stop(at: 150)
        run.start(at: 200)
        run.pass(to: 99 + rest)
        #expect(!run.isOpen)
        run.pass(to: 100 + rest)
        #expect(run.isOpen)
    }

    @Test func `a new demand for the stream does not wait after a network failure`() {
        var run = Run(.kraken)
        run.start()
        run.end(at: 100)
        run.stop(at: 150)
        run.start(at: 200)
        run.start(at: 250)
        #expect(run.attempts == [0, 200])
    }

    /// For any events in any order the rules of ``Run`` hold, and attempts are limited.
    @Test(arguments: 0..<60) func `random histories keep the rules`(seed: Int) {
        var random = SeededGenerator(seed: seed)
        let sources: [StreamSource] = [.binance, .coinbase, .kraken, .bitstamp]
        let kinds: [StreamBackoff.Kind] = [.transient, .busy(least: 5000), .unexpected]
        var run = Run(sources[seed % 4], ["BTC/USD", "BTC/EUR"])
        var now: Int64 = 0
        run.start()
        for _ in 0..<300 {
            now += [0, 1, 100, 400, 1000, 3000, 20_000].randomElement(using: &random) ?? 0
            if Bool.random(using: &random) { run.fire(at: now, jitter: 0.5) }
            let market = Int.random(in: 0...1, using: &random)
            switch Int.random(in: 0..<12, using: &random) {
            case 0: run.start(at: now)
            case 1: run.stop(at: now)
            case 2...4: run.open(at: now)
            case 5: run.receive(.other, at: now)
            case 6: run.receive(.refused(run.markets[market], "no"), at: now)
            case 7: run.end(kinds[seed % 3], at: now, jitter: 0)
            case 8: run.count(50_000, at: now)
            default:
                run.trade(100, at: now, age: [0, 2500].randomElement(using: &random) ?? 0, of: market)
            }
        }
        for (first, eleventh) in zip(run.attempts, run.attempts.dropFirst(10)) {
            #expect(eleventh - first >= 300_000)
        }
    }
}

@Suite struct StreamBackoffTests {
    private func waits(_ kind: StreamBackoff.Kind, _ jitter: Double, count: Int) -> [Int64] {
        var backoff = StreamBackoff()
        return (0..<count).map { _ in backoff.wait(after: kind, jitter: jitter) }
    }

    @Test func `each kind of failure has its waits, and half of each wait is random`() {
        #expect(
            waits(.transient, 1, count: 9) == [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
        #expect(waits(.transient, 0, count: 9) == [0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
        #expect(waits(.busy(least: 5000), 1, count: 6) == [5000, 5000, 5000, 5000, 8000, 16_000])
        #expect(waits(.limited(retryAfter: nil), 1, count: 3) == [60_000, 120_000, 240_000])
        #expect(waits(.limited(retryAfter: nil), 0, count: 3) == [30_000, 60_000, 120_000])
        #expect(waits(.limited(retryAfter: 7000), 0, count: 2) == [7000, 7000])
        #expect(waits(.refused, 1, count: 3) == [600_000, 1_200_000, 2_400_000])
        #expect(waits(.refused, 0, count: 2) == [300_000, 600_000])
        // After several such responses they are not an accident.
        #expect(waits(.unexpected, 1, count: 5) == [500, 1000, 2000, 600_000, 1_200_000])
    }

    @Test func `each wait has an upper bound`() {
        #expect(waits(.transient, 1, count: 100).last == 60_000)
        #expect(waits(.busy(least: 3 * 86_400_000), 1, count: 1) == [86_400_000])
        #expect(waits(.limited(retryAfter: 3 * 86_400_000), 1, count: 1) == [86_400_000])
        #expect(waits(.limited(retryAfter: nil), 1, count: 100).last == 21_600_000)
        #expect(waits(.refused, 1, count: 100).last == 86_400_000)
        #expect(waits(.unexpected, 1, count: 100).last == 86_400_000)
    }
}
