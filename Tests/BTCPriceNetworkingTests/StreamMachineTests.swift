import BTCPriceCore
import TestSupport
import Testing

@testable import BTCPriceNetworking

/// A machine with its connections and its events. All times are milliseconds since the start of the test.
private struct Run {
    private static let boot: Int64 = 50_000_000

    let markets: [Market]
    private let acknowledges: Bool
    private(set) var machine: StreamMachine
    /// The connections that are open or being opened, the oldest first.
    private(set) var links: [Int] = []
    /// The times and addresses of the openings.
    private(set) var attempts: [Int64] = []
    private(set) var addresses: [String] = []
    private(set) var sent: [String] = []
    private(set) var changes: [Market] = []
    private(set) var events: [StreamEvent] = []
    /// The state that survives a restart.
    private(set) var record = StreamRecord()
    /// The time of the last event.
    private(set) var clock: Int64 = 0
    private var lastID = 0

    init(
        _ source: StreamSource, _ pairs: [String] = ["BTC/USD"], record: StreamRecord = StreamRecord(),
        spread: Double = 0.5
    ) {
        markets = pairs.map { Market("exchange", $0) }
        acknowledges = source.acknowledges
        machine = StreamMachine(
            source, urls: ["wss://127.0.0.1:1", "wss://127.0.0.1:2"], markets: markets, record: record, spread: spread)
    }

    static func time(_ now: Int64) -> ObservationTime {
        ObservationTime(wall: Timestamp(milliseconds: 1_791_000_000_000 + now), boottime: boot + now)
    }

    /// The ends of the connections.
    var ends: [String] {
        events.compactMap { event in
            guard case .ended(let reason, let isRefused, let wait) = event else { return nil }
            return "\(reason), again in \(wait.wholeMilliseconds) ms" + (isRefused ? ", refused" : "")
        }
    }

    /// The first deadline.
    var next: Int64? { machine.nextDeadline.map { $0 - Self.boot } }

    func deadline(_ what: StreamMachine.Deadline) -> Int64? {
        machine.deadlines.first { $0.what == what }.map { $0.at - Self.boot }
    }

    func loaded(at now: Int64, of index: Int = 0) -> LoadedPrice? {
        machine.price(of: markets[index], at: Self.time(now))
    }

    func price(at now: Int64, of index: Int = 0) -> Price? { loaded(at: now, of: index)?.value }

    private mutating func perform(_ actions: [StreamMachine.Action], at now: Int64) {
        clock = max(clock, now)
        for action in actions {
            switch action {
            case .open(let id, let url):
                #expect(id > lastID, "each has a number of its own")
                lastID = id
                links.append(id)
                attempts.append(now)
                addresses.append(url)
            case .close(let id):
                #expect(links.contains(id), "\(id) is not open")
                links.removeAll { $0 == id }
            case .send(let text, let id):
                #expect(links.contains(id), "\(id) is not open")
                sent.append(text)
            case .changed(let market): changes.append(market)
            case .report(let event): events.append(event)
            case .keep(let record): self.record = record
            }
        }
        #expect(links.count <= 2)
    }

    // MARK: - Events

    mutating func start(at now: Int64 = 0) {
        let actions = machine.start(at: Self.boot + now)
        perform(actions, at: now)
    }

    mutating func stop(at now: Int64) {
        let actions = machine.stop(at: Self.boot + now)
        perform(actions, at: now)
        #expect(links.isEmpty)
        #expect(machine.nextDeadline == nil)
    }

    /// A connection has opened: by default the newest one.
    mutating func open(_ id: Int? = nil, at now: Int64) {
        let actions = machine.opened(id ?? links.last ?? 0, at: Self.boot + now)
        perform(actions, at: now)
    }

    /// Starts with a connection that is open and acknowledged at 100 ms.
    mutating func connect() {
        start()
        open(at: 100)
        if acknowledges { receive(.acknowledged(markets), at: 100) }
    }

    /// A message arrives: by default on the oldest connection.
    /// - Parameter since: When it may have arrived at the earliest, if it has waited.
    mutating func receive(_ message: StreamMessage, at now: Int64, since: Int64? = nil, on id: Int? = nil) {
        let actions = machine.received(
            message, on: id ?? links.first ?? 0, at: Self.time(now), since: since.map { Self.boot + $0 })
        perform(actions, at: now)
    }

    /// A trade with an age.
    mutating func trade(
        _ value: Price, at now: Int64, since: Int64? = nil, age: Int64 = 0, number: Int64? = nil, of index: Int = 0,
        on id: Int? = nil
    ) {
        let time = Self.time(now).wall.milliseconds - age
        let trade = StreamTrade(
            market: markets[index], value: value, time: time, number: number, sent: time,
            position: FeedPosition(time: Timestamp(milliseconds: time), sequence: number))
        receive(.trade(trade), at: now, since: since, on: id)
    }

    /// Frames of any kind arrive.
    mutating func count(_ frames: Int, bytes: Int = 0, at now: Int64, on id: Int? = nil) {
        perform(machine.counted(frames, bytes: bytes, on: id ?? links[0], at: Self.boot + now), at: now)
    }

    /// The number of the newest trade arrives.
    mutating func heartbeat(_ number: Int64, at now: Int64) { receive(.lastTrade(markets[0], number), at: now) }

    mutating func end(
        _ kind: StreamBackoff.Kind = .transient, _ id: Int? = nil, at now: Int64, jitter: Double = 1
    ) {
        let actions = machine.ended(id ?? links.last ?? 0, kind, "over", at: Self.boot + now, jitter: jitter)
        perform(actions, at: now)
    }

    mutating func compare(
        _ value: Price, requested: Int64, at now: Int64, number: Int64? = nil, cacheTime: Int64 = 0, of index: Int = 0
    ) {
        let polled = LoadedPrice(markets[index], value, position: FeedPosition(sequence: number))
        let actions = machine.compare(
            polled, requested: Self.boot + requested, cacheTime: cacheTime, at: Self.time(now))
        perform(actions, at: now)
    }

    mutating func useNextAddress() -> Bool { machine.useNextAddress() }

    /// The timer fires.
    mutating func fire(at now: Int64, jitter: Double = 1) {
        let actions = machine.timerFired(at: Self.boot + now, jitter: jitter)
        perform(actions, at: now)
        #expect(machine.deadlines.allSatisfy { $0.at > Self.boot + now }, "what is due is done")
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
    private static func source(_ name: String) -> StreamSource {
        switch name {
        case "binance": .binance
        case "coinbase": .coinbase
        case "kraken": .kraken
        case "bitstamp": .bitstamp
        default: fatalError("no such stream in this test: \(name)")
        }
    }

    // MARK: - Opening

    @Test func `a connection that is not open in time is closed`() {
        var run = Run(.kraken)
        run.start()
        run.pass(to: 4999)
        #expect(run.links == [1])
        run.pass(to: 5000)
        #expect(run.links == [])
        #expect(run.ends == ["no connection in time, again in 500 ms"])
        run.pass(to: 5500)
        #expect(run.links == [2])
    }

    @Test func `the time for the first price begins at the opening`() {
        var run = Run(.binance)
        run.start()
        run.open(at: 4000)
        #expect(run.sent == [])
        run.pass(to: 13_999)
        #expect(run.links == [1])
        run.pass(to: 14_000)
        #expect(run.ends == ["no price after the subscription, again in 500 ms"])
    }

    @Test(arguments: [true, false]) func `a subscription without an acknowledgement or without a price ends`(
        isAcknowledged: Bool
    ) {
        var run = Run(.coinbase)
        run.start()
        run.open(at: 100)
        #expect(run.sent.count == 1)
        if isAcknowledged { run.receive(.acknowledged(run.markets), at: 200) }
        for now: Int64 in [4000, 8000] { run.receive(.other, at: now) }
        run.pass(to: 10_099)
        #expect(run.links == [1])
        run.pass(to: 10_100)
        let reason = isAcknowledged ? "no price after the subscription" : "no acknowledgement in time"
        #expect(run.ends == ["\(reason), again in 500 ms"])
    }

    @Test func `a price before the acknowledgement counts`() {
        var run = Run(.kraken)
        run.start()
        run.open(at: 100)
        run.trade(100, at: 200)
        #expect(run.price(at: 200) == 100)
    }

    @Test func `a refused market ends nothing, but the refusal of all markets ends the connection`() {
        var run = Run(.coinbase, ["BTC/USD", "BTC/EUR"])
        run.start()
        run.open(at: 100)
        run.receive(.refused(run.markets[1], "delisted"), at: 200)
        run.receive(.acknowledged([run.markets[0]]), at: 200)
        run.trade(100, at: 300)
        #expect(run.events == [.refusedMarket(run.markets[1], "delisted")])
        #expect(run.price(at: 300) == 100)
        run.receive(.refused(nil, "no more"), at: 400)
        #expect(run.ends == ["no more, again in 600000 ms, refused"])
        var single = Run(.coinbase)
        single.start()
        single.open(at: 100)
        single.receive(.refused(single.markets[0], "delisted"), at: 200)
        #expect(single.ends == ["delisted, again in 600000 ms, refused"])
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

    // MARK: - Silence

    @Test func `a stream that falls silent is closed`() {
        var run = Run(.kraken)
        run.connect()
        run.trade(100, at: 300)
        run.pass(to: 5299)
        #expect(run.links == [1])
        run.pass(to: 5300)
        #expect(run.ends == ["no message for 5 s, again in 500 ms"])
    }

    @Test func `a heartbeat is sent every 15 s, and needs a response`() {
        var run = Run(.bitstamp)
        run.connect()
        for now: Int64 in [15_100, 30_100, 45_100] {
            run.pass(to: now)
            run.receive(.other, at: now + 100)
        }
        #expect(run.sent.dropFirst() == Array(repeating: #"{"event":"bts:heartbeat"}"#, count: 3)[...])
        run.trade(100, at: 46_000)
        run.pass(to: 65_099)
        #expect(run.links == [1])
        run.pass(to: 65_100)
        #expect(run.ends == ["no response to a heartbeat, again in 500 ms"])
    }

    // MARK: - Proofs

    @Test func `a price counts for 1.75 s after its proof, and has the age of the proof`() {
        var run = Run(.binance)
        run.connect()
        run.trade(100, at: 1000)
        #expect(run.price(at: 2750) == 100)
        #expect(run.loaded(at: 2750)?.observed == Run.time(1000))
        #expect(run.loaded(at: 2750)?.push?.way == .stream)
        #expect(run.price(at: 2751) == nil)
        // A message without a trade is not a proof.
        run.receive(.other, at: 2800)
        #expect(run.price(at: 2800) == nil)
        // The same price in another trade is a proof.
        run.trade(100, at: 2900)
        #expect(run.price(at: 4650) == 100)
        #expect(run.changes.count == 2)
    }

    @Test func `the number of Coinbase's newest trade proves the price, or that it is not the newest`() {
        var run = Run(.coinbase)
        run.connect()
        run.trade(100, at: 1000, number: 7)
        run.heartbeat(7, at: 3000)
        #expect(run.price(at: 4750) == 100)
        #expect(run.price(at: 4751) == nil)
        // No trade has this number.
        run.heartbeat(0, at: 5000)
        #expect(run.price(at: 5000) == nil)
        run.heartbeat(6, at: 5500)
        #expect(run.price(at: 5500) == 100)
        run.heartbeat(8, at: 6000)
        #expect(run.price(at: 6000) == nil)
        run.trade(101, at: 7000, number: 8)
        #expect(run.price(at: 7000) == 101)
        #expect(run.ends == [])
        // A message was lost. The next trade would correct the price.
        for now in stride(from: Int64(8000), through: 17_000, by: 1000) {
            run.pass(to: now)
            run.heartbeat(9, at: now)
        }
        run.pass(to: 17_999)
        #expect(run.links == [1])
        run.pass(to: 18_000)
        #expect(run.ends == ["it does not show the newest price of BTC/USD, again in 500 ms"])
    }

    @Test func `any message of Kraken proves the price for a minute after its arrival`() {
        var run = Run(.kraken)
        run.connect()
        run.trade(100, at: 1000)
        for now in stride(from: Int64(2000), through: 62_000, by: 1000) {
            run.pass(to: now)
            run.receive(.other, at: now)
        }
        #expect(run.price(at: 62_750) == 100)
        #expect(run.price(at: 62_751) == nil)
        #expect(run.ends == [])
        run.trade(101, at: 63_000)
        #expect(run.price(at: 63_000) == 101)
    }

    @Test(arguments: [
        ("binance", Int64(5000)), ("coinbase", 10_000), ("kraken", 60_000), ("bitstamp", 5000),
    ])
    func `an old first price does not count by itself`(name: String, oldest: Int64) {
        var fresh = Run(Self.source(name))
        fresh.connect()
        fresh.trade(100, at: 1000, age: oldest)
        #expect(fresh.price(at: 1000) == 100)

        var run = Run(Self.source(name))
        run.connect()
        run.trade(100, at: 1000, age: oldest + 1, number: 7)
        run.receive(.other, at: 2000)
        #expect(run.price(at: 2000) == nil)
        #expect(run.changes == [])
        // A response with the same price proves it, for the time when the request was sent.
        run.compare(100, requested: 3000, at: 3100)
        #expect(run.price(at: 3100) == 100)
        #expect(run.loaded(at: 3100)?.observed == Run.time(3000))
        run.trade(101, at: 5000, number: 8)
        #expect(run.price(at: 5000) == 101)
        #expect(run.links == [1])
    }

    @Test func `a trade older than the last one is ignored, over a new connection too`() {
        var run = Run(.binance)
        run.connect()
        run.trade(100, at: 1000, number: 5)
        run.trade(99, at: 1100, age: 200, number: 6)
        run.trade(98, at: 1200, age: 200, number: 4)
        #expect(run.price(at: 1200) == 100)
        // Trades with the same time, as in a burst.
        run.trade(101, at: 1300, age: 300, number: 6)
        #expect(run.price(at: 1300) == 101)
        run.end(at: 1400)
        #expect(run.price(at: 1400) == nil)
        run.pass(to: 1900)
        run.open(at: 2000)
        #expect(run.price(at: 2000) == nil)
        run.trade(97, at: 2100, age: 1200, number: 9)
        #expect(run.price(at: 2100) == nil)
        run.trade(102, at: 2200, number: 7)
        #expect(run.price(at: 2200) == 102)
        #expect(run.changes.count == 3)
    }

    @Test(arguments: [true, false]) func `one trade with a time in the future does not stop a stream`(isFirst: Bool) {
        var run = Run(.binance)
        run.connect()
        if !isFirst { run.trade(100, at: 500) }
        run.trade(101, at: 1000, age: -3_600_000)
        run.trade(102, at: 2000)
        run.trade(103, at: 3000)
        #expect(run.price(at: 3000) == 103)
        run.pass(to: 10_000)
        #expect(run.links == [1])
    }

    @Test func `each market has its own price and its own proof`() {
        var run = Run(.binance, ["BTC/USD", "BTC/EUR"])
        run.connect()
        run.trade(100, at: 1000)
        run.trade(86, at: 2000, of: 1)
        #expect(run.price(at: 2750) == 100)
        #expect(run.price(at: 2751) == nil)
        #expect(run.price(at: 2751, of: 1) == 86)
        // A message about a market without a subscription.
        let other = StreamTrade(market: Market("exchange", "BTC/GBP"), value: 75, time: 1, sent: 1)
        run.receive(.trade(other), at: 2600)
        #expect(run.machine.price(of: other.market, at: Run.time(2600)) == nil)
        #expect(run.changes == run.markets)
    }

    // MARK: - Comparing with requests

    @Test func `a response with another price than a silent stream's ends the stream, unless it catches up`() {
        var run = Run(.kraken)
        run.connect()
        run.trade(100, at: 1000)
        // Within a second the response may simply be newer.
        run.compare(101, requested: 2000, at: 2100)
        // A response from a cache may be older.
        run.compare(101, requested: 2001, at: 2100, cacheTime: 1000)
        #expect(run.price(at: 2100) == 100)
        run.compare(101, requested: 2001, at: 2100)
        #expect(run.price(at: 2100) == nil)
        var inTime = run
        for now: Int64 in [2500, 3500] { run.receive(.other, at: now) }
        #expect(run.price(at: 3500) == nil)
        run.pass(to: 4099)
        #expect(run.links == [1])
        run.pass(to: 4100)
        #expect(run.ends == ["it does not show the newest price of BTC/USD, again in 500 ms"])

        inTime.trade(101, at: 4000)
        #expect(inTime.price(at: 4000) == 101)
        inTime.pass(to: 8999)
        #expect(inTime.links == [1])
    }

    @Test func `a response with the stream's price ends the suspicion`() {
        var run = Run(.kraken)
        run.connect()
        run.trade(100, at: 1000)
        run.compare(101, requested: 2500, at: 2600)
        #expect(run.price(at: 2600) == nil)
        run.compare(100, requested: 3000, at: 3100)
        #expect(run.price(at: 3100) == 100)
        run.pass(to: 5999)
        #expect(run.links == [1])
    }

    @Test func `a response with an older trade does not count`() {
        var run = Run(.coinbase)
        run.connect()
        run.trade(100, at: 1000, number: 7)
        run.compare(99, requested: 2200, at: 2300, number: 6)
        #expect(run.price(at: 2300) == 100)
        run.compare(101, requested: 2300, at: 2400, number: 8)
        #expect(run.price(at: 2400) == nil)
    }

    @Test func `after a new connection a response is not compared with the price of the old one`() {
        var run = Run(.bitstamp)
        run.connect()
        run.trade(100, at: 1000)
        run.end(at: 2000)
        run.pass(to: 2500)
        run.open(at: 2600)
        run.receive(.acknowledged(run.markets), at: 2700)
        // The price has changed meanwhile, and this connection shows only the next trade.
        run.compare(101, requested: 5000, at: 5100)
        run.pass(to: 10_000)
        #expect(run.links == [2])
        run.trade(102, at: 10_100)
        #expect(run.price(at: 10_100) == 102)
    }

    // MARK: - Lag

    @Test func `late prices for 3 s end a connection, and the second time the stream`() {
        var run = Run(.binance)
        run.connect()
        run.trade(100, at: 200)
        run.trade(100, at: 300)
        run.trade(101, at: 3000, age: 2000)
        #expect(run.price(at: 3000) == 101)
        run.trade(102, at: 4000, age: 2001)
        #expect(run.price(at: 4000) == nil)
        run.trade(103, at: 6000)
        #expect(run.price(at: 6000) == 103)
        run.pass(to: 8000)
        #expect(run.links == [1])
        run.trade(104, at: 9000, age: 2100)
        run.trade(105, at: 11_000, age: 3000)
        run.pass(to: 11_999)
        #expect(run.links == [1])
        run.pass(to: 12_000)
        #expect(run.ends == ["its prices of BTC/USD are late, again in 500 ms"])

        run.pass(to: 12_500)
        run.open(at: 12_600)
        run.trade(106, at: 12_700)
        run.trade(107, at: 12_800)
        #expect(run.price(at: 12_800) == 107)
        run.trade(108, at: 15_000, age: 2100)
        run.trade(109, at: 17_000, age: 2100)
        run.pass(to: 18_000)
        #expect(run.ends.last == "its prices of BTC/USD are late, again in 300000 ms")
        run.pass(to: 317_999)
        #expect(run.links == [])
        run.pass(to: 318_000)
        #expect(run.links == [3])
    }

    @Test func `the prices of a stream that is late from its start do not count`() {
        var run = Run(.binance)
        run.connect()
        for step in Int64(0)..<20 {
            run.trade(Price(100 + step), at: 1000 + step * 100, age: 60_000)
            #expect(run.price(at: 1000 + step * 100) == nil)
        }
        #expect(run.changes == [])
        run.trade(200, at: 3100, age: 5001)
        #expect(run.price(at: 3100) == nil)
        run.trade(201, at: 3200, age: 80)
        #expect(run.price(at: 3200) == 201)
        #expect(run.changes.count == 1)
        // Now the delay of messages is known, whatever the clock shows.
        run.trade(202, at: 6000, age: 2000)
        #expect(run.price(at: 6000) == 202)
        run.trade(203, at: 9000, age: 2100)
        #expect(run.price(at: 9000) == nil)
    }

    @Test func `the trade number of a response shows that a busy stream is late`() {
        var run = Run(.coinbase)
        run.connect()
        run.trade(100, at: 1000, number: 5)
        run.compare(101, requested: 1005, at: 1010, number: 7)
        #expect(run.price(at: 1010) == nil)
        run.trade(102, at: 1020, number: 6)
        #expect(run.price(at: 1020) == nil)
        run.trade(101, at: 1030, number: 7)
        #expect(run.price(at: 1030) == 101)
        run.compare(103, requested: 2000, at: 2010, number: 9)
        run.trade(102, at: 3000, number: 8)
        for now in stride(from: Int64(4000), through: 12_000, by: 1000) {
            // The number on a late stream.
            run.heartbeat(8, at: now)
            #expect(run.price(at: now) == nil)
        }
        run.pass(to: 12_010)
        #expect(run.ends.last?.hasPrefix("it does not show the newest price of BTC/USD") == true)
    }

    @Test func `a price that has waited to be read is dated by the read before it`() {
        var run = Run(.binance)
        run.connect()
        run.trade(70000, at: 1000)
        run.trade(70001, at: 1400, since: 1070)
        #expect(run.loaded(at: 1400)?.observed == Run.time(1070))
        #expect(run.price(at: 2820) == 70001)
        #expect(run.price(at: 2821) == nil)
        // It proves nothing before what was proven already.
        run.trade(70001, at: 1500, since: 1000)
        #expect(run.loaded(at: 1500)?.observed == Run.time(1070))
    }

    @Test func `a price is reported when it is proven`() {
        var run = Run(.coinbase)
        run.connect()
        run.trade(100, at: 1000, age: 12_000, number: 7)
        #expect(run.changes == [])
        run.heartbeat(7, at: 1500)
        #expect(run.price(at: 1500) == 100)
        #expect(run.changes.count == 1)
        run.heartbeat(7, at: 2500)
        #expect(run.changes.count == 1)
    }

    /// Records a message.
    private static func lag(_ meter: inout LagMeter, _ sent: Int64, _ arrival: Int64) -> Int64? {
        meter.add(sent: sent, arrivedAt: arrival)
        return meter.lag(sent: sent, arrivedAt: arrival)
    }

    @Test func `the lag of a message is measured against the fastest one of the last minutes`() {
        var meter = LagMeter()
        #expect(Self.lag(&meter, 0, 100) == 0)
        #expect(Self.lag(&meter, 1000, 1150) == 50)
        #expect(Self.lag(&meter, 2000, 2090) == 0)
        #expect(Self.lag(&meter, 300_000, 300_200) == 110)
        // The clocks drift, and the old fastest message expires.
        #expect(Self.lag(&meter, 600_000, 600_300) == 100)
        // A clock ahead of this machine's works too.
        var ahead = LagMeter()
        #expect(Self.lag(&ahead, 5000, 0) == 0)
        #expect(Self.lag(&ahead, 5000, 30) == 30)
    }

    // MARK: - Make before break

    @Test func `a connection to a leaving server is closed after the next one has a price`() {
        var run = Run(.bitstamp)
        run.connect()
        run.trade(100, at: 1000)
        // Every connection announces it.
        run.receive(.leaving, at: 5999)
        #expect(run.links == [1])
        run.receive(.leaving, at: 6000)
        run.receive(.leaving, at: 6100)
        #expect(run.links == [1, 2])
        run.trade(101, at: 6200, on: 1)
        #expect(run.price(at: 6200) == 101)
        run.open(2, at: 6300)
        run.receive(.acknowledged(run.markets), at: 6350, on: 2)
        #expect(run.price(at: 6350) == 101)
        run.trade(102, at: 6400, on: 2)
        #expect(run.links == [2])
        #expect(run.price(at: 6400) == 102)
        // This one is too late.
        run.trade(103, at: 6500, on: 1)
        #expect(run.price(at: 6500) == 102)
        #expect(run.ends == [])
    }

    @Test func `while the next connection fails the present one stays open`() {
        var run = Run(.bitstamp)
        run.connect()
        run.trade(100, at: 1000)
        run.receive(.leaving, at: 6000)
        run.end(.transient, 2, at: 6100)
        #expect(run.links == [1])
        run.trade(101, at: 6200)
        #expect(run.price(at: 6200) == 101)
        run.pass(to: 6600)
        #expect(run.links == [1, 3])
        // The server leaves before the next connection is open, which is not a failure.
        let known = run.ends.count
        run.end(.transient, 1, at: 6700)
        #expect(run.links == [3])
        #expect(run.ends.count == known)
        run.open(at: 6800)
        run.trade(102, at: 6900)
        #expect(run.price(at: 6900) == 102)
    }

    @Test(arguments: [(0.0, Int64(20)), (1.0, 23)])
    func `before the exchange closes a connection because of its age it is replaced`(spread: Double, hours: Int64) {
        var run = Run(.binance, spread: spread)
        run.connect()
        run.trade(100, at: 1000)
        let age = hours * 3_600_000
        #expect(run.deadline(.retirement(1)) == age)
        run.trade(101, at: age - 1)
        run.fire(at: age)
        #expect(run.links == [1, 2])
        #expect(run.price(at: age) == 101)
        run.open(at: age + 100)
        run.trade(102, at: age + 200, on: 2)
        #expect(run.links == [2])
        #expect(run.price(at: age + 200) == 102)
        #expect(run.ends == [])
    }

    @Test func `a connection that brings 10 MB a second for 5 s is ended, however few the messages`() {
        var run = Run(.binance)
        run.connect()
        run.count(200, bytes: 51_200_000, at: 1000)
        #expect(run.links == [1])
        run.count(1, bytes: 102_401, at: 1010)
        #expect(run.ends == ["it brings more than 20000 messages or 10000 KiB a second, again in 300000 ms"])
    }

    @Test func `more than 20,000 messages a second for 5 s end a stream, and it waits`() {
        var run = Run(.binance)
        run.connect()
        run.trade(100, at: 100)
        // Messages that the kernel held back arrive at once.
        run.count(60_000, at: 1000)
        for tenth in 0..<Int64(100) { run.count(2000, at: 1000 + 100 * tenth) }
        #expect(run.links == [1])
        var end: Int64 = 20_000
        while run.links == [1], end < 60_000 {
            end += 100
            run.count(4000, at: end)
        }
        #expect((24_000...26_000).contains(end))
        #expect(run.ends == ["it brings more than 20000 messages or 10000 KiB a second, again in 300000 ms"])
    }

    @Test func `a wait that the exchange requires is not shortened by the end of the old connection`() {
        var run = Run(.bitstamp)
        run.connect()
        run.trade(100, at: 1000)
        run.receive(.leaving, at: 6000)
        run.end(.limited(retryAfter: 3_600_000), 2, at: 6100)
        run.end(.busy(least: 5000), 1, at: 7000)
        run.pass(to: 3_606_099)
        #expect(run.links == [])
        run.pass(to: 3_606_100)
        #expect(run.links == [3])
    }

    // MARK: - Trying again

    @Test(arguments: [(Int64(59_999), "over, again in 2000 ms"), (60_000, "over, again in 500 ms")])
    func `only a connection with prices for a minute makes the next failure a first one`(
        lasting: Int64, expected: String
    ) {
        var run = Self.afterTwoFailures()
        run.end(at: 2000 + lasting)
        #expect(run.ends.last == expected)
    }

    @Test func `a replaced connection and one that nobody needs any more count the same`() {
        var replaced = Self.afterTwoFailures()
        replaced.receive(.leaving, at: 62_000)
        replaced.open(4, at: 62_100)
        replaced.trade(101, at: 62_200, on: 4)
        #expect(replaced.links == [4])
        replaced.end(at: 63_000)
        #expect(replaced.ends.last == "over, again in 500 ms")
        var stopped = Self.afterTwoFailures()
        stopped.stop(at: 62_000)
        stopped.start(at: 62_100)
        stopped.end(at: 62_200)
        #expect(stopped.ends.last == "over, again in 500 ms")
    }

    /// Two connections have failed, and the third one has had a price since 2 s.
    private static func afterTwoFailures() -> Run {
        var run = Run(.binance)
        run.start()
        run.end(at: 0)
        run.pass(to: 500)
        run.end(at: 500)
        run.pass(to: 1500)
        run.open(at: 1600)
        run.trade(100, at: 2000)
        return run
    }

    @Test func `there are at most ten attempts in five minutes, also across a restart`() {
        var run = Run(.kraken)
        run.start()
        while run.attempts.count < 10 {
            run.end(at: run.clock, jitter: 0)
            run.fire(at: run.next ?? 0, jitter: 0)
        }
        #expect(run.attempts.last == 91_500)
        run.end(at: 91_500, jitter: 0)
        #expect(run.next == 300_000)
        var again = Run(.kraken, record: run.record)
        again.start(at: 91_600)
        again.pass(to: 299_999)
        #expect(again.links == [])
        again.pass(to: 300_000)
        #expect(again.links == [1])
    }

    @Test(arguments: [
        (StreamBackoff.Kind.busy(least: 5000), Int64(5000)), (.limited(retryAfter: 60_000), 60_000),
        (.limited(retryAfter: nil), 60_000), (.refused, 600_000), (.unexpected, 500),
    ])
    func `a wait that the exchange requires lasts across an end of the stream and a restart`(
        kind: StreamBackoff.Kind, rest: Int64
    ) {
        var run = Run(.kraken)
        run.start()
        run.end(kind, at: 100)
        run.stop(at: 150)
        var restarted = Run(.kraken, record: run.record)
        run.start(at: 200)
        run.pass(to: 99 + rest)
        #expect(run.links == [])
        run.pass(to: 100 + rest)
        #expect(run.links == [2])
        restarted.start(at: 200)
        restarted.pass(to: 99 + rest)
        #expect(restarted.links == [])
        restarted.pass(to: 100 + rest)
        #expect(restarted.links == [1])
    }

    @Test func `a new demand for the stream does not wait after a network failure`() {
        var run = Run(.kraken)
        run.start()
        run.end(at: 100)
        run.stop(at: 150)
        run.start(at: 200)
        #expect(run.links == [2])
        run.start(at: 250)
        #expect(run.links == [2])
    }

    // MARK: - Any order

    /// For any events in any order the rules of ``Run`` hold, every price comes from a trade, and attempts are limited.
    @Test(arguments: 0..<120) func `random histories keep the rules`(seed: Int) {
        var random = SeededGenerator(seed: seed)
        let names = ["binance", "coinbase", "kraken", "bitstamp"]
        var run = Run(Self.source(names[seed % 4]), ["BTC/USD", "BTC/EUR"])
        var traded: [Set<Price>] = [[], []]
        var now: Int64 = 0
        run.start()
        for _ in 0..<300 {
            now += [0, 1, 100, 400, 1000, 3000, 20_000].randomElement(using: &random) ?? 0
            if Int.random(in: 0..<3, using: &random) > 0 {
                run.fire(at: now, jitter: Double.random(in: 0...1, using: &random))
            }
            // Sometimes a connection that is closed already.
            let id = run.links.randomElement(using: &random) ?? Int.random(in: 0...9, using: &random)
            let market = Int.random(in: 0...1, using: &random)
            let number = Int64.random(in: 0...9, using: &random)
            switch Int.random(in: 0..<20, using: &random) {
            case 0: run.start(at: now)
            case 1 where Bool.random(using: &random): run.stop(at: now)
            case 2...5: run.open(id, at: now)
            case 6, 7: run.receive(.acknowledged(run.markets), at: now, on: id)
            case 8: run.receive(.acknowledged([run.markets[market]]), at: now, on: id)
            case 9: run.receive(.other, at: now, on: id)
            case 10: run.receive(.leaving, at: now, on: id)
            case 11: run.receive(.lastTrade(run.markets[market], number), at: now, on: id)
            case 12 where Bool.random(using: &random):
                run.receive(.refused(Bool.random(using: &random) ? run.markets[market] : nil, "no"), at: now, on: id)
            case 13:
                let kinds: [StreamBackoff.Kind] = [
                    .transient, .transient, .busy(least: 5000), .limited(retryAfter: 0), .unexpected,
                ]
                let kind = kinds.randomElement(using: &random) ?? .transient
                run.end(kind, id, at: now, jitter: Double.random(in: 0...1, using: &random))
            case 14:
                // Half of these numbers belong to no trade.
                run.compare(
                    Price(100 + number), requested: now - Int64.random(in: 0...2000, using: &random), at: now,
                    number: Bool.random(using: &random) ? number : nil, of: market)
            default:
                let price = Price(100 + number % 5)
                traded[market].insert(price)
                let ages: [Int64] = [0, 0, 0, 50, 2500, 30_000, 90_000]
                run.trade(
                    price, at: now, age: ages.randomElement(using: &random) ?? 0, number: number, of: market, on: id)
            }
            for index in 0...1 {
                guard let price = run.loaded(at: now, of: index) else { continue }
                #expect(traded[index].contains(price.value))
                let oldest = Run.time(now - StreamMachine.Bounds.proof).boottime
                #expect(price.observed.map { oldest <= $0.boottime } == true)
                #expect(price.observed.map { $0.boottime <= Run.time(now).boottime } == true)
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

    @Test func `a good connection resets the waits`() {
        let kinds: [StreamBackoff.Kind] = [.transient, .limited(retryAfter: nil), .refused]
        for kind in kinds {
            var backoff = StreamBackoff()
            let first = backoff.wait(after: kind, jitter: 1)
            #expect(backoff.wait(after: kind, jitter: 1) > first)
            backoff.reset()
            #expect(backoff.wait(after: kind, jitter: 1) == first)
        }
    }

    /// After a boot the clock restarts, and the stored times are not valid.
    @Test func `attempts in the future are ignored`() {
        let backoff = StreamBackoff(attempts: Array(repeating: 1_000_000, count: 10))
        #expect(backoff.mayAttempt(at: 5000) == 5000)
        #expect(backoff.mayAttempt(at: 1_000_000) == 1_300_000)
    }
}
