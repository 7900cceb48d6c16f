import Synchronization
import TestSupport
import Testing

@testable import BTCPriceCore

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
