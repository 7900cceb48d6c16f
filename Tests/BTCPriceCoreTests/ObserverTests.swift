import Synchronization
import TestSupport
import Testing

@testable import BTCPriceCore

@Suite(.timeLimit(.minutes(3))) struct ObserverTests {
    /// Counts the observer's requests.
    final class Target: Sendable {
        let looks = Counter()
        /// Whether the prices have moved apart.
        let isRestless: Bool
        init(isRestless: Bool = false) { self.isRestless = isRestless }
        @Sendable func observe() async -> Bool {
            looks.add()
            return isRestless
        }
    }

    @Test func `the observer sends a request soon, then every 3 to 4.5 s, until its task is cancelled`() async {
        let (clock, target) = (TestClock(), Target())
        let task = Task { await Observer.run(BackgroundWork(clock: clock), jitter: { 1 }, observe: target.observe) }
        await clock.run(to: .seconds(3))
        await clock.run(to: .milliseconds(7500))
        await clock.timer(at: .seconds(12))
        #expect(target.looks.count == 2)
        task.cancel()
        await task.value
    }

    @Test func `while the prices move apart, the observer sends a request every second`() async {
        let (clock, target) = (TestClock(), Target(isRestless: true))
        let task = Task { await Observer.run(BackgroundWork(clock: clock), jitter: { 0 }, observe: target.observe) }
        for second in [2, 3, 4] { await clock.run(to: .seconds(second)) }
        await clock.timer(at: .seconds(5))
        #expect(target.looks.count == 3)
        task.cancel()
        await task.value
    }

    @Test func `a shorter interval applies to the first request too, and a changed one after the next request`() async {
        let (clock, target) = (TestClock(), Target())
        let interval = Mutex(Duration.seconds(1))
        let task = Task {
            await Observer.run(
                BackgroundWork(clock: clock), interval: { interval.withLock { $0 } }, jitter: { 0 },
                observe: target.observe)
        }
        await clock.timer(at: .seconds(1))
        interval.withLock { $0 = .seconds(4) }
        await clock.run(to: .seconds(1))
        await clock.run(to: .seconds(5))
        await clock.timer(at: .seconds(9))
        #expect(target.looks.count == 2)
        task.cancel()
        await task.value
    }

    @Test func `a pause of the ticks stops the observer, and a resume lets it begin anew`() async {
        let (clock, target) = (TestClock(), Target())
        let background = BackgroundWork(clock: clock)
        let ticker = OneSecondTicker([.init(.usd)], clock: clock, target: World().engine)
        let control = TickControl(
            ticker: ticker, background: [background], activity: ClientActivity(at: .boot),
            now: { World.start }, report: { _ in })
        let task = Task { await Observer.run(background, jitter: { 0 }, observe: target.observe) }
        await clock.run(to: .seconds(2))
        await clock.timer(at: .seconds(5))
        #expect(target.looks.count == 1)
        await control.pause()
        while clock.timers > 0 { await Task.yield() }
        clock.advance(to: .seconds(20))
        await control.resume()
        await clock.run(to: .seconds(22))
        await clock.timer(at: .seconds(25))
        #expect(target.looks.count == 2)
        task.cancel()
        await task.value
    }

    @Test func `a source in cooldown is skipped, and is used again when a probe succeeds`() async {
        let world = World()
        await world.ticker.start()
        for second in 0..<3 {
            if second > 0 { await world.clock.run(to: .seconds(second)) }
            await world.primary.isAsked()
            world.primary.fail()
            await world.fallback.isAsked()
            world.fallback.answer("68900")
            #expect(await world.nextTick().quote?.source == "coinbase")
        }
        // The cooldown is 3.75 s: half of 5 s is fixed, and the random factor 0.5 adds half of the other half.
        for second in 3..<8 {
            await world.clock.run(to: .seconds(second))
            await world.fallback.isAsked()
            world.fallback.answer("68900")
            #expect(await world.nextTick().quote?.source == "coinbase")
        }
        #expect(world.primary.asks == 3)
        async let observation = world.engine.observe()
        await world.primary.isAsked()
        world.primary.answer("68950")
        _ = await observation
        #expect(world.events.all.last == .sourceRecovered("binance"))
        #expect(await world.engine.state.quote?.source == "coinbase", "the observer shows no price")
        await world.clock.run(to: .seconds(8))
        #expect(await world.tick("68951").quote?.source == "binance")
        await world.ticker.stop()
    }

    @Test func `a ban is stored at once, even if there never was a price, and the source waits until its end`() async {
        let world = World()
        await world.ticker.start()
        await world.primary.isAsked()
        world.primary.fail(.rateLimited("HTTP 418", retryAfter: .seconds(2)))
        await world.fallback.isAsked()
        world.fallback.fail()
        let state = await world.nextTick()
        #expect(state.freshness == .none)
        #expect(world.saves.count == 1)
        #expect(world.store.price == nil)
        let kept = world.store.cooldowns["binance"]
        #expect(kept?.address == "https://binance")
        // Two seconds plus a fortieth, plus one second.
        #expect(kept?.cooldown.until.boottime == World.start.boottime + 3050)
        for second in 1..<4 {
            await world.clock.run(to: .seconds(second))
            await world.fallback.isAsked()
            world.fallback.fail(.unavailable("HTTP 500"))
            let failure = await world.nextTick().failure
            #expect(
                failure == "coinbase: not available: HTTP 500; binance: cooldown until 2024-08-25 14:30:03 UTC, "
                    + "rate limited for 2 s: HTTP 418")
        }
        // The first tick after the cooldown probes the source, because no other source is healthy.
        await world.clock.run(to: .seconds(4))
        #expect(await world.tick("68901.23").freshness == .fresh)
        #expect(world.store.cooldowns.isEmpty)
        #expect(world.primary.asks == 2)
        await world.ticker.stop()
    }

    @Test func `clients in a loop do not use the ticks' part of a limit`() async throws {
        let world = World(limits: [RequestLimit(20, per: .seconds(10))])
        for second in 0..<100 {
            world.clock.advance(to: .seconds(second))
            for _ in 0..<10 {
                let before = world.primary.asks
                let answer = Task { try await world.engine.price(.noCache) }
                if await world.primary.wasAsked(after: before, orEndOf: answer) {
                    await world.primary.isAsked()
                    world.primary.answer("68901.23")
                }
                _ = await answer.result
            }
        }
        #expect(world.primary.asks == 17, "a tenth of 200, without what is left unused")
        #expect(world.fallback.asks == 0, "nobody else's price for asking too often")
        await world.ticker.start()
        #expect(await world.tick("68902").quote?.value == price("68902"))
        await world.ticker.stop()
    }
}

extension ScriptedLoader {
    /// Whether the loader is requested before a task ends.
    fileprivate func wasAsked<Value, Failure>(after before: Int, orEndOf task: Task<Value, Failure>) async -> Bool {
        let isOver = Shared()
        Task {
            _ = await task.result
            isOver.set()
        }
        while asks == before, !isOver.value { await Task.yield() }
        return asks > before
    }

    private final class Shared: Sendable {
        private let counter = Counter()
        var value: Bool { counter.count > 0 }
        func set() { counter.add() }
    }
}
