import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct RateHistoryTests {
    private let czk = EuroWorld.czk
    private let pln = Currency(rawValue: "PLN") ?? .usd

    @Test func `a rate is that of the last day that has both, and eight days are the most`() {
        let history = RateHistory(
            "frankfurter", of: .eur,
            [
                .usd: .init(days: 0...30, rates: [10: Price("1.25")!, 11: Price("1.2")!]),
                czk: .init(days: 0...30, rates: [9: 24, 10: 25, 12: 30]),
            ])
        #expect(history.rate(of: czk, per: .eur, on: 11) == 25)
        #expect(history.rate(of: czk, per: .usd, on: 10) == 20)
        // The day after has none of the dollar: two rates are of one day.
        #expect(history.rate(of: czk, per: .usd, on: 12) == 20)
        #expect(history.rate(of: .usd, per: czk, on: 10) == Price("0.05"))
        #expect(history.rate(of: czk, per: .eur, on: 20) == 30)
        #expect(history.rate(of: czk, per: .eur, on: 21) == nil)
        #expect(history.rate(of: czk, per: .eur, on: 8) == nil)
        #expect(history.rate(of: pln, per: .eur, on: 10) == nil)
        #expect(RateHistory.day(of: 86_400) == 1)
        #expect(RateHistory.day(of: 86_399) == 0)
    }

    @Test func `two years are requested in two requests, and then the new days`() {
        var history = RateHistory("frankfurter", of: .eur)
        var today: Int64 = 20_000
        func answer(_ wanted: Set<Currency>, renews: Bool = false) -> RateHistory.Request? {
            guard let request = history.next(for: wanted, today: today, renews: renews) else { return nil }
            // Today's rate is published in the afternoon.
            let rates = request.currencies.flatMap { currency in
                request.days.filter { $0 < today }.map { (currency: currency, day: $0, value: Price(25)) }
            }
            history.add(
                rates + [(.jpy, today - 1, 150), (czk, today - 2, 0), (czk, today + 1, 99)], request, today: today)
            return request
        }
        #expect(answer([czk, .eur]) == .init(currencies: [czk], days: 19_635...20_000))
        #expect(answer([czk, .eur]) == .init(currencies: [czk], days: 19_270...19_634))
        #expect(answer([czk]) == nil)
        #expect(history.series.keys.map(\.rawValue) == ["CZK"])
        #expect(history.series[czk]?.days == 19_270...19_999)
        #expect(history.series[czk]?.rates.count == 730)
        // A currency that is added gets its own. The last days are requested again, of all in one request.
        #expect(answer([czk, pln]) == .init(currencies: [pln], days: 19_635...20_000))
        #expect(answer([czk, pln], renews: true) == .init(currencies: [czk, pln], days: 19_997...20_000))
        #expect(history.series[czk]?.days == 19_270...19_999, "there was no rate yet")
        today += 3
        #expect(answer([czk], renews: true) == .init(currencies: [czk], days: 19_997...20_003))
        #expect(history.series[czk]?.rates[20_002] == 25)
        history.keep(only: [czk], today: today)
        #expect(history.series[czk]?.days == 19_273...20_002)
        // After more than a year everything is requested again.
        today += 400
        #expect(answer([czk], renews: true)?.days == 20_038...20_403)
        #expect(history.series[czk]?.days == 20_038...20_402)
        // A clock that was wrong.
        today = 20_010
        history.keep(only: [czk], today: today)
        #expect(history.series.isEmpty)
        #expect(history.next(for: [czk], today: today, renews: false)?.days == 19_645...20_010)
        history.keep(only: [pln], today: today)
        #expect(history.series.keys.isEmpty)
    }

    @Test func `days without a rate are known after a while`() {
        var history = RateHistory("frankfurter", of: .eur)
        let request = RateHistory.Request(currencies: [czk], days: 100...120)
        history.add([], request, today: 120)
        #expect(history.series[czk] == .init(days: 100...112, rates: [:]))
    }

    @Test func `a rate of one day that is far from those beside it is left out, until another day confirms it`() {
        var history = RateHistory("frankfurter", of: .eur)
        func add(_ rates: [(Int64, Price)], today: Int64) -> [Int64: Price] {
            history.add(
                rates.map { (czk, $0.0, $0.1) }, .init(currencies: [czk], days: (rates.first?.0 ?? 0)...today),
                today: today)
            return history.series[czk]?.rates ?? [:]
        }
        #expect(
            add([(100, 25), (101, 2500), (102, 25), (103, 26), (104, 60)], today: 104) == [100: 25, 102: 25, 103: 26])
        // A devaluation.
        #expect(add([(103, 26), (104, 60), (105, 61)], today: 105)[104] == 60)
        #expect(history.series[czk]?.rates.count == 5)
    }

    @Test func `a derived candle has the prices of the other one at the rate, and says so`() {
        let candle = Candle(
            start: 0, open: 100, high: 120, low: 90, close: 110, ticks: 60, fresh: 60, covered: 55, doubtful: 2,
            single: 1)
        let derived = candle.derived(25, in: czk)
        #expect(
            derived
                == Candle(
                    start: 0, open: 2500, high: 3000, low: 2250, close: 2750, ticks: 60, fresh: 60, origin: "derived",
                    covered: 55, doubtful: 2, single: 1))
        #expect(candle.derived(Price(1, scale: 12), in: czk) == nil)
    }
}

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
