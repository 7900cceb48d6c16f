import Synchronization
import TestSupport
import Testing

@testable import BTCPriceCore

/// A stream that a test controls.
private final class ScriptedStream: PriceStream {
    private let state = Mutex<(price: LoadedPrice?, told: (@Sendable (StreamNews) -> Void)?)>((nil, nil))
    private let comparedPrices = Mutex<[Price]>([])
    private let schedule = Mutex<(interval: Duration, tick: Duration?)?>(nil)

    var compared: [Price] { comparedPrices.withLock(\.self) }
    /// The last interval of the reads, and the time to the next tick.
    var reads: (interval: Duration, tick: Duration?)? { schedule.withLock(\.self) }
    var isOpen: Bool { state.withLock { $0.told != nil } }

    var current: LoadedPrice? { state.withLock { $0.told == nil ? nil : $0.price } }

    func compare(_ polled: LoadedPrice, requested boottime: Int64) {
        comparedPrices.withLock { $0.append(polled.value) }
    }

    func start(_ told: @escaping @Sendable (StreamNews) -> Void) { state.withLock { $0.told = told } }

    func read(every interval: Duration, before tick: Duration?) { schedule.withLock { $0 = (interval, tick) } }

    func stop() { state.withLock { $0.told = nil } }

    /// - Parameter text: The price; `nil` if the stream has no valid price any more.
    func bring(_ text: String?, at now: ObservationTime) {
        let told = state.withLock { state in
            state.price = text.map { text in
                var loaded = LoadedPrice(.binance, price(text))
                loaded.observed = now
                loaded.push = .init(.stream, interval: .milliseconds(1750))
                return loaded
            }
            return state.told
        }
        told?(.price)
    }
}

@Suite struct StreamTests {
    /// A world whose primary has a stream.
    private struct Setup {
        let stream = ScriptedStream()
        let world: World

        init() { world = World(stream: stream) }

        func open(_ streaming: Streaming = .forTicks) async {
            await world.engine.startFeeds()
            await world.engine.change(streaming)
        }

        /// Runs one tick, which begins now.
        func tick() async {
            let now = world.clock.now
            await world.engine.tick(Tick(due: now, lateness: .zero, skipped: 0))
        }
    }

    @Test func `a tick uses the stream's price, and sends no request`() async {
        let setup = Setup()
        await setup.open()
        setup.stream.bring("68901", at: setup.world.now())
        await setup.tick()
        let state = await setup.world.engine.state
        #expect(state.quote?.value == price("68901"))
        #expect(state.freshness == .fresh)
        #expect(setup.world.primary.asks == 0)
        #expect(setup.world.fallback.asks == 0)
    }

    @Test func `a stream is read just before the next tick, and more often if a client watches changes`() async throws {
        let setup = Setup()
        await setup.open()
        #expect(setup.stream.reads.map { $0 == (.milliseconds(500), nil) } == true)
        setup.stream.bring("68901", at: setup.world.now())
        await setup.tick()
        #expect(setup.stream.reads.map { $0 == (.milliseconds(500), .seconds(1)) } == true)
        await setup.open(.forChanges(every: .milliseconds(100)))
        #expect(setup.stream.reads?.interval == .milliseconds(100))
    }

    @Test(arguments: [nil, "0.01"])
    func `if the stream has no valid price, the same tick requests the exchange, and compares the response`(
        text: String?
    ) async {
        let setup = Setup()
        await setup.open()
        setup.stream.bring(text, at: setup.world.now())
        async let tick: Void = setup.tick()
        await setup.world.primary.isAsked()
        setup.world.primary.answer("68902")
        await tick
        #expect(await setup.world.engine.state.quote?.value == price("68902"))
        #expect(setup.world.primary.asks == 1)
        #expect(setup.world.fallback.asks == 0)
        #expect(setup.stream.compared == [price("68902")])
    }

    @Test func `a change between the ticks is published at once, the next one when the interval is over`() async {
        let setup = Setup()
        await setup.open(.forChanges(every: .milliseconds(100)))
        setup.stream.bring("68901", at: setup.world.now())
        await setup.tick()
        #expect(await setup.world.nextTick().quote?.value == price("68901"))
        setup.world.clock.advance(to: .milliseconds(150))
        setup.stream.bring("68903", at: setup.world.now())
        #expect(await setup.world.nextState().quote?.value == price("68903"))
        // Within the interval: of these two prices only the second one is published.
        setup.stream.bring("68904", at: setup.world.now())
        setup.stream.bring("68905", at: setup.world.now())
        await setup.world.clock.timer(at: .milliseconds(250))
        setup.world.clock.advance(to: .milliseconds(250))
        let state = await setup.world.nextState()
        #expect(state.quote?.value == price("68905"))
        #expect(state.tick == 1)
    }

    @Test func `a jump between the ticks is not shown before another market agrees`() async {
        let setup = Setup()
        await setup.open(.forChanges(every: .milliseconds(100)))
        setup.stream.bring("68901", at: setup.world.now())
        await setup.tick()
        setup.world.clock.advance(to: .milliseconds(150))
        setup.stream.bring("75000", at: setup.world.now())
        await setup.world.fallback.isAsked()
        setup.world.fallback.answer("68900")
        await setup.world.isRecorded(.coinbase)
        #expect(await setup.world.engine.state.quote?.value != price("75000"))
        #expect(setup.world.fallback.asks == 1)
    }

    @Test func `a change during a round is published after it`() async {
        let setup = Setup()
        await setup.open(.forChanges(every: .milliseconds(100)))
        setup.stream.bring("68901", at: setup.world.now())
        await setup.tick()
        #expect(await setup.world.nextTick().quote?.value == price("68901"))
        setup.world.clock.advance(to: .seconds(1))
        setup.stream.bring(nil, at: setup.world.now())
        async let tick: Void = setup.tick()
        await setup.world.primary.isAsked()
        setup.stream.bring("68902", at: setup.world.now())
        setup.world.primary.answer("68901.50")
        await tick
        await setup.world.clock.timer(at: .milliseconds(1100))
        setup.world.clock.advance(to: .milliseconds(1100))
        var state = await setup.world.nextState()
        while state.quote?.value != price("68902") { state = await setup.world.nextState() }
        #expect(state.freshness == .fresh)
    }

    @Test func `a stream is checked by a request every 10 s, however often the observer runs`() async {
        let setup = Setup()
        let world = setup.world
        await setup.open()
        let answers = [world.primary, world.fallback].map { loader in
            Task {
                while !Task.isCancelled {
                    await loader.isAsked()
                    loader.answer("68901")
                }
            }
        }
        for second in 0...30 {
            world.clock.advance(to: .seconds(second))
            setup.stream.bring("\(68_900 + second % 3)", at: world.now())
            await setup.tick()
            await world.engine.observe()
        }
        for task in answers { task.cancel() }
        #expect(world.primary.asks == 4)
    }

    @Test func `a pause closes the stream, and the end of the pause opens it again`() async {
        let setup = Setup()
        await setup.open()
        #expect(setup.stream.isOpen)
        await setup.world.engine.paused()
        #expect(!setup.stream.isOpen)
        await setup.world.engine.resumed()
        #expect(setup.stream.isOpen)
        await setup.world.engine.change(.never)
        #expect(!setup.stream.isOpen)
    }

    @Test func `streams are open while a client watches changes, and for 30 s after that`() async {
        let world = World()
        let activity = ClientActivity(at: world.now().boottime)
        let settings = StreamControl.Settings(
            policy: .auto, interval: .seconds(1), minimumInterval: .milliseconds(100))
        let control = StreamControl(engine: world.engine, activity: activity, settings: settings, now: world.now)
        #expect(control.wanted == .never)
        activity.watcherCame(changes: true)
        #expect(control.wanted == .forChanges(every: .milliseconds(100)))
        activity.watcherLeft(changes: true, at: world.now().boottime)
        world.clock.advance(to: .seconds(29))
        #expect(control.wanted != .never)
        world.clock.advance(to: .seconds(30))
        #expect(control.wanted == .never)
        await control.change(.init(policy: .auto, interval: .milliseconds(250), minimumInterval: .milliseconds(100)))
        #expect(control.wanted == .forTicks)
        await control.change(.init(policy: .never, interval: .milliseconds(250), minimumInterval: .milliseconds(100)))
        activity.watcherCame(changes: true)
        #expect(control.wanted == .never)
    }
}
