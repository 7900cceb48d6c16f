import Synchronization
import TestSupport
import Testing

@testable import BTCPriceCore

/// A stream that a test controls.
private final class ScriptedStream: PriceStream {
    private let state = Mutex<(interval: Duration?, told: (@Sendable (StreamNews) -> Void)?)>((nil, nil))

    /// How often it is read; `nil` while it is closed.
    var interval: Duration? { state.withLock { $0.interval } }

    func start(every interval: Duration, _ told: @escaping @Sendable (StreamNews) -> Void) {
        state.withLock { $0 = (interval, told) }
    }

    func stop() { state.withLock { $0.interval = nil } }

    /// Some news, which may also come late, after a stop.
    func tell(_ news: StreamNews) {
        let told = state.withLock { $0.told }
        told?(news)
    }

    /// - Parameter time: When it was traded, since the start; `nil` if that is not known.
    func bring(_ text: String, tradedAt time: Duration? = nil) {
        var loaded = LoadedPrice(.binance, price(text), position: Setup.position(time))
        loaded.push = .init(.stream)
        tell(.price(loaded))
    }
}

/// A world whose primary has a stream.
private struct Setup {
    let stream = ScriptedStream()
    let world: World

    init() { world = World(stream: stream) }

    static func position(_ time: Duration?) -> FeedPosition {
        FeedPosition(time: time.map { World.start.advanced(by: $0).wall })
    }

    /// Opens the streams for a client that watches changes, and runs a first tick.
    func watch(tradedAt time: Duration? = nil) async {
        await world.engine.startFeeds()
        await world.engine.publish(WatchedChanges(interval: .milliseconds(100), currencies: ["USD"]))
        await tick("68901", tradedAt: time)
        #expect(await world.nextTick().quote?.value == price("68901"))
    }

    /// Runs one tick, which begins now, and in which the primary responds.
    func tick(_ text: String, tradedAt time: Duration? = nil) async {
        async let tick: Void = world.engine.tick(Tick(due: world.clock.now, lateness: .zero, skipped: 0), of: .usd)
        await world.primary.isAsked()
        world.primary.answer(text, position: Self.position(time))
        await tick
    }

    /// The price of the next state that is shown.
    func nextPrice() async -> Price? { await world.nextState().quote?.value }
}

@Suite(.timeLimit(.minutes(3))) struct StreamTests {
    @Test func `a change between the ticks is published at once, the next one when the interval is over`() async {
        let setup = Setup()
        await setup.watch()
        #expect(setup.stream.interval == .milliseconds(100))
        setup.world.clock.advance(to: .milliseconds(150))
        setup.stream.bring("68903")
        #expect(await setup.nextPrice() == price("68903"))
        #expect(await setup.world.engine.firstRecord.ways[.binance] == .stream)
        setup.stream.bring("68904")
        await setup.world.clock.run(to: .milliseconds(250))
        let state = await setup.world.nextState()
        #expect(state.quote?.value == price("68904"))
        #expect(state.ticks.number == 1)
        #expect(setup.world.primary.asks == 1)
    }

    @Test func `a price older than the last response is ignored, and an older response is not`() async {
        let setup = Setup()
        await setup.watch(tradedAt: .zero)
        setup.world.clock.advance(to: .milliseconds(150))
        setup.stream.bring("68910", tradedAt: .milliseconds(-1))
        setup.stream.bring("68903", tradedAt: .milliseconds(140))
        #expect(await setup.nextPrice() == price("68903"))
        // A response from a cache.
        setup.world.clock.advance(to: .seconds(1))
        await setup.tick("68902", tradedAt: .milliseconds(100))
        #expect(await setup.nextPrice() == price("68902"))
        #expect(setup.world.primary.asks == 2, "a tick requests although a stream has a price")
    }

    @Test func `a price that comes during a round does not replace the response that the round judges`() async {
        let setup = Setup()
        let (stream, world) = (setup.stream, setup.world)
        await setup.watch()
        world.clock.advance(to: .seconds(1))
        async let tick: Void = world.engine.tick(Tick(due: world.clock.now, lateness: .zero, skipped: 0), of: .usd)
        await world.primary.isAsked()
        world.primary.answer("67800")
        // A jump needs another source.
        await world.fallback.isAsked()
        stream.bring("68901")
        world.fallback.answer("67810")
        await tick
        let state = await world.nextState()
        #expect(state.quote?.value == price("67800"))
        #expect(state.confirmation == .confirmed)
        // Now it is too far.
        await world.primary.isAsked()
        world.primary.answer("67801")
        #expect(await setup.nextPrice() == price("67801"))
    }

    @Test func `streamed prices are measured by the last requested one, and not by each other`() throws {
        let rounds = Rounds([.binance])
        func record(_ value: String, at seconds: Double) throws -> PriceTracker.StreamEffect {
            try rounds.tracker.record(
                streamed: LoadedPrice(.binance, price(value)), from: Venue("binance"), at: Rounds.time(seconds))
        }
        rounds.prices = [.binance: "68900"]
        _ = rounds.tick(at: 1)
        rounds.tracker.requested(hasPrice: true)
        #expect(try record("69020", at: 1.1) == .agrees)
        var round = rounds.tracker.round(at: Rounds.time(1.1).boottime, markets: [.binance])
        round.answered = [.binance]
        if case .decided(let decision, let belief) = rounds.tracker.select(round) {
            _ = rounds.tracker.decided(decision, belief, in: round, isTick: false)
        }
        #expect(rounds.tracker.state.quote?.value == price("69020"))
        // A round that its limits have refused.
        rounds.tracker.requested(hasPrice: false)
        #expect(try record("69140", at: 1.2) == .contradicts)
    }

    @Test func `a price that is too far from the last response starts a round, at most one a second`() async {
        let setup = Setup()
        let (stream, world) = (setup.stream, setup.world)
        await setup.watch()
        world.clock.advance(to: .milliseconds(150))
        stream.bring("69100")
        await world.primary.isAsked()
        world.primary.answer("68902")
        #expect(await setup.nextPrice() == price("68902"))
        world.clock.advance(to: .milliseconds(300))
        stream.bring("69100")
        stream.bring("68903")
        #expect(await setup.nextPrice() == price("68903"))
        #expect(world.primary.asks == 2)
        world.clock.advance(to: .milliseconds(1150))
        stream.bring("69100")
        await world.primary.isAsked()
        // The stream is right.
        world.primary.answer("69000")
        #expect(await setup.nextPrice() == price("69000"))
        world.clock.advance(to: .milliseconds(1300))
        stream.bring("69100")
        #expect(await setup.nextPrice() == price("69100"))
        #expect(world.primary.asks == 3)
    }

    @Test func `a stream of a market that is not shown starts no round, and is evidence for the next vote`() async {
        let setup = Setup()
        let (stream, world) = (setup.stream, setup.world)
        await setup.watch()
        // The primary fails, and the fallback's price is shown.
        world.clock.advance(to: .seconds(1))
        async let tick: Void = world.engine.tick(Tick(due: world.clock.now, lateness: .zero, skipped: 0), of: .usd)
        await world.primary.isAsked()
        world.primary.fail(.unavailable("HTTP 503"))
        await world.fallback.isAsked()
        world.fallback.answer("68902")
        await tick
        #expect(await world.nextState().quote?.source == "coinbase")
        world.clock.advance(to: .seconds(2))
        stream.bring("69900")
        await world.isRecorded(.binance)
        #expect(await world.engine.firstRecord.ways[.binance] == .stream)
        #expect(world.primary.asks == 2 && world.fallback.asks == 1)
    }

    @Test func `if nobody watches, streams are closed and nothing is published between the ticks`() async {
        let setup = Setup()
        await setup.watch()
        await setup.world.engine.publish(nil)
        #expect(setup.stream.interval == nil)
        setup.world.clock.advance(to: .milliseconds(150))
        setup.stream.bring("68903")
        setup.world.clock.advance(to: .seconds(1))
        await setup.tick("68902")
        #expect(await setup.nextPrice() == price("68902"))
    }

    @Test func `a pause closes the stream, and the end of the pause opens it again`() async {
        let setup = Setup()
        await setup.watch()
        await setup.world.engine.paused(.paused)
        #expect(setup.stream.interval == nil)
        await setup.world.engine.publish(WatchedChanges(interval: .milliseconds(50), currencies: ["USD"]))
        #expect(setup.stream.interval == nil)
        await setup.world.engine.resumed()
        #expect(setup.stream.interval == .milliseconds(50))
    }

    @Test func `a stream that is refused because of limits is a cooldown of its exchange`() async {
        let setup = Setup()
        let world = setup.world
        await setup.watch()
        setup.stream.tell(.limited(.rateLimited("its stream: HTTP 429", retryAfter: .seconds(30))))
        while await !world.engine.registry.isCoolingDown(.binance, at: world.now().boottime) { await Task.yield() }
        world.clock.advance(to: .seconds(1))
        async let tick: Void = world.engine.tick(Tick(due: world.clock.now, lateness: .zero, skipped: 0), of: .usd)
        await world.fallback.isAsked()
        world.fallback.answer("68902")
        await tick
        #expect(await world.engine.state.quote?.source == "coinbase")
        #expect(world.primary.asks == 1)
    }

    @Test func `streams are wanted while a client watches changes, and for 30 s after that`() async {
        let setup = Setup()
        let world = setup.world
        await world.engine.startFeeds()
        let activity = ClientActivity(at: world.now().boottime)
        let control = StreamControl(
            engine: world.engine, activity: activity, now: world.now)
        await control.change(.milliseconds(100))
        #expect(control.wanted == nil)
        activity.watcherCame(changesOf: ["USD"])
        #expect(control.wanted == WatchedChanges(interval: .milliseconds(100), currencies: ["USD"]))
        await control.follow()
        #expect(setup.stream.interval == .milliseconds(100))
        activity.watcherLeft(changesOf: ["USD"], at: world.now().boottime)
        world.clock.advance(to: .seconds(29))
        #expect(control.wanted != nil)
        world.clock.advance(to: .seconds(30))
        #expect(control.wanted == nil)
        // A client of another currency opens no stream of this one.
        activity.watcherCame(changesOf: ["EUR"])
        await control.follow()
        #expect(control.wanted?.currencies == ["EUR"])
        #expect(setup.stream.interval == nil)
        activity.watcherCame(changesOf: ["USD"])
        await control.change(nil)
        #expect(control.wanted == nil)
        #expect(setup.stream.interval == nil)
    }
}
