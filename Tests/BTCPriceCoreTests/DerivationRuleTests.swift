import TestSupport
import Testing

@testable import BTCPriceCore

/// Euros, and korunas that may be derived from them.
final class EuroWorld: Sendable {
    static let czk = Currency(rawValue: "CZK") ?? .usd

    let clock = TestClock()
    let euros = SetLoader(Market("kraken", "BTC/EUR"), "95610")
    let korunas = SetLoader(Market("coinmate", "BTC/CZK"), "2343000")
    let events = EventLog()
    let store = MemoryStore()
    let engine: PriceEngine

    init(_ policy: DerivationPolicy, rate: String? = "24.527", sources: [String] = ["ecb", "frankfurter"]) async {
        let now: TimeSource = { [clock] in World.start.advanced(by: clock.offset) }
        func source(_ loader: SetLoader) -> FetchLatestPrice {
            FetchLatestPrice(
                loader: loader, address: "https://\(loader.venue.name)", timeout: .milliseconds(800),
                hedge: .milliseconds(400))
        }
        let plans = [
            CurrencyPlan(.eur, [source(euros)], interval: .seconds(1)),
            CurrencyPlan(
                Self.czk, policy == .always ? [] : [source(korunas)], interval: .seconds(1), derivation: policy),
        ]
        let persist = PersistLastValidPrice(store: store, report: { _ in })
        engine = PriceEngine(
            plans, clock: clock, budget: .seconds(1), now: now, jitter: { 0.5 }, subscribers: [persist],
            report: { [events] in events.add($0) })
        guard let rate else { return }
        for source in sources { await take(rate, by: source) }
    }

    @discardableResult
    func take(_ rate: String, by source: String, days: Int64 = 0) async -> [Currency] {
        let day = World.start.wall.milliseconds / 86_400_000 - days
        let table = ReferenceRateTable(
            source, of: .eur, [(Self.czk, price(rate), Timestamp(milliseconds: day * 86_400_000))],
            received: World.start.wall)
        return await engine.take([table])[0]
    }

    /// A tick of both currencies.
    func tick() async -> PriceState {
        clock.advance(to: clock.offset + .seconds(1))
        for currency in [Currency.eur, Self.czk] {
            await engine.tick(Tick(due: clock.now, lateness: .zero, skipped: 0), of: currency)
        }
        return await state
    }

    var state: PriceState { get async { await engine.state(of: Self.czk) ?? .empty() } }
}

@Suite struct DerivationRuleTests {
    @Test func `a currency without sources has a price that is made of the euro's`() async {
        let world = await EuroWorld(.always)
        let state = await world.tick()
        #expect(state.freshness == .fresh && state.confirmation == .unconfirmed && state.ticks.number == 1)
        #expect(state.quote?.value == price("2345026.47"))
        #expect(state.quote?.source == "kraken" && state.quote?.market == "BTC/EUR" && state.quote?.currency == "CZK")
        #expect(state.derivation?.value == 95610 && state.derivation?.currency == "EUR")
        #expect(state.derivation?.rate == price("24.527") && state.derivation?.rateSource == "ecb")
        #expect(state.derivation?.rateDate == World.start.wall.utc.date)
        #expect(await state.observedBoottime == world.engine.state(of: .eur)?.observedBoottime)
        #expect(await world.engine.record(of: EuroWorld.czk)?.validated.unconfirmed == 1)
        // What a restart shows is marked, too.
        #expect(world.store.prices.last?.price.derivation == state.derivation)
    }

    @Test func `its first tick waits for the euro's, even if that comes later`() async {
        let world = await EuroWorld(.always)
        await world.engine.tick(Tick(due: world.clock.now, lateness: .zero, skipped: 0), of: EuroWorld.czk)
        let state = await world.state
        #expect(state.freshness == .fresh && state.quote?.value == price("2345026.47"), "\(state)")
        #expect(await world.engine.record(of: EuroWorld.czk)?.failed == 0)
    }

    @Test func `a tick that joins a client's round counts once`() async {
        let clock = TestClock()
        let euros = ScriptedLoader("kraken", market: "BTC/EUR")
        let source = FetchLatestPrice(
            loader: euros, address: "https://kraken", timeout: .milliseconds(800), hedge: .milliseconds(400))
        let engine = PriceEngine(
            [
                CurrencyPlan(.eur, [source], interval: .seconds(1)),
                CurrencyPlan(EuroWorld.czk, [], interval: .seconds(1), derivation: .always),
            ], clock: clock, budget: .seconds(1), now: { World.start.advanced(by: clock.offset) }, jitter: { 0.5 },
            subscribers: [], report: { _ in })
        let day = Timestamp(milliseconds: World.start.wall.milliseconds / 86_400_000 * 86_400_000)
        // While the ticks are stopped, new rates start no round.
        await engine.paused(.paused)
        _ = await engine.take([
            ReferenceRateTable("ecb", of: .eur, [(EuroWorld.czk, 25, day)], received: World.start.wall)
        ])
        await engine.resumed()
        let client = Task { try await engine.price(.noCache, in: EuroWorld.czk) }
        await euros.isAsked()
        euros.fail()
        // The client's own round waits for the euro's.
        await euros.isAsked()
        let tick = Task { await engine.tick(Tick(due: clock.now, lateness: .zero, skipped: 0), of: EuroWorld.czk) }
        while await engine.callersWaiting(for: EuroWorld.czk) < 2 { await Task.yield() }
        let rest = Task {
            while !Task.isCancelled {
                euros.fail()
                await euros.isAsked()
            }
        }
        await tick.value
        rest.cancel()
        #expect(await client.result.failure != nil)
        #expect(await engine.state(of: EuroWorld.czk)?.ticks.number == 1)
        #expect(await engine.record(of: EuroWorld.czk)?.failed == 1)
    }

    @Test func `without the euro's price, or a rate, it is stale, and the reason is given`() async {
        let world = await EuroWorld(.always, rate: nil)
        #expect(await world.tick().failure == "no source has a reference rate of CZK")
        await world.take("24.527", by: "ecb")
        world.euros.set(nil)
        for _ in 0..<4 { _ = await world.tick() }
        let state = await world.state
        #expect(state.freshness != .fresh && state.failure?.hasPrefix("BTC/EUR: ") == true, "\(state)")
    }

    @Test func `a fallback begins with the tick in which no source has a price, and ends when one has`() async {
        let world = await EuroWorld(.fallback)
        #expect(await world.tick().derivation == nil)
        world.korunas.set(nil)
        let derived = await world.tick()
        #expect(derived.freshness == .fresh && derived.derivation != nil)
        #expect(derived.quote?.value == price("2345026.47"))
        world.korunas.set("2344000")
        var state = derived
        for _ in 0..<5 where state.derivation != nil { state = await world.tick() }
        #expect(state.derivation == nil && state.quote?.source == "coinmate")
        let kinds = world.events.all.compactMap { event -> String? in
            switch event {
            case .derivedInstead(let failure, _, _): failure
            case .marketAgain(let quote): quote.source
            default: nil
            }
        }
        #expect(kinds == ["CZK: coinmate: not available: HTTP 503", "coinmate"])
    }

    @Test func `a tick that shows a derived price in place of a withheld one counts once`() async {
        let world = await EuroWorld(.fallback)
        _ = await world.tick()
        let before = await world.engine.record(of: EuroWorld.czk)?.validated
        world.korunas.set("2800000")
        #expect(await world.tick().derivation != nil)
        let after = await world.engine.record(of: EuroWorld.czk)?.validated
        #expect(after?.withheld == before?.withheld)
        #expect(after?.unconfirmed == before.map { $0.unconfirmed + 1 })
    }

    @Test func `a client's failed request does not replace a market's price`() async {
        let world = await EuroWorld(.fallback)
        let before = await world.tick()
        #expect(before.derivation == nil)
        world.korunas.set(nil)
        world.clock.advance(to: world.clock.offset + .seconds(1))
        do throws(FetchFailure) {
            _ = try await world.engine.refresh(EuroWorld.czk)
            Issue.record("there is no price")
        } catch {
            #expect(error.failures.map(\.source) == ["coinmate"])
        }
        #expect(await world.state.quote == before.quote)
        #expect(await world.state.derivation == nil)
    }

    @Test func `never means never`() async {
        let world = await EuroWorld(.never)
        world.korunas.set(nil)
        let state = await world.tick()
        #expect(state.freshness == .none && state.derivation == nil)
    }

    @Test func `a rate that only one source has is not believed more than a market`() async {
        let confirmed = await EuroWorld(.fallback)
        confirmed.korunas.set("110000")
        #expect(await confirmed.tick().derivation != nil)
        let single = await EuroWorld(.fallback, rate: "245.27", sources: ["ecb"])
        #expect(await single.tick().freshness == .none)
    }

    @Test func `a rate that has become wrong shows no wrong price`() async {
        let world = await EuroWorld(.fallback, sources: ["ecb"])
        _ = await world.tick()
        #expect(await world.take("245.27", by: "ecb") == [EuroWorld.czk])
        world.korunas.set(nil)
        #expect(await world.tick().quote?.value == price("2345026.47"))
        // And if both sources are wrong from the start, the market's last price shows it.
        let other = await EuroWorld(.fallback, rate: nil)
        _ = await other.tick()
        await other.take("245.27", by: "ecb")
        await other.take("245.27", by: "frankfurter")
        other.korunas.set(nil)
        let state = await other.tick()
        #expect(state.derivation == nil && state.freshness == .stale)
        #expect(state.failure?.contains("far from the last price of a market") == true, "\(state.failure ?? "")")
    }

    @Test func `that a newer rate is not believed is told at once, and not only at the next tick`() async {
        let world = await EuroWorld(.always, sources: ["ecb"])
        #expect(await world.tick().standing.warning == nil)
        #expect(await world.take("50", by: "ecb") == [EuroWorld.czk])
        for _ in 0..<10_000 where await world.state.standing.warning == nil { await Task.yield() }
        #expect(await world.state.standing.warning?.contains("newest reference rate of ecb is 50") == true)
        #expect(await world.state.ticks.number == 1)
    }

    @Test(arguments: [(5, false), (6, true), (8, true), (9, nil)] as [(Int64, Bool?)])
    func `an old rate is used with a warning, and a very old one is not used`(days: Int64, warns: Bool?) async {
        let world = await EuroWorld(.always, rate: nil)
        await world.take("24.527", by: "ecb", days: days)
        let state = await world.tick()
        guard let warns else {
            #expect(state.freshness == .none)
            return
        }
        #expect(state.freshness == .fresh)
        #expect(
            (state.standing.warning?.hasSuffix(", \(days) days ago") == true) == warns,
            "\(state.standing.warning ?? "")")
    }

    @Test func `the uncertainty is that of the euro's price and of a day's move, as squares`() throws {
        let state = PriceState(
            tick: 1, freshness: .fresh,
            quote: PriceQuote(
                value: 100_000, currency: "EUR", timestamp: World.start.wall, source: "kraken", market: "BTC/EUR"),
            observedBoottime: World.start.boottime, confirmation: .single, failure: nil,
            uncertainty: Uncertainty(plusMinus: 400, markets: 3), currency: "EUR",
            freshUntil: World.start.boottime + 2000)
        let rate = ReferenceRate(value: 25, source: "ecb", date: World.start.wall, isConfirmed: true)
        let price = try DerivationRule.derive(
            EuroWorld.czk, from: state, rate, Belief(), at: World.start)
        // 0.4 % and 0.3 %.
        #expect(price.standing.uncertainty == Uncertainty(plusMinus: 12_500, markets: 3))
    }

    @Test func `the last price of an earlier run stays derived, and is no reference for a market`() async {
        let world = await EuroWorld(.fallback, rate: nil)
        let derivation = Derivation(
            value: 95000, currency: "EUR", rate: 250, rateSource: "ecb", rateDate: "2026-11-20")
        let quote = PriceQuote(
            value: 23_750_000, currency: "CZK", timestamp: World.start.wall, source: "kraken", market: "BTC/EUR")
        await world.engine.restore(
            CachedPrice(ShownPrice(quote, observedBoottime: World.start.boottime, derivation: derivation)))
        #expect(await world.state.derivation == derivation)
        let state = await world.tick()
        #expect(state.derivation == nil && state.quote?.value == 2_343_000)
    }
}
