import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct RateHistoryKeeperTests {
    private final class Loader: RateHistoryLoader {
        let source = "frankfurter"
        let base: Currency
        let requests = Log<RateHistory.Request>()
        let isFailing: @Sendable (Int) -> Bool
        let refused: Currency?

        init(
            of base: Currency = .eur, refusing refused: Currency? = nil,
            isFailing: @escaping @Sendable (Int) -> Bool = { _ in false }
        ) {
            (self.base, self.refused, self.isFailing) = (base, refused, isFailing)
        }

        func load(
            _ request: RateHistory.Request
        ) async throws(PriceLoadingError) -> [(currency: Currency, day: Int64, value: Price)] {
            requests.add(request)
            if isFailing(requests.all.count) { throw .unavailable("HTTP 503") }
            if let refused, request.currencies.contains(refused) { throw .refused("HTTP 422") }
            return request.days.map { (EuroWorld.czk, $0, 25) }
        }
    }

    private final class Kept: RateHistoryStore {
        let saved = Log<RateHistory>()
        func loadHistory() -> RateHistory? { saved.all.last }
        func save(_ history: RateHistory) { saved.add(history) }
    }

    private func keeper(_ world: EuroWorld, _ kept: Kept, _ events: EventLog = EventLog()) -> RateHistoryKeeper {
        RateHistoryKeeper(
            engine: world.engine, store: kept, background: BackgroundWork(clock: world.clock), clock: world.clock,
            now: { [clock = world.clock] in World.start.advanced(by: clock.offset) }, report: { events.add($0) })
    }

    @Test
    func `a year is requested, a minute later another one, and new days four times a day; a restart requests nothing`()
        async
    {
        let (world, kept, loader) = (await EuroWorld(.always), Kept(), Loader())
        let first = keeper(world, kept)
        await first.change(loader)
        var task = Task { await first.run() }
        await world.clock.run(to: .seconds(60))
        await world.clock.run(to: .seconds(120))
        await world.clock.timer(at: .seconds(120 + 21_600))
        task.cancel()
        await task.value
        #expect(loader.requests.all.map(\.days.count) == [366, 365])
        #expect(await first.history?.series[EuroWorld.czk]?.rates.count == 731)
        let again = keeper(world, kept)
        await again.change(loader)
        task = Task { await again.run() }
        await world.clock.timer(at: world.clock.offset + .seconds(21_600))
        task.cancel()
        await task.value
        #expect(loader.requests.all.count == 2)
        #expect(await again.history == kept.saved.all.last)
    }

    @Test func `a failure is reported once and retried ever more rarely`() async {
        let (world, kept, events) = (await EuroWorld(.always), Kept(), EventLog())
        let loader = Loader { $0 < 4 }
        let keeper = keeper(world, kept, events)
        await keeper.change(loader)
        let task = Task { await keeper.run() }
        for seconds in [60, 180, 420] { await world.clock.run(to: .seconds(seconds)) }
        await world.clock.timer(at: .seconds(480))
        task.cancel()
        await task.value
        #expect(loader.requests.all.count == 4)
        #expect(events.all.count == 2)
    }

    @Test func `a currency that the source refuses takes the rates from no other`() async {
        let (world, kept) = (await EuroWorld(.always), Kept())
        let loader = Loader(of: .usd, refusing: .eur)
        let keeper = keeper(world, kept)
        await keeper.change(loader)
        let task = Task { await keeper.run() }
        for minutes in 1...3 { await world.clock.run(to: .seconds(60 * minutes)) }
        await world.clock.timer(at: .seconds(240))
        task.cancel()
        await task.value
        #expect(
            loader.requests.all.map(\.currencies) == [
                [EuroWorld.czk, .eur], [EuroWorld.czk], [.eur], [EuroWorld.czk],
            ])
        #expect(kept.saved.all.last?.series.mapValues(\.rates.count) == [EuroWorld.czk: 731])
        // Nor does it after a restart: it is requested alone, and what is known is renewed first.
        let (before, events) = (loader.requests.all.count, EventLog())
        let again = self.keeper(world, kept, events)
        await again.change(loader)
        let next = Task { await again.run() }
        let start = world.clock.offset
        await world.clock.run(to: start + .seconds(60))
        let renewal = start + .seconds(60) + RateHistoryKeeper.period
        await world.clock.run(to: renewal)
        await world.clock.run(to: renewal + .seconds(60))
        await world.clock.timer(at: renewal + .seconds(120))
        next.cancel()
        await next.value
        #expect(loader.requests.all.dropFirst(before).map(\.currencies) == [[.eur], [EuroWorld.czk], [.eur]])
        #expect(events.all.isEmpty)
        #expect(await again.history?.renewed == World.start.advanced(by: renewal).wall)
    }

    @Test func `a source that refuses everything is a failure, and what is known of it stays`() async {
        let (world, kept, events) = (await EuroWorld(.always), Kept(), EventLog())
        let known = RateHistory("frankfurter", of: .usd, [EuroWorld.czk: .init(days: 0...1, rates: [:])])
        kept.save(known)
        let loader = Loader(of: .usd, refusing: EuroWorld.czk)
        let other = Loader(of: .usd, refusing: .eur)
        let keeper = keeper(world, kept, events)
        await keeper.change(RefusingLoader(loaders: [loader, other]))
        let task = Task { await keeper.run() }
        for minutes in 1...2 { await world.clock.run(to: .seconds(60 * minutes)) }
        await world.clock.timer(at: .seconds(180))
        task.cancel()
        await task.value
        #expect(events.all.count == 1)
        #expect(kept.saved.all == [known])
    }

    /// Refuses what any of some loaders refuses.
    private struct RefusingLoader: RateHistoryLoader {
        let loaders: [Loader]
        var source: String { loaders[0].source }
        var base: Currency { loaders[0].base }

        func load(
            _ request: RateHistory.Request
        ) async throws(PriceLoadingError) -> [(currency: Currency, day: Int64, value: Price)] {
            for loader in loaders { _ = try await loader.load(request) }
            return []
        }
    }

    @Test func `nothing is requested if every currency has markets, or nothing may be`() async {
        let loader = Loader()
        for (policy, loader) in [(DerivationPolicy.fallback, loader), (.always, nil)] {
            let world = await EuroWorld(policy)
            let keeper = keeper(world, Kept())
            await keeper.change(loader)
            let task = Task { await keeper.run() }
            for _ in 0..<200 { await Task.yield() }
            task.cancel()
            await task.value
        }
        #expect(loader.requests.all.isEmpty)
    }
}
