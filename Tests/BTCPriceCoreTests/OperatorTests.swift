import Synchronization
import TestSupport
import Testing

@testable import BTCPriceCore

/// The source reports for an operator, and their counts.
@Suite struct SourceReportTests {
    private static let second = RequestLimit(10, per: .seconds(1))

    private static func registry(_ names: [String] = ["a", "b"], limits: [RequestLimit] = [second]) -> SourceRegistry {
        SourceRegistry(
            names.map {
                SourceDescription(
                    venue: Venue($0, limits: limits), market: Market($0, "BTC/USD"), address: "https://\($0)")
            }, interval: .seconds(1))
    }

    private func uses(
        _ registry: SourceRegistry, at boottime: BootTime = 10_000, shown: Set<String> = []
    ) -> [SourceReport.Use] {
        registry.reports(
            at: time(boottime), Dictionary(uniqueKeysWithValues: shown.map { (Market($0, "BTC/USD"), .used) })
        ).map(\.use)
    }

    private func time(_ boottime: BootTime) -> ObservationTime {
        ObservationTime(wall: Timestamp(milliseconds: 1_000_000 + boottime.milliseconds), boottime: boottime)
    }

    private func ask(
        _ registry: inout SourceRegistry, _ index: Int, _ outcome: MarketHealth.Outcome, at boottime: BootTime = 10_000
    ) {
        _ = registry.take(index, .tick, at: boottime)
        _ = registry.ended(index, outcome, latency: .milliseconds(35), at: time(boottime), jitter: 0)
    }

    @Test func `each state of health has its own name`() {
        var registry = Self.registry()
        #expect(uses(registry) == [.untried, .untried])
        ask(&registry, 0, .success)
        #expect(uses(registry, shown: ["a"]) == [.current, .untried])
        #expect(uses(registry) == [.ready, .untried])
        ask(&registry, 1, .failure(.unavailable("HTTP 500")))
        #expect(uses(registry, shown: ["a"]) == [.current, .failing])
        for _ in 0..<2 { ask(&registry, 1, .failure(.unavailable("HTTP 500"))) }
        #expect(uses(registry, shown: ["a"]) == [.current, .resting])
        #expect(uses(registry, at: 10_000 + 6000, shown: ["a"]) == [.current, .probing])
        ask(&registry, 0, .failure(.rateLimited("HTTP 429", retryAfter: .seconds(9))))
        #expect(uses(registry)[0] == .limited)
        var other = Self.registry()
        ask(&other, 0, .failure(.refused("HTTP 451")))
        #expect(uses(other)[0] == .refused)
    }

    @Test func `a source with less than a request per tick is slow, and full when its limit is used up`() {
        var registry = Self.registry(["a"], limits: [RequestLimit(1, per: .seconds(3))])
        ask(&registry, 0, .success, at: 10_000)
        #expect(uses(registry, shown: ["a"]) == [.current], "it is what is shown")
        #expect(uses(registry) == [.full])
        #expect(uses(registry, at: 14_000) == [.slow])
        var quick = Self.registry(["a"], limits: [RequestLimit(10, per: .seconds(1))])
        for _ in 0..<4 { ask(&quick, 0, .success) }
        #expect(uses(quick) == [.full])
    }

    @Test func `after a reload, a source at the same address keeps its health`() {
        let registry = { (sources: [(name: String, address: String)]) in
            SourceRegistry(
                sources.map {
                    SourceDescription(venue: Venue($0.name), market: Market($0.name, "BTC/USD"), address: $0.address)
                }, interval: .seconds(1))
        }
        var old = registry([("a", "https://a"), ("b", "https://b")])
        ask(&old, 0, .failure(.refused("HTTP 451")))
        var new = registry([("c", "https://c"), ("b", "https://b"), ("a", "https://a")])
        new.inherit(old, at: time(10_000))
        #expect(uses(new) == [.untried, .untried, .refused])
        // Another address is another host.
        var elsewhere = registry([("a", "https://mirror")])
        elsewhere.inherit(new, at: time(10_000))
        #expect(uses(elsewhere) == [.untried])
    }

    @Test func `the letters are all different`() {
        let letters = SourceReport.Use.allCases.map(\.letter)
        #expect(Set(letters).count == letters.count)
    }

    @Test func `times use the current setting of the wall clock`() throws {
        var registry = Self.registry()
        ask(&registry, 0, .success, at: 10_000)
        // Ten seconds later the clock is set an hour ahead.
        let later = ObservationTime(wall: Timestamp(milliseconds: 5_000_000), boottime: 20_000)
        let report = try #require(registry.reports(at: later, [:]).first)
        #expect(report.lastSuccess == Timestamp(milliseconds: 4_990_000))
        #expect(report.latency == SourceReport.Latency(p50: 35, p90: 35, p99: 35, answers: 1))
        #expect(report.requests == 1)
    }

    @Test(arguments: [0, 5, 1_000_000, 400_000_000_000] as [BootTime])
    func `requests are counted over the last period, from the first second of a boot on`(boot: BootTime) {
        for limit in [RequestLimit(10, per: .seconds(1)), RequestLimit(7500, per: .seconds(86_400))] {
            let period = limit.period.wholeMilliseconds
            var tally = RequestTally(limit)
            #expect(tally.count(at: boot) == 0)
            for step in 0..<10 as Range<Int64> { tally.add(at: boot + step * period / 10) }
            #expect(tally.count(at: boot + period * 9 / 10) == 10)
            // Half a period later half of the requests are outside of it. Up to one thirtieth of the period may still be counted.
            #expect((5...6).contains(tally.count(at: boot + period * 15 / 10)))
            #expect(tally.count(at: boot + 3 * period) == 0)
        }
    }
}

@Suite struct TickControlTests {
    /// A world with a tick control, and the reports of the control.
    struct Setup {
        let world = World()
        let activity: ClientActivity
        let control: TickControl
        private let told: Told

        final class Told: Sendable {
            let states = Mutex<[Ticking]>([])
        }

        init(idleAfter: Duration? = nil) async {
            let told = Told()
            self.told = told
            activity = ClientActivity(at: world.now().boottime)
            control = TickControl(
                ticker: world.ticker, activity: activity, now: world.now,
                report: { state in told.states.withLock { $0.append(state) } })
            await control.change(idleAfter: idleAfter)
        }

        var changes: [Ticking] { told.states.withLock { $0 } }

        func firstTick() async {
            await world.ticker.start()
            await nextTick("68901.23")
            await world.clock.timer(at: .seconds(1))
        }

        func nextTick(_ value: String) async {
            #expect(await world.tick(value).freshness == .fresh)
        }
    }

    @Test func `after an operator's pause, only a resume restarts the ticks`() async {
        let setup = await Setup(idleAfter: .seconds(5))
        await setup.firstTick()
        #expect(await setup.control.pause())
        #expect(await !setup.control.pause())
        let paused = await setup.world.nextTick()
        #expect(paused.failure == "paused" && paused.ticks.ticking == .paused)
        #expect(!setup.activity.called(at: 0), "no client is waited for")
        await setup.control.clientCame()
        #expect(await setup.control.ticking == .paused)
        #expect(await setup.control.resume())
        #expect(await !setup.control.resume())
        await setup.nextTick("68950")
        #expect(setup.changes == [.paused, .running])
        await setup.world.ticker.stop()
    }

    @Test func `without clients the ticks stop, and the first client resumes them at once`() async {
        let setup = await Setup(idleAfter: .seconds(5))
        await setup.firstTick()
        #expect(!setup.control.mayPause)
        await setup.control.pauseIfIdle()
        #expect(await setup.control.ticking == .running)
        setup.world.clock.advance(to: .milliseconds(999))
        _ = setup.activity.called(at: setup.world.now().boottime - 5000)
        #expect(setup.control.mayPause)
        await setup.control.pauseIfIdle()
        let still = await setup.world.nextTick()
        #expect(still.freshness == .stale && still.failure == "paused" && still.ticks.ticking == .idle)
        #expect(await setup.control.ticking == .idle)
        #expect(setup.activity.called(at: setup.world.now().boottime), "a client is waited for")
        await setup.control.clientCame()
        await setup.nextTick("68950")
        #expect(!setup.activity.called(at: setup.world.now().boottime))
        #expect(setup.changes == [.idle, .running])
        await setup.world.ticker.stop()
    }

    @Test func `a user's pause of ticks that are idle is shown`() async {
        let setup = await Setup(idleAfter: .seconds(5))
        await setup.firstTick()
        _ = setup.activity.called(at: setup.world.now().boottime - 5000)
        await setup.control.pauseIfIdle()
        #expect(await setup.world.nextTick().ticks.ticking == .idle)
        await setup.control.pause()
        #expect(await setup.world.nextTick().ticks.ticking == .paused)
        await setup.control.resume()
        #expect(await setup.world.nextState().ticks.ticking == .running)
        await setup.world.ticker.stop()
    }

    @Test func `a call with a greatest age waits for the first tick after an idle time only`() async throws {
        let setup = await Setup(idleAfter: .seconds(5))
        await setup.firstTick()
        _ = setup.activity.called(at: setup.world.now().boottime - 5000)
        await setup.control.pauseIfIdle()
        _ = await setup.world.nextTick()
        setup.world.clock.advance(to: .seconds(30))
        let world = setup.world
        #expect(try await world.engine.price(maxAge: 60_000).quote?.value == price("68901.23"), "young enough")
        // Another client comes first: both wait until the ticks run.
        async let other: Void = setup.control.clientCame()
        await setup.control.clientCame()
        await other
        async let asked = world.engine.price(maxAge: 10_000)
        await setup.nextTick("68950")
        #expect(try await asked.quote?.value == price("68950"))
        await setup.world.ticker.stop()
        setup.world.clock.advance(to: .seconds(45))
        let old = try await world.engine.price(maxAge: 10_000)
        #expect(old.quote?.value == price("68950"), "a tick has ended, so nothing is requested")
    }

    @Test func `a watcher keeps the ticks running, and the idle time begins when it leaves`() {
        let activity = ClientActivity(at: 0)
        activity.watcherCame()
        #expect(!activity.isIdle(for: .seconds(5), at: 60_000))
        activity.watcherLeft(at: 60_000)
        #expect(!activity.isIdle(for: .seconds(5), at: 64_999))
        #expect(activity.isIdle(for: .seconds(5), at: 65_000))
    }

    @Test func `without the setting the ticks never stop`() async {
        let setup = await Setup()
        #expect(!setup.control.mayPause)
        _ = setup.activity.called(at: 0)
        #expect(!setup.control.mayPause)
    }

    @Test func `concurrent calls of pause and resume end in the state of the last call`() async {
        let setup = await Setup()
        await setup.firstTick()
        for _ in 0..<20 {
            async let pause = setup.control.pause()
            async let resume = setup.control.resume()
            _ = await (pause, resume)
            let ticking = await setup.control.ticking
            #expect(await setup.world.ticker.isPaused == (ticking == .paused))
        }
        await setup.control.resume()
        #expect(await !setup.world.ticker.isPaused)
        await setup.world.ticker.stop()
    }

    @Test func `the record counts the ticks, and dates the change of freshness`() async {
        let setup = await Setup()
        await setup.firstTick()
        var record = await setup.world.engine.firstRecord
        #expect(record.state.ticks.number == 1 && record.failed == 0 && record.since == setup.world.now().wall)
        await setup.world.clock.run(to: .seconds(1))
        await setup.world.primary.isAsked()
        setup.world.primary.fail(.unavailable("HTTP 500"))
        await setup.world.fallback.isAsked()
        setup.world.fallback.fail(.unavailable("HTTP 500"))
        _ = await setup.world.nextTick()
        record = await setup.world.engine.firstRecord
        #expect(record.state.freshness == .stale && record.failed == 1)
        #expect(record.since.milliseconds == World.start.wall.milliseconds + 1000)
        await setup.world.ticker.stop()
    }

    @Test func `a price without a renewal becomes stale when its time is over`() async {
        let setup = await Setup()
        await setup.firstTick()
        await setup.world.ticker.stop()
        setup.world.clock.advance(to: .seconds(10))
        let record = await setup.world.engine.firstRecord
        #expect(record.state.freshness == .stale)
        #expect(record.since.milliseconds == World.start.wall.milliseconds + 2000)
    }
}

/// The changes of a reload while the ticks run.
@Suite struct ChangeTests {
    @Test func `a new interval applies after the running tick, and no tick is lost`() async {
        let world = World()
        await world.ticker.start()
        await world.primary.isAsked()
        await world.ticker.change([.init(.usd, .seconds(5))])
        world.primary.answer("68901.23")
        #expect(await world.nextTick().freshness == .fresh, "the tick under way goes on")
        await world.clock.timer(at: .seconds(5))
        // During a wait, a shorter interval applies at once.
        world.clock.advance(to: .seconds(2))
        await world.ticker.change([.init(.usd, .seconds(1))])
        #expect(await world.tick("68902").ticks.number == 2)
        await world.clock.timer(at: .seconds(3))
        await world.ticker.stop()
    }

    @Test(arguments: [true, false])
    func `a ban that comes in after a reload counts if the address is the same`(isSame: Bool) async {
        let world = World()
        await world.ticker.start()
        await world.primary.isAsked()
        let sources = [
            FetchLatestPrice(
                loader: world.primary, address: isSame ? "https://binance" : "https://mirror",
                timeout: .milliseconds(800), hedge: .milliseconds(400))
        ]
        await world.engine.apply([CurrencyPlan(.usd, sources, interval: .seconds(1))], budget: .seconds(1))
        world.primary.fail(.rateLimited("HTTP 429", retryAfter: .seconds(60)))
        // The fallback is not configured any more. A source at another address is requested in the same tick.
        if isSame {
            #expect(await world.nextTick().failure?.contains("rate limited") == true)
        } else {
            #expect(await world.tick("68901.23").freshness == .fresh)
        }
        let registry = await world.engine.registry
        #expect(registry.isCoolingDown(.binance, at: world.now().boottime) == isSame)
        #expect(world.store.cooldowns.isEmpty != isSame)
        #expect(world.fallback.asks == 0)
        await world.ticker.stop()
    }

    @Test func `the ticks stop before a sleep, and the first one after it is at once`() async {
        let setup = await TickControlTests.Setup()
        await setup.firstTick()
        await setup.control.suspend()
        #expect(await setup.world.nextTick().failure == "paused")
        await setup.control.wake()
        await setup.nextTick("68950")
        #expect(await setup.control.ticking == .running)
        await setup.world.ticker.stop()
    }
}
