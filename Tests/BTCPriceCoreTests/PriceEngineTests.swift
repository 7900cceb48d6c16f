import TestSupport
import Testing

@testable import BTCPriceCore

@Suite(.timeLimit(.minutes(3))) struct PriceEngineTests {
    @Test func `clients and the tick share one fetch`() async throws {
        let world = World()
        await world.ticker.start()
        await world.primary.isAsked()
        async let first = world.engine.price(.remoteFirst)
        async let second = world.engine.price(.noCache)
        while await world.engine.callersWaiting < 3 { await Task.yield() }
        world.primary.answer("68901.23")
        #expect(try await first.quote?.value == price("68901.23"))
        #expect(try await second.quote?.value == price("68901.23"))
        #expect(world.primary.asks == 1)
        await world.ticker.stop()
    }

    @Test func `a price is saved before clients can see it`() async {
        let world = World()
        await world.ticker.start()
        for second in 0..<5 {
            if second > 0 { await world.clock.run(to: .seconds(second)) }
            _ = await world.tick("6890\(second)")
        }
        #expect(world.shownUnsaved.count == 0)
        #expect(world.saves.count == 5)
        await world.ticker.stop()
    }

    @Test func `pause and stop wait for no fetch`() async throws {
        let world = World()
        await world.ticker.start()
        await world.primary.isAsked()
        async let client = world.engine.price(.noCache)
        while await world.engine.callersWaiting < 2 { await Task.yield() }
        // Returns although the exchange has not responded, and the client's fetch continues.
        await world.ticker.pause()
        #expect(await world.nextTick().failure == "paused")
        world.primary.answer("68901.23")
        let state = try await client
        #expect(state.quote?.value == price("68901.23"))
        #expect(state.ticks.number == 0, "it was the client's fetch, not the tick's")
        #expect(state.freshness == .fresh, "it is a moment old")
        let aged = state.aged(at: World.start.boottime + 2001)
        #expect(
            aged.freshness == .stale && aged.failure == "paused", "it does not stay current while the ticks stand still"
        )
        await world.ticker.stop()
    }

    /// The exchange may have received both requests.
    @Test(arguments: [100, 1]) func `a request whose connection was closed is sent once more, and counts again`(
        limit: Int
    ) async throws {
        let world = World(limits: [RequestLimit(limit, per: .seconds(1))])
        let state = Task { try await world.engine.refresh() }
        await world.primary.isAsked()
        world.primary.fail(.connectionClosed)
        if limit == 1 {
            // The limit allows no second one: the next source is requested.
            await world.fallback.isAsked()
            world.fallback.answer("68900")
            #expect(try await state.value.quote?.source == "coinbase")
            #expect(world.primary.asks == 1)
        } else {
            await world.primary.isAsked()
            world.primary.fail(.connectionClosed)
            await world.fallback.isAsked()
            world.fallback.answer("68900")
            #expect(try await state.value.quote?.source == "coinbase")
            #expect(world.primary.asks == 2)
        }
        let report = await world.engine.registry.reports(
            of: [.binance], at: world.now(), [:])[0]
        #expect(report.requests == Int64(world.primary.asks))
        #expect(report.lastFailure?.kind == "unreachable")
        #expect(report.cooldownUntil == nil)
    }

    @Test func `while the ticks are paused, a client causes no request`() async {
        let world = World()
        await world.engine.paused(.paused)
        await #expect(throws: FetchFailure.paused) { try await world.engine.refresh() }
        #expect(world.primary.asks == 0)
        #expect(FetchFailure.paused.description == "paused")
    }

    @Test func `a late tick has its whole budget`() async {
        let world = World(interval: .seconds(3600))
        await world.ticker.start()
        _ = await world.tick("68901.23")
        await world.clock.timer(at: .seconds(3600))
        // Asleep at the time when the tick was due, for longer than the budget and less than the interval.
        world.clock.advance(to: .seconds(4800))
        #expect(await world.tick("68902").freshness == .fresh)
        await world.ticker.stop()
    }

    @Test func `a thousand callers make one fetch`() async {
        let world = World()
        let callers = (0..<1000).map { _ in Task { try await world.engine.price(.remoteFirst) } }
        await world.primary.isAsked()
        while await world.engine.callersWaiting < callers.count { await Task.yield() }
        world.primary.answer("68901.23")
        for caller in callers { #expect(await caller.result.failure == nil) }
        #expect(world.primary.asks == 1)
        #expect(world.saves.count == 1, "one answer is taken in once")
        #expect(world.store.price?.quote.value == price("68901.23"))
        #expect(await world.engine.state.ticks.number == 0, "a refresh is no tick")
    }

    @Test func `localFirst requests no source while a price is held`() async throws {
        let world = World()
        await world.engine.restore(cached("68000"))
        let state = try await world.engine.price()
        #expect(state.quote?.value == price("68000"))
        #expect(state.freshness == .stale)
        #expect(world.primary.asks == 0)
    }

    @Test func `the price of a currency that is not kept stays on the disk`() async throws {
        let world = World()
        var euro = cached("59000").price
        euro.quote.currency = "EUR"
        await world.engine.restore(CachedPrice(euro))
        #expect(await world.engine.state.quote == nil)
        async let answer = world.engine.price(.localFirst)
        await world.primary.isAsked()
        world.primary.answer("68901.23")
        _ = try await answer
        #expect(world.store.prices.map(\.quote.currency) == ["USD", "EUR"])
    }

    @Test func `localFirst fetches if no price is held`() async throws {
        let world = World()
        async let answer = world.engine.price(.localFirst)
        await world.primary.isAsked()
        world.primary.answer("68901.23")
        #expect(try await answer.freshness == .fresh)
    }

    @Test func `remoteFirst returns the held price and the reason if the fetch fails`() async throws {
        let world = World()
        await world.engine.restore(cached("68000"))
        async let answer = world.engine.price(.remoteFirst)
        await world.primary.isAsked()
        world.primary.fail(.refused("HTTP 451"))
        await world.fallback.isAsked()
        world.fallback.fail(.rateLimited("HTTP 429", retryAfter: .seconds(30)))
        let state = try await answer
        #expect(state.quote?.value == price("68000"))
        #expect(state.freshness == .stale)
        #expect(state.failure == "binance: refused: HTTP 451; coinbase: rate limited for 30 s: HTTP 429")
    }

    @Test func `noCache fails if the fetch fails, and keeps the held price`() async throws {
        let world = World(interval: .seconds(10))
        await world.ticker.start()
        _ = await world.tick("68901.23")
        world.clock.advance(to: .seconds(1))
        let answer = Task { try await world.engine.price(.noCache) }
        await world.primary.isAsked()
        world.primary.fail()
        await world.fallback.isAsked()
        world.fallback.fail()
        #expect(await answer.result.failure is FetchFailure)
        #expect(await world.engine.state.freshness == .fresh, "the last tick has a value")
        await world.ticker.stop()
    }

    @Test func `for a second after a round began, its result is also that of a client that wants a new price`()
        async throws
    {
        let world = World(interval: .seconds(10))
        await world.ticker.start()
        _ = await world.tick("68901.23")
        world.clock.advance(to: .milliseconds(999))
        #expect(try await world.engine.price(.noCache).quote?.value == price("68901.23"))
        #expect(world.primary.asks == 1)
        // A failure, too.
        world.clock.advance(to: .seconds(1))
        let failing = Task { try await world.engine.price(.noCache) }
        await world.primary.isAsked()
        world.primary.fail()
        await world.fallback.isAsked()
        world.fallback.fail()
        let failure = try #require(await failing.result.failure as? FetchFailure)
        await #expect(throws: failure) { try await world.engine.price(.noCache) }
        #expect(world.primary.asks == 2)
        // After a command of an administrator the sources are requested again.
        _ = await world.engine.retry(nil)
        let retried = Task { try await world.engine.price(.noCache) }
        await world.primary.isAsked()
        world.primary.answer("68902")
        #expect(try await retried.value.quote?.value == price("68902"))
        await world.ticker.stop()
    }

    @Test func `a caller that gives up does not end the fetch of the others`() async throws {
        let world = World()
        let impatient = Task { try await world.engine.price(.noCache) }
        await world.primary.isAsked()
        async let patient = world.engine.price(.noCache)
        while await world.engine.callersWaiting < 2 { await Task.yield() }
        impatient.cancel()
        while await world.engine.callersWaiting > 1 { await Task.yield() }
        world.primary.answer("68901.23")
        #expect(try await patient.quote?.value == price("68901.23"))
        #expect(world.primary.asks == 1)
        let failure = await impatient.result.failure as? FetchFailure
        #expect(failure == .cancelled)
    }

    @Test func `a fetch without waiting callers is cancelled, starts no fallback, and is not a failure`() async throws {
        let world = World()
        let task = Task { try await world.engine.price(.noCache) }
        await world.primary.isAsked()
        task.cancel()
        _ = await task.result
        #expect(world.fallback.asks == 0)
        #expect(world.events.all.isEmpty)
        let state = await world.engine.state
        #expect(state.quote == nil && state.ticks.number == 0 && state.failure == PriceState.empty().failure)
        // The next one sends a new request.
        async let answer = world.engine.price(.noCache)
        await world.primary.isAsked()
        world.primary.answer("68901.23")
        #expect(try await answer.quote?.value == price("68901.23"))
    }
}

extension Result {
    var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
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
