import Synchronization
import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct BackfillPlanTests {
    private let wanted: Range<Int64> = 0..<1440 * 60

    private func next(
        _ plan: BackfillPlan, known: some Sequence<Int64> = [], failed: Set<Int> = []
    ) -> BackfillPlan.Request? {
        plan.next(.minute, known: Set(known.map { $0 * 60 }), wanted: wanted, failed: failed)
    }

    private func minutes(_ request: BackfillPlan.Request?) -> [Int64] {
        request.map { [$0.range.lowerBound / 60, $0.range.upperBound / 60] } ?? []
    }

    @Test func `the loader with the fewest requests is used, page by page`() {
        var plan = BackfillPlan([ScriptedCandles(page: 300), ScriptedCandles(page: 1000)])
        let first = next(plan)
        #expect(first?.loader == 1)
        #expect(minutes(first) == [0, 1000])
        plan.answered(first ?? .init(loader: 0, step: .minute, range: 0..<0), delivered: [])
        // Of several loaders that need one request, the first source's; but the span is longer than its page.
        #expect(minutes(next(plan)) == [1000, 1440])
        #expect(next(plan)?.loader == 1)
        #expect(next(plan, known: 0..<1000, failed: [1])?.loader == 0)
        #expect(minutes(next(plan, known: 0..<1000, failed: [1])) == [1000, 1300])
        #expect(next(plan, failed: [0, 1]) == nil)
    }

    @Test func `a loader that has only the newest candles is requested for those`() {
        let plan = BackfillPlan([ScriptedCandles(page: 720, hasNewestOnly: true), ScriptedCandles(page: 300)])
        // The gap is within its reach.
        #expect(next(plan, known: 0..<1300)?.loader == 0)
        #expect(minutes(next(plan, known: 0..<1300)) == [1300, 1440])
        // The loader has only a part of this gap. The other one needs more requests, but has all of it.
        #expect(next(plan)?.loader == 1)
        #expect(minutes(next(plan, failed: [1])) == [721, 1440])
        #expect(next(plan, known: 700..<1440, failed: [1]) == nil)
    }

    @Test func `a candle that an exchange lacks is not requested again, and a known one never`() {
        var plan = BackfillPlan([ScriptedCandles(page: 300)])
        let known = (0..<1440).filter { $0 != 400 && $0 != 402 }.map(Int64.init)
        let request = next(plan, known: known)
        #expect(minutes(request) == [400, 403])
        if let request { plan.answered(request, delivered: [401 * 60]) }
        #expect(next(plan, known: known) == nil)
        #expect(next(BackfillPlan([]), known: []) == nil)
        // Another exchange may have the candle.
        var two = BackfillPlan([ScriptedCandles(page: 300), ScriptedCandles(page: 300)])
        for loader in [0, 1] {
            let request = next(two, known: known)
            #expect(request?.loader == loader)
            if let request { two.answered(request, delivered: []) }
        }
        #expect(next(two, known: known) == nil)
    }

    @Test func `a candle that was delivered and lost is requested again in the next search`() {
        var plan = BackfillPlan([ScriptedCandles(page: 1440)])
        let request = next(plan)
        #expect(minutes(request) == [0, 1440])
        if let request { plan.answered(request, delivered: (0..<1440).filter { $0 != 700 }.map { $0 * 60 }) }
        #expect(next(plan) == nil)
        plan.begin()
        #expect(next(plan, known: (0..<1440).filter { $0 != 700 }) == nil, "there was no trade")
        #expect(minutes(next(plan, known: 10..<1440)) == [0, 10])
    }

    /// The machine's clock may be a minute ahead of the exchange's.
    @Test func `the present candle and the one that has just ended are not requested`() {
        #expect(BackfillPlan.range(of: .minute, 2, at: 1000 * 60 + 31) == 997 * 60..<999 * 60)
        #expect(BackfillPlan.range(of: .minute, 2, at: 1000 * 60 + 29) == 996 * 60..<998 * 60)
        #expect(BackfillPlan.range(of: .hour, 1, at: 7200 + 90) == 3600..<7200)
        #expect(BackfillPlan.range(of: .hour, 1, at: 7200 + 89) == 0..<3600)
    }
}

/// A loader whose responses are scripted.
private final class ScriptedCandles: CandleLoader {
    let market: Market
    let page: Int
    let hasNewestOnly: Bool
    private let error: PriceLoadingError
    private let unused: Int
    private let state = Mutex((failures: 0, requests: [(step: Candle.Step, range: Range<Int64>)]()))

    init(
        _ market: Market = .coinbase, failures: Int = 0, _ error: PriceLoadingError = .unavailable("HTTP 503"),
        page: Int = 300, hasNewestOnly: Bool = false, unused: Int = 0
    ) {
        self.page = page
        self.market = market
        self.error = error
        self.hasNewestOnly = hasNewestOnly
        self.unused = unused
        state.withLock { $0.failures = failures }
    }

    var requests: [(step: Candle.Step, range: Range<Int64>)] { state.withLock(\.requests) }

    func load(_ step: Candle.Step, in range: Range<Int64>) async throws(PriceLoadingError) -> LoadedCandles {
        let fails = state.withLock { state in
            state.requests.append((step, range))
            state.failures -= 1
            return state.failures >= 0
        }
        if fails { throw error }
        let candles = stride(from: range.lowerBound, to: range.upperBound, by: Int(step.seconds)).map {
            Candle(start: $0, open: 68_900, high: 68_950, low: 68_890, close: 68_901, origin: "coinbase")
        }
        return LoadedCandles(candles, unused: unused)
    }
}

extension Backfill {
    /// Requests one minute. Returns why it could not be stored.
    fileprivate func reason(_ currency: Currency, at second: Int64, for user: UInt32) async -> String? {
        let fetched = await fetch(currency, at: [second], for: user)
        return fetched.failures.first?.value ?? fetched.wait.map { "try again in \($0) ms" }
    }
}

@Suite(.timeLimit(.minutes(3))) struct BackfillTests {
    private let archive = MemoryArchive()

    private let news = Log<Backfill.News>()

    private func backfill(_ world: World, _ loaders: ScriptedCandles..., history: PriceHistory) -> Backfill {
        Backfill(
            [.init(.usd, loaders)], engine: world.engine, history: history, archive: archive,
            background: BackgroundWork(clock: world.clock), clock: world.clock, now: world.now,
            report: { [news] in news.add($0) })
    }

    /// Moves the clock on until the task has ended.
    private func finish<Value: Sendable>(_ task: Task<Value, any Error>, _ clock: TestClock) async throws -> Value {
        let mover = Task {
            while !Task.isCancelled {
                // The clock does not advance while a response is awaited, or else the price becomes old on a slow machine.
                if let wait = clock.nextWait, wait < Backfill.timeout { clock.advance(to: clock.offset + wait) }
                for _ in 0..<50 { await Task.yield() }
            }
        }
        defer { mover.cancel() }
        return try await task.value
    }

    @Test func `the search sleeps until there is a current price, and a reload wakes it`() async {
        let (world, loader) = (World(), ScriptedCandles())
        let backfill = backfill(world, history: PriceHistory(store: archive))
        await world.engine.subscribe(backfill)
        let task = Task { await backfill.run() }
        await world.clock.run(to: Backfill.firstPeriod)
        while world.clock.timers > 0 { await Task.yield() }
        // A lane without loaders is complete at once. The next search has the minutes before this one, the third is a period later.
        await world.ticker.start()
        _ = await world.tick("68900")
        let second = Backfill.firstPeriod + Backfill.secondPeriod
        await world.clock.timer(at: second)
        while world.clock.offset < second {
            world.clock.advance(to: world.clock.offset + .seconds(1))
            _ = await world.tick("68900")
        }
        await world.clock.timer(at: second + Backfill.period)
        await backfill.change([.init(.usd, [loader])])
        while loader.requests.isEmpty { await Task.yield() }
        task.cancel()
        await task.value
        await world.ticker.stop()
    }

    @Test func `without a current price nothing is requested; with one, the gaps are, and the day includes them`()
        async throws
    {
        let (world, loader) = (World(), ScriptedCandles())
        let history = PriceHistory(store: archive)
        let backfill = backfill(world, loader, history: history)
        #expect(try await !backfill.fill())
        #expect(loader.requests.isEmpty)
        await world.ticker.start()
        _ = await world.tick("68900")
        await world.ticker.stop()
        #expect(try await finish(Task { try await backfill.fill() }, world.clock))
        // More minutes may end meanwhile.
        #expect(archive.filled[.minute]?.count ?? 0 >= 1440)
        #expect(archive.filled[.hour]?.count == 720)
        #expect(archive.filled[.day]?.count == 730)
        #expect(loader.requests.count { $0.step == .hour } == 3)
        #expect(loader.requests.count { $0.step == .day } == 3)
        #expect(loader.requests.count { $0.step == .minute && $0.range.count > 60 * 60 } == 5)
        let day = try #require(history.day(of: .usd, at: world.now()))
        #expect((day.open, day.high, day.isBackfilled) == (68_900, 68_950, true))
        // All candles are known now, except those that have ended since.
        #expect(try await finish(Task { try await backfill.fill() }, world.clock))
        for step in Candle.Step.allCases {
            let ranges = loader.requests.filter { $0.step == step }.map(\.range).sorted {
                $0.lowerBound < $1.lowerBound
            }
            #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound }, "requested twice")
        }
    }

    @Test func `older hours follow, two years of them, from the newest on, with one request a minute`() async throws {
        let (world, newest, loader) = (
            World(), ScriptedCandles(page: 720, hasNewestOnly: true), ScriptedCandles(page: 500)
        )
        let backfill = backfill(world, newest, loader, history: PriceHistory(store: archive))
        await world.ticker.start()
        _ = await world.tick("68900")
        await world.ticker.stop()
        #expect(try await finish(Task { try await backfill.fill() }, world.clock))
        let before = loader.requests.count
        var pauses: Set<Duration> = []
        while let pause = try await finish(Task { try await backfill.fillOlder() }, world.clock) {
            pauses.insert(pause)
        }
        #expect(pauses == [.seconds(60)])
        let hours = try #require(archive.filled[.hour]?.map(\.start))
        #expect(zip(hours, hours.dropFirst()).allSatisfy { $1 - $0 == 3600 })
        #expect(Int64(hours.count) >= BackfillPlan.allHours)
        let ranges = loader.requests.dropFirst(before).map(\.range)
        #expect(
            newest.requests.allSatisfy { $0.range.lowerBound >= hours[hours.count - 1] - 800 * 3600 || $0.step == .day }
        )
        #expect(ranges.count == Int((BackfillPlan.allHours - 720 + 719) / 720) * 2 - 1)
        #expect(ranges.first.map { $0.upperBound > hours[hours.count - 1] - 1000 * 3600 } == true)
        #expect(
            news.all.last
                == .filled(.init(currency: .usd, step: .hour, candles: hours.count - 720, venues: ["coinbase"])))
        // A currency whose loader fails waits for the next search.
        await backfill.change([.init(.usd, [ScriptedCandles(failures: 9)])])
        archive.forgetHours()
        #expect(try await finish(Task { try await backfill.fillOlder() }, world.clock) == nil)
        #expect(archive.filled[.hour] == nil)
    }

    @Test func `a currency without a price delays the older hours of no other one`() async throws {
        let (world, loader, other) = (World(), ScriptedCandles(page: 1000), ScriptedCandles())
        let backfill = backfill(world, history: PriceHistory(store: archive))
        await backfill.change([.init(.eur, [other]), .init(.usd, [loader])])
        await world.ticker.start()
        _ = await world.tick("68900")
        await world.ticker.stop()
        #expect(try await !finish(Task { try await backfill.fill() }, world.clock))
        let before = loader.requests.count
        #expect(try await finish(Task { try await backfill.fillOlder() }, world.clock) == Backfill.olderPause)
        #expect(loader.requests.count == before + 1)
        #expect(other.requests.isEmpty)
    }

    @Test func `a minute that a client requests is requested separately, and stored`() async throws {
        let (world, loader) = (World(), ScriptedCandles(failures: 1))
        let backfill = backfill(world, loader, history: PriceHistory(store: archive))
        let second = world.now().wall.milliseconds / 1000 - 400 * 86_400
        let start = Candle.Step.minute.start(of: second)
        #expect(await backfill.reason(.usd, at: second, for: 1000) == "no exchange has it: coinbase")
        #expect(await backfill.reason(.usd, at: second, for: 1000) == nil)
        #expect(loader.requests.map(\.range) == [start..<start + 60, start..<start + 60])
        #expect(archive.filled[.minute]?.map(\.start) == [start])
        #expect(
            await backfill.reason(.usd, at: world.now().wall.milliseconds / 1000, for: 1000)
                == "its minute is not over, or ended less than 90 s ago"
        )
        #expect(await backfill.reason(.eur, at: second, for: 1000) == "no configured exchange has candles in EUR")
        await backfill.change([])
        #expect(await backfill.reason(.usd, at: second, for: 1000) == "history.backfill is false")
        #expect(loader.requests.count == 2)
    }

    @Test func `a loader that fails is not used again in the same run`() async throws {
        let (world, loader) = (World(), ScriptedCandles(failures: 1))
        let backfill = backfill(world, loader, history: PriceHistory(store: archive))
        await world.ticker.start()
        _ = await world.tick("68900")
        await world.ticker.stop()
        #expect(try await !finish(Task { try await backfill.fill() }, world.clock))
        #expect(archive.filled[.day] == nil)
        #expect(archive.filled[.hour]?.count == 720)
        #expect(try await finish(Task { try await backfill.fill() }, world.clock))
        #expect(archive.filled[.day]?.count == 730)
    }

    @Test func `a client's call requests two exchanges at most, and none that can't have the minute`() async throws {
        let world = World()
        let (newest, first) = (ScriptedCandles(hasNewestOnly: true), ScriptedCandles(failures: 99))
        let (second, third) = (ScriptedCandles(failures: 99), ScriptedCandles(failures: 99))
        let backfill = backfill(
            world, newest, first, second, third, history: PriceHistory(store: archive))
        let now = world.now().wall.milliseconds / 1000
        #expect(await backfill.reason(.usd, at: now - 400 * 86_400, for: 1) == "no exchange has it: coinbase, coinbase")
        #expect([newest, first, second, third].map(\.requests.count) == [0, 1, 1, 0])
        // A minute of the last hours is one that it can have.
        #expect(await backfill.reason(.usd, at: now - 3600, for: 1) == nil)
        #expect([newest, first, second, third].map(\.requests.count) == [1, 1, 1, 0])
        await backfill.change([.init(.usd, [newest])])
        let reason = await backfill.reason(.usd, at: now - 400 * 86_400, for: 1)
        #expect(reason == "the exchanges with candles in USD have only their newest ones")
    }

    @Test func `a user may call eight times at once, and others meanwhile`() async throws {
        let (world, loader) = (World(), ScriptedCandles())
        let backfill = backfill(world, loader, history: PriceHistory(store: archive))
        let now = world.now().wall.milliseconds / 1000
        var reasons: [String?] = []
        for minute in 1...9 { reasons.append(await backfill.reason(.usd, at: now - Int64(minute) * 600, for: 1000)) }
        #expect(reasons.prefix(8).allSatisfy { $0 == nil })
        #expect(reasons[8]?.hasPrefix("try again in ") == true)
        #expect(await backfill.reason(.usd, at: now - 6600, for: 1001) == nil)
        world.clock.advance(to: .seconds(4))
        #expect(await backfill.reason(.usd, at: now - 6600, for: 1000) == nil)
    }

    @Test func `one request has the earliest of a client's minutes and all others of its page`() async {
        let (world, loader, second) = (World(), ScriptedCandles(page: 100), ScriptedCandles(page: 300))
        let backfill = backfill(world, loader, history: PriceHistory(store: archive))
        let end = Candle.Step.minute.start(of: world.now().wall.wholeSeconds)
        let starts = [1000, 950, 901, 899, 500].map { end - $0 * 60 }
        var fetched = await backfill.fetch(.usd, at: starts.reversed().map { $0 + 7 } + [starts[0], end], for: 1000)
        #expect(fetched.failures == [end: "its minute is not over, or ended less than 90 s ago"])
        #expect(fetched.wait == 0)
        #expect(loader.requests.map(\.range) == [starts[0]..<starts[2] + 60])
        // Only what a client wants is stored.
        #expect(archive.filled[.minute]?.map(\.start) == Array(starts[..<3]))
        // A second exchange is only asked for what the first one did not have.
        await backfill.change([.init(.usd, [ScriptedCandles(failures: 99, page: 100), second])])
        fetched = await backfill.fetch(.usd, at: Array(starts[3...]), for: 1000)
        #expect((fetched.failures, fetched.wait) == ([:], 0))
        #expect(second.requests.map(\.range) == [starts[3]..<starts[3] + 60])
        #expect(archive.filled[.minute]?.map(\.start) == Array(starts[..<4]))
        fetched = await backfill.fetch(.usd, at: [starts[4]], for: 1000)
        #expect(fetched == Backfill.Fetched())
        for _ in 0..<5 { _ = await backfill.fetch(.usd, at: [starts[4]], for: 1000) }
        fetched = await backfill.fetch(.usd, at: [starts[4]], for: 1000)
        #expect((fetched.failures, fetched.wait.map { $0 > 0 }) == ([:], true))
    }

    /// Candles that are refused say nothing about the prices of the same exchange.
    @Test func `a market that refuses candles is left alone for a while, and its prices are still requested`()
        async throws
    {
        let world = World()
        let loader = ScriptedCandles(failures: 99, .refused("HTTP 403"))
        let backfill = backfill(world, loader, history: PriceHistory(store: archive))
        await world.ticker.start()
        _ = await world.tick("68900")
        await world.ticker.stop()
        for _ in 0..<2 {
            #expect(try await !finish(Task { try await backfill.fill() }, world.clock))
            #expect(loader.requests.count == 1)
            #expect(news.all == [.failed(.coinbase, .refused("HTTP 403"))])
            #expect(await backfill.failure == "coinbase BTC/USD: refused: HTTP 403")
        }
        #expect(await world.engine.registry.isCoolingDown(.coinbase, at: world.now().boottime) == false)
        await backfill.retry()
        _ = try await finish(Task { try await backfill.fill() }, world.clock)
        #expect(loader.requests.count == 2)
    }

    @Test func `a client's moment that is refused does not keep the backfill from a market`() async {
        let world = World()
        let loader = ScriptedCandles(failures: 99, .refused("HTTP 400"))
        let backfill = backfill(world, loader, history: PriceHistory(store: archive))
        let now = world.now().wall.milliseconds / 1000
        for count in 1...2 {
            #expect(await backfill.reason(.usd, at: now - 3600, for: 1) == "no exchange has it: coinbase")
            #expect(loader.requests.count == count)
        }
        #expect(news.all.isEmpty)
        #expect(await backfill.failure == nil)
    }

    @Test func `candles that are not valid are reported, and the others are used`() async {
        let (world, loader) = (World(), ScriptedCandles(unused: 2))
        let backfill = backfill(world, loader, history: PriceHistory(store: archive))
        let now = world.now().wall.milliseconds / 1000
        #expect(await backfill.reason(.usd, at: now - 3600, for: 1) == nil)
        #expect(news.all == [.unused(2, .coinbase)])
    }
}
