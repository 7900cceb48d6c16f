import TestSupport
import Testing

@testable import BTCPriceCore

@Suite(.timeLimit(.minutes(1))) struct KeeperTests {
    @Test func `clients and the tick share one fetch`() async throws {
        let world = World()
        await world.ticker.start()
        await world.primary.isAsked()
        async let first = world.getPrice.execute(.remoteFirst)
        async let second = world.getPrice.execute(.noCache)
        while await world.keeper.callersWaiting < 3 { await Task.yield() }
        world.primary.answer("68901.23")
        #expect(try await first.quote?.value == price("68901.23"))
        #expect(try await second.quote?.value == price("68901.23"))
        #expect(world.primary.asks == 1)
        await world.ticker.stop()
    }

    @Test func `a thousand callers make one fetch`() async {
        let world = World()
        let callers = (0..<1000).map { _ in Task { try await world.getPrice.execute(.remoteFirst) } }
        await world.primary.isAsked()
        while await world.keeper.callersWaiting < callers.count { await Task.yield() }
        world.primary.answer("68901.23")
        for caller in callers { #expect(await caller.result.failure == nil) }
        #expect(world.primary.asks == 1)
    }

    @Test func `localFirst asks nobody while something is held`() async throws {
        let world = World()
        await world.keeper.restore(cached("68000"))
        let state = try await world.getPrice.execute()
        #expect(state.quote?.value == price("68000"))
        #expect(state.freshness == .stale)
        #expect(world.primary.asks == 0)
    }

    @Test func `localFirst fetches where nothing is held`() async throws {
        let world = World()
        async let answer = world.getPrice.execute(.localFirst)
        await world.primary.isAsked()
        world.primary.answer("68901.23")
        #expect(try await answer.freshness == .fresh)
    }

    @Test func `remoteFirst gives what is held where the fetch fails, and says why`() async throws {
        let world = World()
        await world.keeper.restore(cached("68000"))
        async let answer = world.getPrice.execute(.remoteFirst)
        await world.primary.isAsked()
        world.primary.fail(.refused("HTTP 451"))
        await world.fallback.isAsked()
        world.fallback.fail(.rateLimited("HTTP 429", retryAfter: .seconds(30)))
        let state = try await answer
        #expect(state.quote?.value == price("68000"))
        #expect(state.freshness == .stale)
        #expect(state.failure == "binance: refused: HTTP 451; coinbase: rate limited for 30 s: HTTP 429")
    }

    @Test func `noCache fails where the fetch fails, and takes nothing away`() async throws {
        let world = World()
        await world.ticker.start()
        await world.primary.isAsked()
        world.primary.answer("68901.23")
        _ = await world.nextTick()
        let answer = Task { try await world.getPrice.execute(.noCache) }
        await world.primary.isAsked()
        world.primary.fail()
        await world.fallback.isAsked()
        world.fallback.fail()
        #expect(await answer.result.failure is FetchFailure)
        #expect(await world.keeper.state.freshness == .fresh, "the last tick has a value")
        await world.ticker.stop()
    }

    @Test func `a refresh is kept and shown to callers, and is no tick`() async throws {
        let world = World()
        async let answer = world.getPrice.execute(.remoteFirst)
        await world.primary.isAsked()
        world.primary.answer("68901.23")
        let state = try await answer
        #expect(state.tick == 0)
        #expect(world.store.price?.quote.value == price("68901.23"))
    }

    @Test func `a caller that gives up leaves the fetch to the others`() async throws {
        let world = World()
        let impatient = Task { try await world.getPrice.execute(.noCache) }
        await world.primary.isAsked()
        async let patient = world.getPrice.execute(.noCache)
        while await world.keeper.callersWaiting < 2 { await Task.yield() }
        impatient.cancel()
        while await world.keeper.callersWaiting > 1 { await Task.yield() }
        world.primary.answer("68901.23")
        #expect(try await patient.quote?.value == price("68901.23"))
        #expect(world.primary.asks == 1)
        let failure = await impatient.result.failure as? FetchFailure
        #expect(failure == .cancelled)
    }

    @Test func `a fetch that nobody waits for is cancelled, starts no fallback, and counts as no failure`() async {
        let world = World()
        let task = Task { try await world.getPrice.execute(.noCache) }
        await world.primary.isAsked()
        task.cancel()
        _ = await task.result
        #expect(world.fallback.asks == 0)
        #expect(world.events.all.isEmpty)
        #expect(await world.keeper.state == .empty)
    }

    @Test func `after a fetch was given up, the next one asks anew`() async throws {
        let world = World()
        let task = Task { try await world.getPrice.execute(.noCache) }
        await world.primary.isAsked()
        task.cancel()
        _ = await task.result
        async let answer = world.getPrice.execute(.noCache)
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
