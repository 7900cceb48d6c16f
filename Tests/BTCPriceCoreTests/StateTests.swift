import Glibc
import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct StateTests {
    private func fetched(_ value: String, at milliseconds: Int64, mark: VenueMark? = nil) -> FetchedPrice {
        let observed = ObservationTime(
            wall: Timestamp(milliseconds: World.start.wall.milliseconds + milliseconds),
            boottime: World.start.boottime + milliseconds)
        return FetchedPrice(
            quote: PriceQuote(
                value: price(value), currency: "USD", timestamp: observed.wall, source: "coinbase", market: "BTC/USD"),
            observed: observed, mark: mark)
    }

    private func machine() -> PriceStateMachine {
        PriceStateMachine(
            interval: .seconds(1), judge: PriceJudge(rules: JudgementRules(), judgement: .ofToday))
    }

    private func evidence(
        _ value: String, at milliseconds: Int64, mark: VenueMark? = nil
    ) -> Result<PriceEvidence, FetchFailure> {
        .success(PriceEvidence(price: fetched(value, at: milliseconds, mark: mark)))
    }

    @Test func `a fresh state is stale two intervals after its price, and says so`() {
        var machine = self.machine()
        let state = machine.fetched(evidence("68901.23", at: 0), isTick: true, at: World.start.boottime).publish
        #expect(state?.told(at: World.start.boottime + 2000).freshness == .fresh)
        let aged = state?.told(at: World.start.boottime + 2001)
        #expect(aged?.freshness == .stale)
        #expect(aged?.failure != nil)
        #expect(aged?.quote == state?.quote)
    }

    @Test func `what is shown is saved before`() {
        var machine = self.machine()
        let actions = machine.fetched(evidence("68901.23", at: 0), isTick: true, at: World.start.boottime)
        #expect(actions.save?.quote == actions.publish?.quote)
        let failed = machine.fetched(.failure(FetchFailure(failures: [])), isTick: true, at: World.start.boottime)
        #expect(failed.save == nil)
        #expect(failed.publish?.quote == actions.publish?.quote)
    }

    @Test func `staleness is told once, recovery with the count`() {
        var machine = self.machine()
        let failure = FetchFailure(failures: [SourceFailure(source: "binance", error: .unavailable("HTTP 502"))])
        var told: [PriceEvent] = []
        for _ in 0..<100 { told += machine.fetched(.failure(failure), isTick: true, at: World.start.boottime).events }
        #expect(told.filter { if case .becameStale = $0 { true } else { false } }.count == 1)
        let back = machine.fetched(evidence("68901.23", at: 0), isTick: true, at: World.start.boottime).events
        #expect(back == [.becameFresh(fetched("68901.23", at: 0).quote, failedTicks: 100)])
    }

    @Test func `a fetch that was given up changes nothing`() {
        var machine = self.machine()
        _ = machine.fetched(evidence("68901.23", at: 0), isTick: true, at: World.start.boottime)
        let before = machine.state
        let actions = machine.fetched(.failure(.cancelled), isTick: true, at: World.start.boottime)
        #expect(actions.publish == nil && actions.save == nil && actions.events.isEmpty)
        #expect(machine.state == before)
    }

    @Test func `marks are kept with the price and taken over at a start`() {
        let mark = VenueMark(time: Timestamp(milliseconds: 17), trade: 4)
        var machine = self.machine()
        let save = machine.fetched(evidence("68901.23", at: 0, mark: mark), isTick: true, at: World.start.boottime).save
        #expect(save?.marks == ["coinbase": mark])
        var restarted = self.machine()
        guard let save else { return }
        let shown = restarted.restored(save, at: World.start).publish
        #expect(restarted.marks == ["coinbase": mark])
        #expect(shown?.freshness == .stale)
        #expect(shown?.quote == save.quote)
    }

    @Test func `a converted price is compared, after a restart, as the market gave it`() throws {
        var machine = PriceStateMachine(interval: .seconds(1), rules: JudgementRules(tether: .convert))
        let conversion = Conversion(
            value: price("68900"), rate: price("0.95"), sources: ["coinbase"],
            measuredBoottime: World.start.boottime)
        let kept = CachedPrice(
            quote: cached("65455").quote, observedBoottime: World.start.boottime, conversion: conversion)
        #expect(machine.restored(kept, at: World.start).publish?.conversion == conversion)
        #expect(machine.judgement.index?.log == price("68900").logarithm)
        // Of one of another boot only the wall clock knows the age, which may be wrong: it is never of this moment.
        var rebooted = PriceStateMachine(interval: .seconds(1))
        _ = rebooted.restored(cached("65455", age: .seconds(-3600)), at: World.start)
        #expect(rebooted.judgement.index?.at == World.start.boottime - 60_000)
    }

    @Test func `an age is exact on the boot clock, an estimate on the wall clock, and never negative`() {
        let now = ObservationTime(
            wall: Timestamp(milliseconds: World.start.wall.milliseconds + 1500), boottime: World.start.boottime + 1500)
        var machine = self.machine()
        let fresh = machine.fetched(evidence("68901.23", at: 0), isTick: true, at: World.start.boottime).publish
        #expect(fresh?.age(at: now)?.age == .milliseconds(1500))
        #expect(fresh?.age(at: now)?.isEstimate == false)
        let restored = machine.restored(cached("68000", age: .seconds(10)), at: World.start).publish
        #expect(restored?.age(at: now)?.age == .milliseconds(11_500))
        #expect(restored?.age(at: now)?.isEstimate == true)
        // The wall clock was set back by a day since.
        let past = ObservationTime(
            wall: Timestamp(milliseconds: World.start.wall.milliseconds - 86_400_000), boottime: 0)
        #expect(restored?.age(at: past)?.age == .zero)
        #expect(PriceState.empty.age(at: now) == nil)
    }
}

@Suite struct QuoteCheckTests {
    @Test(arguments: ["0", "-1", "0.99", "100000000.01", "850867136053.72"])
    func `what can't be a price is refused`(value: String) {
        #expect(throws: PriceLoadingError.self) {
            try QuoteCheck.judge(
                LoadedPrice(value: price(value)), after: nil, at: World.start.wall, oldest: .seconds(60))
        }
    }

    @Test(arguments: ["1", "611.78", "68901.23", "99999999.99999999"])
    func `real prices pass`(value: String) {
        #expect(throws: Never.self) {
            try QuoteCheck.judge(
                LoadedPrice(value: price(value)), after: nil, at: World.start.wall, oldest: .seconds(60))
        }
    }

    @Test func `an answer from before the last one is stale, by time first`() {
        let last = VenueMark(time: Timestamp(milliseconds: 1000), trade: 50)
        func judge(_ mark: VenueMark) -> PriceLoadingError? {
            do {
                try QuoteCheck.judge(
                    LoadedPrice(value: 68901, mark: mark), after: last, at: Timestamp(milliseconds: 2000),
                    oldest: .seconds(60))
                return nil
            } catch {
                return error
            }
        }
        #expect(judge(VenueMark(time: Timestamp(milliseconds: 999), trade: 51))?.kind == "stale-data")
        #expect(judge(VenueMark(time: Timestamp(milliseconds: 1000), trade: 50)) == nil)
        #expect(judge(VenueMark(time: Timestamp(milliseconds: 1001), trade: 1)) == nil, "the trade numbers began anew")
        #expect(judge(VenueMark(trade: 49))?.kind == "stale-data")
        #expect(judge(VenueMark()) == nil)
    }

    @Test func `a price that is old by its own time is stale`() {
        let now = Timestamp(milliseconds: 10_000_000)
        func age(_ seconds: Int64, oldest: Duration = .seconds(60)) -> PriceLoadingError? {
            let mark = VenueMark(time: Timestamp(milliseconds: now.milliseconds - seconds * 1000))
            do throws(PriceLoadingError) {
                try QuoteCheck.judge(LoadedPrice(value: 68901, mark: mark), after: nil, at: now, oldest: oldest)
                return nil
            } catch {
                return error
            }
        }
        #expect(age(60) == nil)
        #expect(age(61)?.kind == "stale-data")
        #expect(age(3600)?.kind == "stale-data")
        #expect(age(300, oldest: .seconds(600)) == nil, "a market that trades rarely")
        #expect(age(-3600) == nil, "ahead is not old")
    }

    @Test func `a mark from the future is remembered as the present`() {
        let now = Timestamp(milliseconds: 1_000_000)
        func mark(_ time: Int64) -> VenueMark? {
            QuoteCheck.mark(
                of: LoadedPrice(value: 1, mark: VenueMark(time: Timestamp(milliseconds: time), trade: 5)),
                acceptedAt: now)
        }
        #expect(mark(999_999)?.time == Timestamp(milliseconds: 999_999))
        #expect(mark(1_055_000) == VenueMark(time: now, trade: 5))
        #expect(QuoteCheck.mark(of: LoadedPrice(value: 1), acceptedAt: now) == nil)
    }
}

@Suite struct VenueClockTests {
    private func told(_ errors: [Int64]) -> Int64 {
        let clocks = VenueClocks()
        for (index, error) in errors.enumerated() {
            clocks.told(
                Timestamp(milliseconds: World.start.wall.milliseconds + error), by: "venue \(index)", at: World.start)
        }
        return clocks.wallTime(at: World.start).milliseconds - World.start.wall.milliseconds
    }

    @Test(
        arguments: [
            ([], 0), ([3_600_000], 3_600_000), ([0, 3_600_000], 0), ([3_600_000, 0, 3_600_500], 3_600_000),
            ([0, 0, -86_400_000], 0), ([900, 300], 300),
        ] as [([Int64], Int64)])
    func `our clock is wrong if most venues say so`(errors: [Int64], expected: Int64) {
        #expect(told(errors) == expected)
    }

    @Test func `what was told stays right if our clock is set`() {
        let clocks = VenueClocks()
        clocks.told(World.start.wall, by: "coinbase", at: World.start)
        let set = ObservationTime(
            wall: Timestamp(milliseconds: World.start.wall.milliseconds - 3_590_000),
            boottime: World.start.boottime + 10_000)
        #expect(clocks.wallTime(at: set).milliseconds == World.start.wall.milliseconds + 10_000)
    }

    @Test func `a market that trades rarely may have an older price`() {
        let clocks = VenueClocks()
        #expect(clocks.oldest(of: "kraken") == .seconds(60))
        clocks.saw(VenueMark(time: Timestamp(milliseconds: 0), trade: 10), of: "kraken")
        clocks.saw(VenueMark(time: Timestamp(milliseconds: 60_000), trade: 13), of: "kraken")
        #expect(clocks.oldest(of: "kraken") == .seconds(200))
        clocks.saw(VenueMark(time: Timestamp(milliseconds: 90_000_000), trade: 14), of: "kraken")
        #expect(clocks.oldest(of: "kraken") == .seconds(3000))
        clocks.saw(VenueMark(time: Timestamp(milliseconds: .max / 2), trade: .max), of: "kraken")
        clocks.saw(VenueMark(time: Timestamp(milliseconds: .max / 2 + 1), trade: .min), of: "kraken")
        #expect(clocks.oldest(of: "kraken") >= .seconds(60))
    }
}

@Suite struct ClockTests {
    @Test func `the machine's boot clock is CLOCK_BOOTTIME`() {
        func boottime() -> Int64 {
            var time = timespec()
            clock_gettime(CLOCK_BOOTTIME, &time)
            return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
        }
        let before = boottime()
        let now = ObservationTime.now().boottime
        #expect((before...boottime()).contains(now))
    }
}
