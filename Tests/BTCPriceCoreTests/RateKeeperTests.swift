import Synchronization
import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct RateKeeperTests {
    private final class RateLoader: ReferenceRateLoader {
        let source: String
        let asks = Counter()
        let error = Mutex<PriceLoadingError?>(nil)
        /// What happens during a request.
        let meanwhile = Mutex<(@Sendable () async -> Void)?>(nil)
        private let now: @Sendable () -> Timestamp

        init(_ source: String, now: @escaping @Sendable () -> Timestamp) { (self.source, self.now) = (source, now) }

        func load() async throws(PriceLoadingError) -> ReferenceRateTable {
            asks.add()
            await meanwhile.withLock(\.self)?()
            if let error = error.withLock(\.self) { throw error }
            return ReferenceRateTable(source, of: .eur, [(EuroWorld.czk, 25, now())], received: now())
        }
    }

    private final class Kept: ReferenceRateStore {
        let tables = Mutex<[ReferenceRateTable]>([])

        func load() -> [ReferenceRateTable] { tables.withLock(\.self) }
        func save(_ tables: [ReferenceRateTable]) { self.tables.withLock { $0 = tables } }
    }

    /// Runs a keeper past these wake-ups, seconds after its start, until it sleeps after the last one.
    private func run(
        _ world: EuroWorld, _ kept: Kept, wakeUps: [Int], error: PriceLoadingError? = nil
    ) async -> (asks: [Int], events: [PriceEvent]) {
        let clock = world.clock
        let events = EventLog()
        let wall: @Sendable () -> Timestamp = {
            Timestamp(milliseconds: World.start.wall.milliseconds + clock.offset.wholeMilliseconds)
        }
        let keeper = RateKeeper(
            engine: world.engine, store: kept, background: BackgroundWork(clock: clock), clock: clock,
            now: { ObservationTime(wall: wall(), boottime: .boot + clock.offset.wholeMilliseconds) }, jitter: { 0.5 },
            report: { events.add($0) })
        let loaders = ["ecb", "frankfurter"].map { RateLoader($0, now: wall) }
        for loader in loaders { loader.error.withLock { $0 = error } }
        await keeper.change(loaders)
        let start = clock.offset
        let task = Task { await keeper.run() }
        for seconds in wakeUps.dropLast() { await clock.run(to: start + .seconds(seconds)) }
        if let last = wakeUps.last { await clock.timer(at: start + .seconds(last)) }
        task.cancel()
        await task.value
        return (loaders.map(\.asks.count), events.all)
    }

    @Test func `each source is requested four times a day, also over restarts`() async {
        let world = await EuroWorld(.always, rate: nil)
        let kept = Kept()
        let period = 23_400
        let first = await run(world, kept, wakeUps: [period, 2 * period, 3 * period, 4 * period])
        #expect(first.asks == [4, 4] && first.events.isEmpty)
        // The rates were received 6.5 hours before the last wake-up would have been, so nothing is requested at once.
        let second = await run(world, kept, wakeUps: [21_600])
        #expect(second.asks == [0, 0])
        #expect(await world.engine.rateTables.count == 2)
    }

    @Test func `while the ticks are stopped nothing is requested, and their resumption ends the wait`() async {
        let world = await EuroWorld(.always, rate: nil)
        let background = BackgroundWork(clock: world.clock)
        let loader = RateLoader("ecb", now: { World.start.wall })
        let keeper = RateKeeper(
            engine: world.engine, store: Kept(), background: background, clock: world.clock, now: { World.start },
            jitter: { 0.5 }, report: { _ in })
        await background.pause()
        await keeper.change([loader])
        let task = Task { await keeper.run() }
        for _ in 0..<100 { await Task.yield() }
        #expect(loader.asks.count == 0)
        await background.resume()
        await world.clock.timer(at: .seconds(23_400))
        #expect(loader.asks.count == 1)
        task.cancel()
        await task.value
    }

    @Test func `a source that a reload removes or changes during a request gives no rates`() async {
        let world = await EuroWorld(.always, rate: nil)
        let keeper = RateKeeper(
            engine: world.engine, store: Kept(), background: BackgroundWork(clock: world.clock), clock: world.clock,
            now: { World.start }, jitter: { 0.5 }, report: { _ in })
        let loaders = ["ecb", "frankfurter", "frankfurter"].map { RateLoader($0, now: { World.start.wall }) }
        loaders[1].meanwhile.withLock { $0 = { await keeper.change([loaders[2]]) } }
        await keeper.change(Array(loaders[..<2]))
        let task = Task { await keeper.run() }
        await world.clock.timer(at: .seconds(23_400))
        #expect(loaders.map(\.asks.count) == [1, 1, 1])
        #expect(await world.engine.rateTables.map(\.source) == ["frankfurter"])
        task.cancel()
        await task.value
    }

    @Test func `a dead network is retried ever more rarely, and reported once`() async {
        let world = await EuroWorld(.always, rate: nil)
        let waits = [60, 120, 240, 480, 960, 1920, 3840, 7200, 7200, 7200]
        let wakeUps = waits.indices.map { waits[...$0].reduce(0, +) }
        let result = await run(world, Kept(), wakeUps: wakeUps, error: .unreachable("no route to host"))
        #expect(result.asks == [10, 10])
        let failure = PriceLoadingError.unreachable("no route to host")
        #expect(result.events == ["ecb", "frankfurter"].map { .ratesFailed($0, failure, held: false) })
    }

    @Test(
        arguments: [
            (.rateLimited("HTTP 429", retryAfter: .seconds(3600)), 3631),
            (.unavailable("HTTP 503", retryAfter: .seconds(3600)), 3631),
            (.refused("HTTP 403"), 630),
        ] as [(PriceLoadingError, Int)])
    func `a time that a source names is kept, and a refusal lasts longer`(error: PriceLoadingError, wait: Int) async {
        let world = await EuroWorld(.always, rate: nil)
        let result = await run(world, Kept(), wakeUps: [wait], error: error)
        #expect(result.asks == [1, 1])
    }
}
