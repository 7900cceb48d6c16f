import Glibc
import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct StateTests {
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

@Suite struct ResponseCheckTests {
    @Test func `a response older than the last one is stale, compared by time first`() {
        let last = FeedPosition(time: Timestamp(milliseconds: 1000), sequence: 50)
        func judge(_ mark: FeedPosition) -> PriceLoadingError? {
            do {
                try ResponseCheck.check(
                    LoadedPrice(.coinbase, 68901, position: mark), in: .usd, after: last,
                    at: Timestamp(milliseconds: 2000),
                    oldest: .seconds(60))
                return nil
            } catch {
                return error
            }
        }
        #expect(judge(FeedPosition(time: Timestamp(milliseconds: 999), sequence: 51))?.kind == "stale-data")
        #expect(judge(FeedPosition(time: Timestamp(milliseconds: 1000), sequence: 50)) == nil)
        #expect(
            judge(FeedPosition(time: Timestamp(milliseconds: 1001), sequence: 1)) == nil, "the trade numbers began anew"
        )
        #expect(judge(FeedPosition(sequence: 49))?.kind == "stale-data")
        #expect(judge(FeedPosition()) == nil)
    }

    @Test func `a price that is old by its own time is stale`() {
        let now = Timestamp(milliseconds: 10_000_000)
        func age(_ seconds: Int64, oldest: Duration = .seconds(60)) -> PriceLoadingError? {
            let mark = FeedPosition(time: Timestamp(milliseconds: now.milliseconds - seconds * 1000))
            do throws(PriceLoadingError) {
                try ResponseCheck.check(
                    LoadedPrice(.coinbase, 68901, position: mark), in: .usd, after: nil, at: now, oldest: oldest)
                return nil
            } catch {
                return error
            }
        }
        #expect(age(60) == nil)
        #expect(age(61)?.description.hasSuffix("its price is 61 s old by the exchange's own time") == true)
        #expect(age(61)?.kind == "stale-data")
        #expect(age(3600)?.kind == "stale-data")
        #expect(age(300, oldest: .seconds(600)) == nil, "a market that trades rarely")
        #expect(age(-3600) == nil, "ahead is not old")
    }

    @Test func `a position from the future is stored as the present`() {
        let now = Timestamp(milliseconds: 1_000_000)
        func mark(_ time: Int64) -> FeedPosition? {
            ResponseCheck.position(
                of: LoadedPrice(
                    .coinbase, 1, position: FeedPosition(time: Timestamp(milliseconds: time), sequence: 5)),
                acceptedAt: now)
        }
        #expect(mark(999_999)?.time == Timestamp(milliseconds: 999_999))
        #expect(mark(1_055_000) == FeedPosition(time: now, sequence: 5))
        #expect(ResponseCheck.position(of: LoadedPrice(.coinbase, 1), acceptedAt: now) == nil)
    }
}

@Suite struct VenueClockTests {
    private func told(_ errors: [Int64]) -> Int64 {
        var clocks = VenueClocks()
        for second in [-1000, 0] {
            for (index, error) in errors.enumerated() {
                clocks.record(
                    Timestamp(milliseconds: World.start.wall.milliseconds + error + Int64(second)),
                    of: "venue \(index)",
                    at: ObservationTime(wall: World.start.wall, boottime: World.start.boottime + Int64(second)))
            }
        }
        return clocks.wallTime(at: World.start).milliseconds - World.start.wall.milliseconds
    }

    @Test(
        arguments: [
            ([], 0), ([3_600_000], 3_600_000), ([0, 3_600_000], 0), ([3_600_000, 0, 3_600_500], 3_600_000),
            ([0, 0, -86_400_000], 0), ([900, 300], 300),
        ] as [([Int64], Int64)])
    func `our clock is wrong if most venues disagree with it`(errors: [Int64], expected: Int64) {
        #expect(told(errors) == expected)
    }

    @Test func `one venue overrules our clock only while its own advances`() {
        var clocks = VenueClocks()
        func wall(after second: Int64, says time: Int64, cacheTime: Duration = .zero) -> Int64 {
            let now = World.start.advanced(by: .seconds(second))
            clocks.record(
                Timestamp(milliseconds: World.start.wall.milliseconds + time * 1000), of: "coinbase",
                cacheTime: cacheTime, at: now)
            return (clocks.wallTime(at: now).milliseconds - World.start.wall.milliseconds) / 1000
        }
        // Three hours behind: accepted from the second response on.
        #expect(wall(after: 0, says: -10_800) == 0)
        for second in 1...200 as ClosedRange<Int64> {
            #expect(wall(after: second, says: second - 10_800) == second - 10_800)
        }
        // From then on the responses come from a cache.
        for second in 201...260 as ClosedRange<Int64> {
            let seen = wall(after: second, says: -10_600)
            #expect(clocks.stands("coinbase") == (second > 202) && (second <= 202 || seen == second))
        }
        // A venue whose responses are cached for 10 s does not count as stopped.
        clocks = VenueClocks()
        for second in 0...60 as ClosedRange<Int64> {
            _ = wall(after: second, says: second / 10 * 10, cacheTime: .seconds(10))
            #expect(!clocks.stands("coinbase"))
        }
    }

    @Test func `a price without a time is refused if it comes from a cache`() throws {
        var (book, clocks) = (ObservationBook(currency: .usd), VenueClocks())
        for second in 0...9 as ClosedRange<Int64> {
            let now = World.start.advanced(by: .seconds(second))
            let loaded = [LoadedPrice(.binance, 68_900, venueClock: World.start.wall)]
            clocks.record(World.start.wall, of: "binance", at: now)
            do throws(PriceLoadingError) {
                try book.record(loaded, of: .binance, clocks: clocks, at: now)
                #expect(second <= 2)
            } catch {
                #expect(second > 2 && error.category == .staleData)
            }
        }
    }

    @Test func `a reported time stays correct if our clock is set`() {
        var clocks = VenueClocks()
        clocks.record(World.start.wall, of: "coinbase", at: World.start)
        clocks.record(
            Timestamp(milliseconds: World.start.wall.milliseconds + 1000), of: "coinbase",
            at: ObservationTime(wall: World.start.wall, boottime: World.start.boottime + 1000))
        let set = ObservationTime(
            wall: Timestamp(milliseconds: World.start.wall.milliseconds - 3_590_000),
            boottime: World.start.boottime + 10_000)
        #expect(clocks.wallTime(at: set).milliseconds == World.start.wall.milliseconds + 10_000)
    }

    /// - Parameter errors: What each venue's clock says minus this machine's, seconds.
    @Test(
        arguments: [
            ([], "unknown"), ([0], "agrees"), ([7200], "unknown"), ([59, -59], "agrees"), ([3600, 3600], "differs"),
            ([3600, 0], "agrees"), ([0, 0, 9999], "agrees"), ([-900, -901, 0], "differs"),
            ([-900, 300, 0], "unknown"),
            ([86_400, 86_401, 86_399, 0], "differs"), ([3600, 3600, 0, 0], "agrees"),
        ] as [([Int64], String)])
    func `this machine's clock is wrong if most of at least two venues agree on another time, and it is a witness`(
        errors: [Int64], expected: String
    ) {
        var clocks = VenueClocks()
        for (number, error) in errors.enumerated() {
            clocks.record(World.start.wall.advanced(by: .seconds(error)), of: "\(number)", at: World.start)
        }
        switch clocks.comparison(at: World.start) {
        case .unknown: #expect(expected == "unknown")
        case .agrees: #expect(expected == "agrees")
        case .differs(let difference):
            #expect(expected == "differs" && errors.contains(difference.milliseconds / 1000))
        }
        // This machine's clock is set; the venues' stay known, since the boot clock was not.
        let set = ObservationTime(
            wall: World.start.wall.advanced(by: .seconds(errors.first ?? 0)), boottime: World.start.boottime)
        if errors.count == 2, expected == "differs" { #expect(clocks.comparison(at: set) == .agrees) }
    }

    @Test func `old times count only while no two newer ones are known`() {
        var clocks = VenueClocks()
        for venue in ["a", "b", "c"] { clocks.record(World.start.wall, of: venue, at: World.start) }
        // The machine was stopped for a day, and so was its boot clock.
        let later = World.start.advanced(by: .seconds(180))
        let day = later.wall.advanced(by: .seconds(86_400))
        clocks.record(day, of: "a", at: later)
        #expect(clocks.comparison(at: later) == .agrees)
        clocks.record(day, of: "b", at: later)
        #expect(
            clocks.comparison(at: later)
                == .differs(ClockDifference(milliseconds: 86_400_000, venues: 2, known: 2)))
    }

    @Test func `an exchange that was removed has no vote about the time, and no position`() throws {
        var (book, clocks) = (ObservationBook(currency: .usd), VenueClocks())
        func record(_ market: Market, ahead milliseconds: Int64) throws(PriceLoadingError) {
            let time = Timestamp(milliseconds: World.start.wall.milliseconds + milliseconds)
            let price = LoadedPrice(market, 68_900, position: FeedPosition(time: time, sequence: 1), venueClock: time)
            clocks.record(time, of: market.venue, at: World.start)
            try book.record([price], of: market, clocks: clocks, at: World.start)
        }
        try record(.coinbase, ahead: 3_600_000)
        try record(.kraken, ahead: 3_600_000)
        #expect(throws: PriceLoadingError.self) { try record(.binance, ahead: 0) }
        book.keep(only: [.binance: MarketAddress(host: "https://binance", path: "/t")], interval: 1000)
        clocks.keep(only: ["binance"])
        try record(.binance, ahead: 0)
        #expect(book.positions.map(\.market) == [.binance])
    }

    @Test func `trade numbers that begin again are refused for a minute, and not at another address`() throws {
        var book = ObservationBook(currency: .usd)
        func numbers(_ sequence: Int64, at second: Int64) -> Bool {
            let price = LoadedPrice(.kraken, 68_900, position: FeedPosition(sequence: sequence))
            return (try? book.record([price], of: .kraken, at: World.start.advanced(by: .seconds(second)))) != nil
        }
        book.keep(only: [.kraken: MarketAddress(host: "https://a", path: "/t")], interval: 1000)
        #expect(numbers(1_000_000, at: 0))
        #expect(!numbers(5, at: 1) && !numbers(60, at: 60))
        #expect(numbers(61, at: 61) && !numbers(60, at: 62))
        book.keep(only: [.kraken: MarketAddress(host: "https://a", path: "/u")], interval: 1000)
        #expect(numbers(5, at: 63))
        // Over a restart: at the same address, at another one, and of a version that did not store it.
        let kept = book.positions
        #expect(kept == [KeptPosition(.kraken, FeedPosition(sequence: 5), address: "https://a")])
        for (address, isRefused) in [("https://a", true), ("https://c", false)] {
            book = ObservationBook(currency: .usd)
            book.keep(only: [.kraken: MarketAddress(host: address, path: "/t")], interval: 1000)
            book.restore(kept, at: World.start.boottime)
            #expect(numbers(4, at: 1) != isRefused)
        }
        book = ObservationBook(currency: .usd)
        book.keep(only: [.kraken: MarketAddress(host: "https://b", path: "/t")], interval: 30_000)
        book.restore([KeptPosition(.kraken, FeedPosition(sequence: 5))], at: World.start.boottime)
        // With long intervals, for three of them.
        #expect(!numbers(4, at: 90) && numbers(4, at: 91))
    }

    @Test func `what was learned of a market is forgotten with its address`() throws {
        let rounds = Rounds([.coinbase, .bitstamp], belief: Belief())
        let addresses: [Market: MarketAddress] = [
            .coinbase: MarketAddress(host: "https://a", path: "/t"),
            .bitstamp: MarketAddress(host: "https://b", path: "/t"),
        ]
        rounds.tracker.changed(interval: .seconds(1), rules: SelectionRules(), addresses: addresses)
        for second in 0..<10 {
            rounds.prices = [.coinbase: "68900.\(second + 10)", .bitstamp: "68960.\(second + 10)"]
            rounds.observe(.bitstamp, at: Double(second) + 0.5)
            _ = rounds.tick(at: Double(second) + 1)
        }
        let stored = rounds.tracker.kept
        let kept = try #require(stored)
        #expect(kept.learned?.map(\.market) == [.bitstamp, .coinbase])
        rounds.tracker.changed(
            interval: .seconds(1), rules: SelectionRules(),
            addresses: [
                .coinbase: MarketAddress(host: "https://a", path: "/t"),
                .bitstamp: MarketAddress(host: "https://c", path: "/t"),
            ])
        #expect(rounds.belief.bases[.bitstamp] == nil && rounds.belief.bases[.coinbase] != nil)
        #expect(rounds.tracker.book.newest(.bitstamp) == nil)
    }

    @Test func `a market that trades rarely may have an older price`() {
        var gaps = TradeGaps()
        #expect(gaps.oldest == .seconds(60))
        gaps.record(FeedPosition(time: Timestamp(milliseconds: 0), sequence: 10))
        gaps.record(FeedPosition(time: Timestamp(milliseconds: 60_000), sequence: 13))
        #expect(gaps.oldest == .seconds(200))
        gaps.record(FeedPosition(time: Timestamp(milliseconds: 90_000_000), sequence: 14))
        #expect(gaps.oldest == .seconds(3000))
        gaps.record(FeedPosition(time: Timestamp(milliseconds: .max / 2), sequence: .max))
        gaps.record(FeedPosition(time: Timestamp(milliseconds: .max / 2 + 1), sequence: .min))
        #expect(gaps.oldest >= .seconds(60))
        // Two times are enough.
        var times = TradeGaps()
        times.record(FeedPosition(time: Timestamp(milliseconds: 0)))
        times.record(FeedPosition(time: Timestamp(milliseconds: 15_000)))
        #expect(times.oldest == .seconds(150))
    }

    @Test func `a market that trades rarely is as young as the last change of its quotes`() throws {
        var book = ObservationBook(currency: .usd)
        let trade = FeedPosition(time: World.start.wall)
        func age(at seconds: Double, bid: String) throws(PriceLoadingError) -> Int64? {
            try book.record(
                [
                    LoadedPrice(
                        .coinbase, 68_900, position: trade,
                        quotes: LoadedQuotes(bid: price(bid), ask: 68_910))
                ], of: .coinbase, at: Rounds.time(seconds)
            ).age
        }
        #expect(try age(at: 30, bid: "68890") == 30_000)
        #expect(try age(at: 40, bid: "68891") == 0)
        #expect(try age(at: 90, bid: "68891") == 50_000, "older than a minute, and its quotes are not")
        #expect(throws: PriceLoadingError.self) { try age(at: 101, bid: "68891") }
    }

    @Test func `a time in the future is no time, which is told once, and its price is in doubt`() throws {
        let rounds = Rounds([.coinbase])
        for second in 1...70 {
            rounds.prices = [.coinbase: "68900"]
            rounds.positions[.coinbase] = FeedPosition(
                time: Timestamp(milliseconds: World.start.wall.milliseconds + 9 * 3_600_000), sequence: 7)
            #expect(rounds.tick(at: Double(second))?.confirmation == .unconfirmed)
            #expect(
                rounds.tracker.isNewlyAhead(.coinbase, at: Rounds.time(Double(second)).boottime) == (second == 6))
        }
        #expect(rounds.tracker.book.newest(.coinbase)?.position == FeedPosition(sequence: 7))
        rounds.positions[.coinbase] = FeedPosition(
            time: Timestamp(milliseconds: World.start.wall.milliseconds + 80_000), sequence: 8)
        _ = rounds.tick(at: 71)
        #expect(
            !rounds.tracker.isNewlyAhead(.coinbase, at: Rounds.time(71).boottime)
                && rounds.tracker.book.newest(.coinbase)?.age == 0)
    }
}

@Suite struct ClockTests {
    @Test func `the machine's boot clock is CLOCK_BOOTTIME`() {
        func boottime() -> BootTime {
            var time = timespec()
            clock_gettime(CLOCK_BOOTTIME, &time)
            return BootTime(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
        }
        let before = boottime()
        let now = ObservationTime.now().boottime
        #expect((before...boottime()).contains(now))
    }
}
