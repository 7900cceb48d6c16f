import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct PriceTrackerTests {
    private func time(_ milliseconds: Int64) -> ObservationTime {
        World.start.advanced(by: .milliseconds(milliseconds))
    }

    private func tracker() -> PriceTracker { PriceTracker(.usd, interval: .seconds(1), belief: .ofToday) }

    /// A tick with a price from Coinbase.
    private func tick(
        _ tracker: inout PriceTracker, _ value: String, at milliseconds: Int64 = 0,
        position: FeedPosition = FeedPosition()
    ) throws -> PriceTracker.Actions {
        var round = tracker.round(
            at: World.start.boottime + milliseconds, markets: [.binance, .coinbase])
        round.end()
        try tracker.record(
            [LoadedPrice(.coinbase, price(value), position: position)], of: .coinbase, pace: .zero,
            at: time(milliseconds))
        tracker.add(PollResult(answered: [.coinbase]), to: &round)
        guard case .decided(let decision, let belief) = tracker.select(round) else {
            Issue.record("no decision")
            return PriceTracker.Actions()
        }
        return tracker.decided(decision, belief, in: round, isTick: true)
    }

    @Test func `a fresh state becomes stale two intervals after its price, and has this time`() throws {
        var tracker = self.tracker()
        let state = try tick(&tracker, "68901.23").publish
        #expect(state?.aged(at: World.start.boottime + 2000).freshness == .fresh)
        let aged = state?.aged(at: World.start.boottime + 2001)
        #expect(aged?.freshness == .stale)
        #expect(aged?.failure == "no tick has finished in time since this price")
        #expect(aged?.quote == state?.quote)
    }

    @Test func `the stored price is the shown one`() throws {
        var tracker = self.tracker()
        let actions = try tick(&tracker, "68901.23")
        #expect(tracker.kept?.quote == actions.publish?.quote)
        let kept = tracker.kept
        let failed = tracker.failed(FetchFailure(failures: []), isTick: true, at: World.start.boottime)
        #expect(tracker.kept == kept)
        #expect(failed.publish?.quote == actions.publish?.quote)
    }

    @Test func `staleness is reported once, recovery with the count`() throws {
        var tracker = self.tracker()
        let failure = FetchFailure(failures: [SourceFailure(source: "binance", error: .unavailable("HTTP 502"))])
        var events: [PriceEvent] = []
        for _ in 0..<100 { events += tracker.failed(failure, isTick: true, at: World.start.boottime).events }
        #expect(events.filter { if case .becameStale = $0 { true } else { false } }.count == 1)
        var back = try tick(&tracker, "68901.23")
        // It is the first price.
        #expect(back.events == [.becameFresh(try #require(back.publish?.quote), failedTicks: 0)])
        for _ in 0..<100 { _ = tracker.failed(failure, isTick: true, at: World.start.boottime) }
        back = try tick(&tracker, "68901.23")
        #expect(back.events == [.becameFresh(try #require(back.publish?.quote), failedTicks: 100)])
    }

    @Test func `a pause goes to all watchers, and is no tick`() throws {
        var tracker = self.tracker()
        #expect(try tick(&tracker, "68901.23").publication == .tick)
        let pause = tracker.paused()
        #expect(pause.publication == .pause && pause.publication.isForAllWatchers)
        #expect(pause.publish?.ticks.number == 1)
        #expect(tracker.resumed().publication == .change)
    }

    @Test func `a cancelled round changes nothing`() throws {
        var tracker = self.tracker()
        _ = try tick(&tracker, "68901.23")
        let before = tracker.state
        let actions = tracker.failed(.cancelled, isTick: true, at: World.start.boottime)
        #expect(actions.publish == nil && actions.events.isEmpty)
        #expect(tracker.state == before)
    }

    @Test func `positions and bases are stored with the price and restored at a start`() throws {
        let position = FeedPosition(time: World.start.wall, sequence: 4)
        var tracker = self.tracker()
        _ = try tick(&tracker, "68901.23", at: 5000, position: position)
        let stored = tracker.kept
        let kept = try #require(stored)
        #expect(kept.positions == [KeptPosition(.coinbase, position)])
        let bases = try #require(kept.learned)
        #expect(bases.map(\.market) == [.binance, .coinbase])
        #expect(bases[0].age == 5000)
        var restarted = PriceTracker(.usd, interval: .seconds(1))
        let shown = restarted.restored(kept, at: time(6000)).publish
        #expect(restarted.book.positions == [KeptPosition(.coinbase, position)])
        #expect(restarted.belief.bases[.binance]?.at == World.start.boottime)
        #expect(shown?.freshness == .stale)
        #expect(shown?.quote == kept.quote)
        // With a position from the future, every later one would look old.
        var early = PriceTracker(.usd, interval: .seconds(1))
        _ = early.restored(kept, at: time(-1))
        #expect(early.book.positions.isEmpty)
        // A day later the bases of the markets are out of date.
        var late = PriceTracker(.usd, interval: .seconds(1))
        _ = late.restored(kept, at: time(86_500_000))
        #expect(late.belief.bases[.binance] == nil)
    }

    @Test func `after a restart a converted price is compared in its market's unit`() throws {
        let rules = SelectionRules(peg: .convert)
        var tracker = PriceTracker(.usd, interval: .seconds(1), rules: rules)
        let conversion = Conversion(
            value: price("68900"), rate: price("0.95"), sources: ["coinbase"],
            measuredBoottime: World.start.boottime)
        let kept = CachedPrice(
            ShownPrice(cached("65455").quote, observedBoottime: World.start.boottime, conversion: conversion))
        #expect(tracker.restored(kept, at: World.start).publish?.price?.conversion == conversion)
        #expect(tracker.belief.reference?.log == price("68900").logarithm)
        // The age of a price from another boot comes only from the wall clock, which may be wrong. Such a price is never current.
        var rebooted = PriceTracker(.usd, interval: .seconds(1))
        _ = rebooted.restored(cached("65455", age: .seconds(-3600)), at: World.start)
        #expect(rebooted.belief.reference?.at == World.start.boottime - 60_000)
    }

    @Test func `an age is exact on the boot clock, and unknown for a price from an earlier boot`() throws {
        let now = time(1500)
        var tracker = self.tracker()
        let fresh = try tick(&tracker, "68901.23").publish
        #expect(fresh?.age(at: now)?.age == .milliseconds(1500))
        #expect(fresh?.age(at: now)?.isEstimate == false)
        let restored = tracker.restored(cached("68000", age: .seconds(10)), at: World.start).publish
        #expect(restored?.age(at: now) == nil)
        #expect(restored?.isOfUnknownAge == true)
        #expect(restored?.ageByWallClock(at: now) == .milliseconds(11_500))
        // The wall clock has been set back by a day.
        let past = ObservationTime(
            wall: Timestamp(milliseconds: World.start.wall.milliseconds - 86_400_000), boottime: 0)
        #expect(restored?.ageByWallClock(at: past) == .zero)
        // This does not change the age of a live price.
        #expect(fresh?.age(at: ObservationTime(wall: past.wall, boottime: now.boottime))?.age == .milliseconds(1500))
        #expect(fresh?.isOfUnknownAge == false)
        #expect(PriceState.empty().age(at: now) == nil)
        // Another boot's clock, or another machine's.
        let behind = ObservationTime(wall: now.wall, boottime: World.start.boottime - 1000)
        #expect(fresh?.age(at: behind)?.age == .zero)
        #expect(fresh?.age(at: ObservationTime(wall: now.wall, boottime: behind.boottime - 1)) == nil)
    }

    @Test func `a price of unknown age is within no age`() throws {
        var tracker = self.tracker()
        let fresh = try #require(try tick(&tracker, "68901.23").publish)
        let boottime = World.start.boottime
        #expect(fresh.isWithin(1500, at: boottime + 1500) && !fresh.isWithin(1499, at: boottime + 1500))
        let restored = try #require(tracker.restored(cached("68000", age: .seconds(10)), at: World.start).publish)
        #expect(!restored.isWithin(.max, at: boottime))
        #expect(PriceState.empty().isWithin(0, at: boottime), "there is no price that could be too old")
    }

    @Test func `a state says whether the first tick after a start or a pause is still to come`() throws {
        var tracker = self.tracker()
        #expect(tracker.state.ticks.awaitsTick && tracker.state.ticks.ticking == .running)
        #expect(try tick(&tracker, "68901.23").publish?.ticks.awaitsTick == false)
        for ticking in [Ticking.idle, .paused] {
            let state = tracker.paused(ticking).publish
            #expect(state?.ticks.awaitsTick == true && state?.ticks.ticking == ticking && state?.failure == "paused")
        }
        let resumed = tracker.resumed().publish
        #expect(resumed?.ticks.awaitsTick == true && resumed?.ticks.ticking == .running)
    }
}
