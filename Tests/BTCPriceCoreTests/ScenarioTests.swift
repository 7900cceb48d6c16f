import TestSupport
import Testing

@testable import BTCPriceCore

/// The scenarios of the main job, with the shipped ticker, fallback and state machine. 010-scenarios.py and 130-faults.py have what a
/// user sees of them.
@Suite(.timeLimit(.minutes(3))) struct ScenarioTests {
    @Test func `primary fails and the fallback succeeds in the same tick`() async {
        let world = World()
        await world.ticker.start()
        await world.primary.isAsked()
        world.primary.fail()
        await world.fallback.isAsked()
        world.fallback.answer("68900.00")
        let state = await world.nextTick()
        #expect(state.ticks.number == 1)
        #expect(state.freshness == .fresh)
        #expect(state.quote?.source == "coinbase")
        #expect(
            world.events.all.contains(.sourceFailed(SourceFailure(source: "binance", error: .unavailable("HTTP 503")))))
        await world.ticker.stop()
    }

    @Test func `primary slower than 800 ms and the fallback succeeds`() async {
        let world = World()
        await world.ticker.start()
        await world.primary.isAsked()
        await world.clock.run(to: .milliseconds(400))
        await world.fallback.isAsked()
        world.fallback.answer("68900.00")
        await world.isRecorded(.coinbase)
        await world.clock.run(to: .milliseconds(800))
        let state = await world.nextTick()
        #expect(state.freshness == .fresh)
        #expect(state.quote?.source == "coinbase")
        #expect(state.quote?.timestamp.milliseconds == World.start.wall.milliseconds + 400)
        await world.ticker.stop()
    }

    @Test func `a body that stalls past the budget fails the tick`() async {
        let world = World(cached: cached("68000"))
        await world.engine.restore(cached("68000"))
        _ = await world.nextState()
        await world.ticker.start()
        await world.primary.isAsked()
        await world.clock.run(to: .milliseconds(400))
        await world.fallback.isAsked()
        await world.clock.run(to: .milliseconds(800))
        await world.clock.run(to: .milliseconds(1000))
        let state = await world.nextTick()
        #expect(state.freshness == .stale)
        #expect(state.failure == "binance: no response within 800 ms; coinbase: no response in the time that was left")
        // The next tick is due now, and begins.
        await world.primary.isAsked()
        #expect(world.primary.mostAtOnce == 1)
        await world.ticker.stop()
    }

    @Test func `both fail with a cached value`() async {
        let world = World(cached: cached("68000.5"))
        await world.engine.restore(cached("68000.5"))
        _ = await world.nextState()
        await world.ticker.start()
        await world.primary.isAsked()
        world.primary.fail()
        await world.fallback.isAsked()
        world.fallback.fail(.unreachable("Connection refused"))
        let state = await world.nextTick()
        #expect(state.freshness == .stale)
        #expect(state.quote == cached("68000.5").quote)
        #expect(state.observedBoottime == nil)
        #expect(
            state.failure == "binance: not available: HTTP 503; coinbase: not reached: Connection refused")
        await world.ticker.stop()
    }

    @Test func `without any price none is shown, and recovery hides the banner`() async {
        let world = World()
        await world.ticker.start()
        await world.primary.isAsked()
        world.primary.fail()
        await world.fallback.isAsked()
        world.fallback.fail()
        let none = await world.nextTick()
        #expect(none.freshness == .none && none.quote == nil && none.confirmation == nil && none.failure != nil)
        #expect(world.store.price == nil)
        await world.clock.run(to: .seconds(1))
        let state = await world.tick("68901.23")
        #expect(state.freshness == .fresh)
        #expect(state.failure == nil)
        #expect(state.ticks.number == 2)
        let quote = state.quote
        #expect(world.events.all.last == quote.map { .becameFresh($0, failedTicks: 0) })
        await world.ticker.stop()
    }

    @Test func `pause stops the ticks and resume ticks at once`() async {
        let world = World()
        await world.ticker.start()
        _ = await world.tick("68901.23")
        await world.clock.timer(at: .seconds(1))
        await world.ticker.pause()
        let paused = await world.nextTick()
        #expect(paused.freshness == .stale)
        #expect(paused.failure == "paused")
        #expect(paused.quote?.value == price("68901.23"))
        #expect(world.clock.timers == 0, "nothing waits for a time while paused")
        world.clock.advance(to: .milliseconds(30_300))
        #expect(world.primary.asks == 1)
        await world.ticker.resume()
        let resumed = await world.tick("68950")
        #expect(resumed.freshness == .fresh)
        #expect(resumed.quote?.timestamp.milliseconds == World.start.wall.milliseconds + 30_300)
        // A new grid starts here.
        await world.clock.timer(at: .milliseconds(31_300))
        await world.ticker.stop()
    }

    @Test func `a failed save is logged, and the price is still updated`() async {
        let world = World()
        let failure = PriceStoreError.unwritable(path: "/run/x", reason: "No space left on device")
        world.store.fail(with: failure)
        await world.ticker.start()
        for second in 0..<3 {
            if second > 0 { await world.clock.run(to: .seconds(second)) }
            if second == 2 { world.store.fail(with: nil) }
            #expect(await world.tick("6890\(second)").freshness == .fresh)
        }
        await world.clock.timer(at: .seconds(3))
        let events = world.events.all
        #expect(events.filter { $0 == .saveFailed(failure) }.count == 2)
        #expect(events.last == .saveRecovered)
        #expect(world.store.price?.quote.value == price("68902"))
        await world.ticker.stop()
    }
}
