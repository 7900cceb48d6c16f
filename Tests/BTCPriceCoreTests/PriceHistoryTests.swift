import Synchronization
import TestSupport
import Testing

@testable import BTCPriceCore

/// Keeps candles in memory.
final class MemoryArchive: CandleArchive {
    func insert(_ minutes: [Candle], of currency: Currency) async throws(HistoryError) {
        try await backfill(minutes, of: currency, .minute)
    }

    private let state = Mutex((kept: [KeptCandle](), filled: [Candle.Step: [Candle]]()))

    /// The candles passed to ``keep(_:)``.
    var kept: [KeptCandle] { state.withLock(\.kept) }
    var filled: [Candle.Step: [Candle]] { state.withLock(\.filled) }

    func forgetHours() { state.withLock { $0.filled[.hour] = nil } }

    /// The times passed to ``settle(at:)``.
    let settled = Log<Int64>()
    func settle(at second: Int64) { settled.add(second) }

    func keep(_ candles: [KeptCandle]) { state.withLock { $0.kept += candles } }

    func note(_ episodes: [Episode]) {}

    func candles(
        of currency: Currency, _ step: Candle.Step, in range: Range<Int64>, limit: Int
    ) async throws(HistoryError) -> [Candle] {
        state.withLock { Array(($0.filled[step] ?? []).filter { range.contains($0.start) }.prefix(limit)) }
    }

    func backfill(_ candles: [Candle], of currency: Currency, _ step: Candle.Step) async throws(HistoryError) {
        state.withLock { state in
            let known = Set((state.filled[step] ?? []).map(\.start))
            let new = candles.filter { !known.contains($0.start) }
            state.filled[step] = ((state.filled[step] ?? []) + new).sorted { $0.start < $1.start }
        }
    }
}

extension PriceHistory {
    /// A history by this machine's clock.
    convenience init(store: any CandleArchive) {
        self.init(
            store: store,
            clock: .confirmed {
                ObservationTime(wall: Timestamp(milliseconds: 1_724_544_000_300), boottime: .boot + 100_000_000)
            })
    }

    /// Adds a state of a currency with one source and a tick a second.
    func add(_ state: PriceState, isTick: Bool, at now: ObservationTime) -> PriceDay? {
        add(state, isTick: isTick, every: .seconds(1), ofSeveral: false, at: now)
    }
}

@Suite struct PriceHistoryTests {
    /// 2024-08-25, midnight UTC.
    private static let midnight: Int64 = 1_724_544_000

    private let archive = MemoryArchive()

    private func state(_ value: String?, of currency: Currency = .usd, isInDoubt: Bool = false) -> PriceState {
        var state = PriceState.empty(of: currency)
        state.standing.isInDoubt = isInDoubt
        guard let value else { return state }
        state.ticks.freshness = .fresh
        state.price = ShownPrice(
            PriceQuote(
                value: price(value), currency: currency.rawValue, timestamp: Timestamp(milliseconds: 0),
                source: "binance", market: "BTC/USDT"))
        return state
    }

    /// A moment on both clocks.
    /// - Parameter boottime: The second since ``midnight`` by the boot clock, if the wall clock was set.
    private func at(_ second: Int64, boottime: Int64? = nil) -> ObservationTime {
        ObservationTime(
            wall: Timestamp(milliseconds: (Self.midnight + second) * 1000 + 300),
            boottime: .boot + ((boottime ?? second) + 100_000) * 1000)
    }

    private func candle(_ minute: Int64, _ open: String, _ close: String, origin: String = Candle.own) -> Candle {
        let (open, close) = (price(open), price(close))
        return Candle(
            start: Self.midnight + minute * 60, open: open, high: max(open, close), low: min(open, close), close: close,
            ticks: 60, fresh: 60, origin: origin)
    }

    @Test func `a minute's candle has the first, highest, lowest and last price, and the share of fresh ticks`() {
        let history = PriceHistory(store: archive)
        for (second, value) in [nil, "100", "120", nil, "90", "110"].enumerated() {
            _ = history.add(state(value), isTick: true, at: at(Int64(second) * 10))
        }
        // A client's fetch extends the candle and does not count as a tick.
        _ = history.add(state("125"), isTick: false, at: at(55))
        #expect(archive.kept.isEmpty)
        #expect(history.unstored(of: .usd).last?.candle.high == price("125"))
        _ = history.add(state("110"), isTick: true, at: at(60))
        var expected = candle(0, "100", "125")
        (expected.low, expected.ticks, expected.fresh) = (price("90"), 6, 4)
        (expected.doubtful, expected.single, expected.covered) = (0, 0, 4)
        #expect(archive.kept == [KeptCandle(.usd, expected, .continues)])
        #expect(
            history.seconds(of: .usd, in: Self.midnight..<Self.midnight + 60).map(\.close)
                == [100, 120, 90, 110, 125].map { Price($0) })
    }

    @Test func `a minute without a price has no candle`() {
        let history = PriceHistory(store: archive)
        _ = history.add(state("100"), isTick: true, at: at(0))
        for second in 60..<120 { _ = history.add(state(nil), isTick: true, at: at(Int64(second))) }
        _ = history.add(state("100"), isTick: true, at: at(120))
        #expect(archive.kept.map(\.candle.start) == [Self.midnight])
        history.close()
        #expect(archive.kept.map(\.candle.start) == [Self.midnight, Self.midnight + 120])
        #expect(archive.kept.map(\.conflict) == [.continues, .keepsOwn])
    }

    @Test func `the minutes of all currencies end together`() {
        let history = PriceHistory(store: archive)
        _ = history.add(state("100"), isTick: true, at: at(0))
        _ = history.add(state("86", of: .eur), isTick: true, at: at(55))
        _ = history.add(state("100"), isTick: true, at: at(60))
        #expect(archive.kept.map(\.currency) == [.eur, .usd])
    }

    @Test func `after the clock is set back a little, the history waits until it has caught up`() {
        let history = PriceHistory(store: archive)
        _ = history.add(state("100"), isTick: true, at: at(65))
        for second in 58..<65 {
            _ = history.add(state("101"), isTick: true, at: at(Int64(second), boottime: Int64(second) + 8))
        }
        _ = history.add(state("102"), isTick: true, at: at(125))
        #expect(archive.kept.map(\.candle.start) == [Self.midnight + 60])
        #expect(archive.kept.map(\.candle.ticks) == [8])
    }

    // MARK: - What is covered

    /// Minutes with a tick at these seconds.
    private func minutes(
        every interval: Int64, _ seconds: some Sequence<Int64>, isFresh: (Int64) -> Bool = { _ in true }
    )
        -> [Candle]
    {
        var (builder, minutes) = (CandleBuilder(), [Candle]())
        for second in seconds {
            if let minute = builder.minute, minute != second / 60 * 60 {
                minutes += [builder.close()].compactMap(\.self)
            }
            builder.add(Sample(currency: .usd, price: isFresh(second) ? 100 : nil, covers: interval), at: second)
        }
        return minutes + [builder.close()].compactMap(\.self)
    }

    @Test func `a good tick covers the time until the next one, at most ten seconds`() {
        #expect(minutes(every: 1, 0..<120).map(\.covered) == [nil, nil])
        #expect(minutes(every: 1, 57..<120).map(\.covered) == [3, nil])
        // An outage in the middle of a minute, and one that leaves five sixths.
        #expect(minutes(every: 1, 0..<60) { !(7..<50).contains($0) }.map(\.covered) == [17])
        #expect(minutes(every: 1, 0..<60) { !(7..<17).contains($0) }.map(\.covered) == [nil])
        #expect(minutes(every: 10, stride(from: 3, to: 120, by: 10)).map(\.covered) == [nil, nil])
        #expect(minutes(every: 10, stride(from: 3, to: 60, by: 20)).map(\.covered) == [30])
        #expect(minutes(every: 60, [5, 65]).map(\.covered) == [10, 10])
        #expect(minutes(every: 60, [55]).map(\.covered) == [5])
        // A tick of another interval after a reload covers nothing twice.
        #expect(minutes(every: 10, [0, 1, 2, 3]).map(\.covered) == [13])
    }

    @Test func `a minute of which too little is known is no known minute of an hour`() {
        var known = (0..<60).map { candle($0, "10", "12") }
        for minute in 0..<11 { known[minute].covered = 20 }
        let hour = hours(known)[0]
        #expect((hour.coveredMinutes, hour.isEnough(.hour)) == (52, true))
        for minute in 11..<30 { known[minute].covered = 3 }
        #expect((hours(known)[0].coveredMinutes, hours(known)[0].isEnough(.hour)) == (34, false))
    }

    @Test func `ticks that only one of several sources gave are counted`() {
        let history = PriceHistory(store: archive)
        for second in 0..<61 as Range<Int64> {
            var state = state("100")
            state.price?.confirmation = second < 20 ? .confirmed : .single
            _ = history.add(state, isTick: true, every: .seconds(1), ofSeveral: true, at: at(second))
        }
        #expect(archive.kept.map(\.candle.single) == [40])
    }

    /// - Parameter known: The stored candle: its origin, the seconds that it covers, and whether it is in doubt.
    @Test(
        arguments: [
            // The rest of a minute, and a minute that would be longer than one.
            (.continues, (Candle.own, 20, false), 30, "10 12 12 10 own nil"),
            (.continues, (Candle.own, 20, false), 20, "10 12 12 10 own 40"),
            (.continues, (Candle.own, 40, false), 30, "stays"), (.continues, (Candle.own, nil, false), 30, "stays"),
            (.continues, (Candle.own, nil, false), 8, "10 12 12 10 own nil"),
            (.continues, (Candle.own, 40, true), 30, "11 12 12 11 own 30"),
            (.continues, ("kraken", nil, false), 30, "9 10 12 9 mixed nil"),
            (.continues, ("kraken", nil, false), nil, "11 12 12 11 own nil"),
            (.keepsOwn, (Candle.own, nil, false), nil, "stays"),
            (.keepsOwn, (Candle.own, nil, true), nil, "11 12 12 11 own nil"),
            (.keepsOwn, ("kraken", nil, false), 30, "9 10 12 9 mixed nil"),
            (.keepsOwn, ("kraken", nil, false), nil, "11 12 12 11 own nil"),
            (.completes, (Candle.own, nil, false), nil, "stays"),
            (.completes, (Candle.own, 20, false), nil, "11 12 12 10 mixed nil"),
            (.completes, (Candle.own, nil, true), nil, "11 12 12 11 mixed nil"),
            (.completes, ("kraken", nil, false), nil, "stays"),
            (.yields, ("kraken", nil, false), nil, "stays"),
            (.replaces, (Candle.own, nil, false), 30, "11 12 12 11 own 30"),
        ] as [(KeptCandle.Conflict, (String, Int64?, Bool), Int64?, String)])
    func `what is stored beside a known minute`(
        conflict: KeptCandle.Conflict, known: (origin: String, covered: Int64?, isInDoubt: Bool), covered: Int64?,
        expected: String
    ) {
        var stored = candle(0, known.origin == Candle.own ? "10" : "9", "10", origin: known.origin)
        stored.covered = known.covered
        if known.isInDoubt { stored.doubtful = stored.fresh }
        var new = candle(0, "11", "12")
        new.covered = covered
        let merged = KeptCandle(.usd, new, conflict).merged(with: stored)
        let text = merged.map {
            "\($0.open) \($0.close) \($0.high) \($0.low) \($0.origin) \($0.covered.map(String.init) ?? "nil")"
        }
        #expect(text ?? "stays" == expected)
    }

    // MARK: - The time by which minutes are kept

    /// A history whose clock no venue has confirmed.
    private func unconfirmed(at start: ObservationTime) -> PriceHistory {
        PriceHistory(store: archive, clock: HistoryClock { start })
    }

    private func differs(by seconds: Int64) -> ClockComparison {
        .differs(ClockDifference(milliseconds: seconds * 1000, venues: 3, known: 4))
    }

    @Test func `a clock that is set without the venues' agreement is not followed`() {
        let history = PriceHistory(store: archive)
        _ = history.add(state("100"), isTick: true, at: at(0))
        for minute in 1..<3 as Range<Int64> {
            _ = history.add(state("100"), isTick: true, at: at(minute * 60 - 86_400, boottime: minute * 60))
        }
        #expect(archive.kept.map(\.candle.start) == [Self.midnight, Self.midnight + 60])
        #expect(archive.settled.all == [Self.midnight])
        // They say that it is right now.
        let now = at(180 - 86_400, boottime: 180)
        history.clock.check(.agrees, at: now)
        let day = history.add(state("200"), isTick: true, at: now)
        #expect(day?.high == 200 && day?.low == 200, "what is later than now is no part of the day")
        #expect(archive.settled.all == [Self.midnight, Self.midnight + 180 - 86_400])
        _ = history.add(state("200"), isTick: true, at: at(240 - 86_400, boottime: 240))
        #expect(archive.kept.suffix(2).map(\.conflict) == [.yields, .continues], "the open minute may be another's")
        #expect(archive.kept.last?.candle.start == Self.midnight + 180 - 86_400)
    }

    @Test(arguments: [-10 * 86_400, 7200, 300_000_000] as [Int64])
    func `minutes are held until the time is known, and then made again under it`(error: Int64) {
        let wrong = { (second: Int64) in at(second + error, boottime: second) }
        let history = unconfirmed(at: wrong(0))
        for second in 0..<150 as Range<Int64> {
            _ = history.add(state("\(100 + second)"), isTick: true, at: wrong(second))
        }
        #expect(archive.kept.isEmpty && archive.settled.all.isEmpty)
        #expect(history.unstored(of: .usd).count == 3)
        history.clock.check(differs(by: -error), at: wrong(150))
        // From here on the time of the venues is used, also after the clock is right.
        _ = history.add(state("250"), isTick: true, at: wrong(150))
        #expect(archive.settled.all == [Self.midnight + 150])
        history.clock.check(.agrees, at: at(151))
        _ = history.add(state("251"), isTick: true, at: at(151))
        _ = history.add(state("300"), isTick: true, at: at(200))
        #expect(archive.kept.map(\.candle.start) == [0, 60, 120].map { Self.midnight + $0 })
        #expect(archive.kept.map(\.candle.open) == [100, 160, 220])
        #expect(archive.kept.map(\.candle.ticks) == [60, 60, 32])
        #expect(archive.kept.map(\.conflict) == [.continues, .keepsOwn, .keepsOwn])
        #expect(archive.kept.allSatisfy { !$0.candle.isInDoubt })
        #expect(history.seconds(of: .usd, in: Self.midnight..<Self.midnight + 2).map(\.close) == [100, 101])
    }

    @Test func `a time that nobody states is used after ten minutes, in doubt`() {
        let history = unconfirmed(at: at(0))
        for second in 0..<600 as Range<Int64> {
            _ = history.add(state("100"), isTick: true, at: at(second))
            // A lone source that contradicts gives no time.
            history.clock.check(.unknown, at: at(second))
        }
        #expect(archive.kept.isEmpty)
        _ = history.add(state("100"), isTick: true, at: at(600))
        _ = history.add(state("100"), isTick: true, at: at(660))
        #expect(archive.kept.count == 11)
        #expect(archive.kept.allSatisfy { $0.candle.isInDoubt && $0.conflict == .yields })
        // Later the time is known, and the minutes are no longer in doubt.
        history.clock.check(.agrees, at: at(661))
        _ = history.add(state("100"), isTick: true, at: at(720))
        #expect(archive.kept.last?.candle.isInDoubt == false && archive.settled.all == [Self.midnight + 720])
    }

    @Test func `the minute that is open when the time turns out to be another one is in doubt, and not continued`() {
        let history = unconfirmed(at: at(7200, boottime: 0))
        for second in 0..<650 as Range<Int64> {
            _ = history.add(state("100"), isTick: true, at: at(second + 7200, boottime: second))
        }
        // The clock is set right, and the next response confirms it.
        history.clock.check(.agrees, at: at(650))
        let day = history.add(state("200"), isTick: true, at: at(650))
        #expect(day?.low == 200 && day?.since.milliseconds == (Self.midnight + 600) * 1000)
        #expect(history.seconds(of: .usd, in: 0..<Int64.max).count == 1)
        history.close()
        #expect(archive.kept.filter { $0.candle.start >= Self.midnight + 7200 }.allSatisfy { $0.candle.isInDoubt })
        #expect(archive.kept.last?.candle.start == Self.midnight + 600 && archive.kept.last?.candle.open == 200)
    }

    @Test func `the last tick before the end covers only what has passed`() {
        let history = PriceHistory(store: archive)
        for second in stride(from: 0, through: 30, by: 10) as StrideThrough<Int64> {
            _ = history.add(state("100"), isTick: true, every: .seconds(10), ofSeveral: false, at: at(second))
        }
        history.close()
        #expect(archive.kept.map(\.candle.covered) == [31])
        // Nothing is covered in a minute without a good tick.
        let other = PriceHistory(store: archive)
        _ = other.add(state(nil), isTick: true, at: at(90))
        _ = other.add(state("100"), isTick: false, at: at(91))
        other.close()
        #expect(archive.kept.map(\.candle.covered) == [31, 1])
    }

    @Test func `a minute that the store has completed counts in the day, however many prices of streams it had`() {
        var day = DayWindow()
        for _ in 0..<200 { day.add(100, isInDoubt: false, at: Self.midnight) }
        day.add(100, isInDoubt: false, at: Self.midnight + 60)
        let completed = Candle(
            start: Self.midnight, open: 100, high: 120, low: 90, close: 100, ticks: 60, fresh: 20, origin: Candle.mixed)
        day.restore([completed])
        #expect(day.day(at: Self.midnight + 61).map { [$0.high, $0.low] } == [120, 90])
    }

    @Test func `restoring the day again changes nothing`() throws {
        let history = PriceHistory(store: archive)
        _ = history.add(state("100"), isTick: true, at: at(30))
        var (part, earlier) = (candle(0, "90", "95"), candle(-1, "80", "80"))
        (part.covered, part.ticks, part.fresh, earlier.covered) = (25, 25, 25, 25)
        history.restore([earlier, part], of: .usd)
        let first = try #require(history.day(of: .usd, at: at(30)))
        for _ in 0..<3 { history.restore([earlier, part], of: .usd) }
        #expect(history.day(of: .usd, at: at(30)) == first)
        #expect((first.open, first.low, first.close) == (80, 80, 100))
        // The store has completed it since.
        earlier.covered = nil
        history.restore([earlier], of: .usd)
        #expect(history.day(of: .usd, at: at(30))?.coveredMinutes == (first.coveredMinutes ?? 0) + 1)
    }

    @Test func `a lie that is found while minutes are held is in doubt when they are stored`() {
        let history = unconfirmed(at: at(0))
        for second in 0..<60 as Range<Int64> {
            _ = history.add(state(second < 50 ? "100" : "200"), isTick: true, at: at(second))
        }
        _ = history.add(state("100"), isTick: true, at: at(60))
        history.doubt(.usd, since: at(50).boottime, at: at(61))
        history.clock.check(differs(by: 86_400), at: at(62))
        _ = history.add(state("100"), isTick: true, at: at(120))
        #expect(archive.kept.map(\.candle.high) == [100, 100])
        #expect(archive.kept.map(\.candle.doubtful) == [10, 1])
        #expect(archive.kept.first?.candle.start == Self.midnight + 86_400)
    }

    @Test func `what is held when the daemon ends is stored in doubt`() {
        let history = unconfirmed(at: at(0))
        for second in 0..<70 as Range<Int64> { _ = history.add(state("100"), isTick: true, at: at(second)) }
        history.close()
        #expect(archive.kept.map(\.candle.start) == [Self.midnight, Self.midnight + 60])
        #expect(archive.kept.allSatisfy { $0.candle.isInDoubt && $0.conflict == .yields })
    }

    @Test func `the day has 1440 minutes, including those from the store`() throws {
        let history = PriceHistory(store: archive)
        var day = history.add(state("100"), isTick: true, at: at(0))
        #expect(
            day
                == PriceDay(
                    since: Timestamp(milliseconds: Self.midnight * 1000), open: 100, high: 100, low: 100, close: 100,
                    until: Timestamp(milliseconds: Self.midnight * 1000), coveredMinutes: 1))
        // The store's candles: one is too old, and one is of the present minute from before a restart.
        history.restore(
            [
                candle(-1440, "50", "50"), candle(-1439, "80", "85"), candle(-100, "85", "130", origin: "kraken"),
                candle(0, "70", "70"),
            ],
            of: .usd)
        day = history.add(state("99"), isTick: true, at: at(1))
        let known = try #require(day)
        #expect((known.open, known.high, known.low, known.close) == (80, 130, 70, 99))
        #expect(known.since.milliseconds / 1000 == Self.midnight - 1439 * 60)
        #expect(known.isBackfilled)
        #expect(known.coveredMinutes == 3 && known.until?.milliseconds == Self.midnight * 1000 + 1000)
        #expect((known.change, known.changePercent) == (19, price("23.75")))
        // A minute later the first candle is out of the day.
        day = history.add(state("99"), isTick: true, at: at(60))
        #expect(day?.open == 85)
        #expect(history.day(of: .usd, at: at(60)) == day)
        let end = Timestamp(milliseconds: (Self.midnight + 120) * 1000)
        #expect(history.day(of: .usd, at: at(300))?.until == end, "while nothing comes, its end stands still")
        #expect(history.day(of: .eur, at: at(60)) == nil)
        // A day later no candle is left.
        #expect(history.add(state(nil), isTick: true, at: at(2 * 86_400)) == nil)
    }

    /// Compares the day with one that is computed from all prices.
    @Test func `the day matches all prices of its minutes, over three days with gaps`() {
        var random = SeededGenerator.announced()
        let history = PriceHistory(store: archive)
        var (seen, value) = ([(second: Int64, price: Price)](), 68_900)
        var second: Int64 = 0
        while second < 3 * 86_400 {
            value += Int.random(in: -40...40, using: &random)
            let isFresh = Int.random(in: 0..<20, using: &random) > 0
            let day = history.add(state(isFresh ? "\(value)" : nil), isTick: true, at: at(second))
            if isFresh { seen.append((second, Price(Int64(value)))) }
            let first = second / 60 * 60 - 1439 * 60
            seen.removeFirst(seen.prefix { $0.second < first }.count)
            if second % 20 > 0 {
                // Compared with all prices at some of the ticks.
            } else if let day {
                let prices = seen.map(\.price)
                if day.open != prices.first || day.high != prices.max() || day.low != prices.min()
                    || day.close != prices.last
                {
                    Issue.record("at \(second): \(day)")
                    return
                }
            } else if !seen.isEmpty {
                Issue.record("nothing at \(second)")
                return
            }
            // An occasional gap of minutes or hours.
            second += Int.random(in: 0..<2000, using: &random) == 0 ? .random(in: 60...20_000, using: &random) : 17
        }
    }

    @Test func `an hour of seconds is kept`() {
        let history = PriceHistory(store: archive)
        for second in 0..<9000 { _ = history.add(state("\(second + 1)"), isTick: true, at: at(Int64(second))) }
        let all = history.seconds(of: .usd, in: 0..<Int64.max)
        #expect(all.count == 3600)
        #expect(all.first?.close == Price(5401))
        #expect(
            history.seconds(of: .usd, in: Self.midnight + 8998..<Self.midnight + 9999).map(\.close)
                == [8999, 9000].map { Price($0) })
        // The clock is set back, which removes later seconds.
        _ = history.add(state("7"), isTick: true, at: at(6000))
        #expect(history.seconds(of: .usd, in: Self.midnight + 5990..<Int64.max).last?.close == 7)
        #expect(history.seconds(of: .usd, in: 0..<Int64.max).count == 601)
        // Seconds without a price, and more than an hour of them.
        for (second, count) in [(Int64(6900), 602), (40_000, 1)] {
            _ = history.add(state("8"), isTick: true, at: at(second))
            #expect(history.seconds(of: .usd, in: 0..<Int64.max).count == count)
        }
        #expect(history.seconds(of: .usd, in: 0..<Int64.max, limit: 0).isEmpty)
    }

    private func hours(_ minutes: [Candle], at now: Int64 = 86_400) -> [Candle] {
        Candle.merged(minutes, of: .minute, to: .hour, at: Self.midnight + now)
    }

    @Test func `candles of minutes make those of hours and days`() {
        let minutes = (0..<59).map { candle($0, "10", "12") } + [candle(59, "12", "9", origin: "kraken")]
        let hours = hours(minutes + [candle(60, "9", "20")])
        #expect(hours.map(\.start) == [Self.midnight, Self.midnight + 3600])
        #expect((hours[0].open, hours[0].high, hours[0].low, hours[0].close) == (10, 12, 9, 9))
        #expect((hours[0].ticks, hours[0].origin, hours[1].origin) == (3600, Candle.mixed, Candle.own))
        #expect(hours.map(\.coveredMinutes) == [nil, 1])
        let day = Candle.merged(hours, of: .hour, to: .day, at: Self.midnight + 3660)
        #expect(day.map(\.coveredMinutes) == [61])
        #expect(Candle.Step.minute.start(of: -1) == -60)
    }

    @Test func `an exchange's minutes make an hour if there are enough, the daemon's own make their part of it`() {
        let exchange = (0..<60).map { candle($0, "10", "12", origin: "kraken") }
        #expect(hours(exchange).map(\.coveredMinutes) == [nil])
        #expect(hours(Array(exchange[5..<55])).map(\.coveredMinutes) == [50])
        #expect(hours(Array(exchange[5..<54])).isEmpty)
        // Nothing is missing of the running hour.
        #expect(hours(Array(exchange[0..<10]), at: 590).map(\.coveredMinutes) == [10])
        let part = hours([exchange[0], candle(40, "9", "20"), candle(41, "20", "21")])
        #expect(part.map(\.origin) == [Candle.own] && part.map(\.coveredMinutes) == [2])
        #expect(part.map(\.open) == [9] && part.map(\.low) == [9])
        // A day is made of its minutes, too.
        var parts = (0..<20).map { candle($0 * 60, "10", "12", origin: "kraken") }
        let day = { (parts: [Candle]) in Candle.merged(parts, of: .hour, to: .day, at: .max).map(\.coveredMinutes) }
        #expect(day(parts) == [1200])
        parts[3].covered = 59 * 60
        #expect(day(parts).isEmpty)
    }

    @Test func `prices whose market is outvoted later are in doubt, in minutes that were stored, too`() throws {
        let history = PriceHistory(store: archive)
        for second in Int64(0)..<150 {
            let value = second < 112 ? "100" : second < 125 ? "103" : "101"
            if second == 125 {
                history.doubt(.usd, since: at(second).boottime - 13_500, at: at(second))
            }
            _ = history.add(state(value), isTick: true, at: at(second))
        }
        let day = try #require(history.day(of: .usd, at: at(149)))
        #expect((day.high, day.close) == (101, 101))
        let seconds = history.seconds(of: .usd, in: Self.midnight..<Self.midnight + 150)
        #expect(seconds.filter(\.isInDoubt).map { $0.start - Self.midnight } == Array(111..<125))
        history.close()
        var (first, second, third) = (candle(0, "100", "100"), candle(1, "100", "100"), candle(2, "101", "101"))
        (first.doubtful, second.doubtful, third.doubtful) = (0, 9, 5)
        (third.ticks, third.fresh, third.covered) = (30, 30, 30)
        (first.single, second.single, third.single) = (0, 0, 0)
        var wrong = candle(1, "100", "103")
        (wrong.doubtful, wrong.single) = (0, 0)
        #expect(
            archive.kept == [
                KeptCandle(.usd, first, .continues), KeptCandle(.usd, wrong, .keepsOwn),
                KeptCandle(.usd, second, .replaces), KeptCandle(.usd, third, .keepsOwn),
            ])
    }

    @Test func `a minute whose seconds are not all known keeps its prices, and only counts the doubt`() throws {
        let history = PriceHistory(store: archive)
        for second in Int64(0)..<10 {
            _ = history.add(state("100"), isTick: true, at: at(second))
            _ = history.add(state(second < 5 ? "100" : "103"), isTick: true, at: at(second))
        }
        history.doubt(.usd, since: at(4).boottime, at: at(9))
        let minute = try #require(history.unstored(of: .usd).last?.candle)
        #expect((minute.high, minute.fresh, minute.doubtful) == (103, 20, 6))
        // Minutes of which nothing can be told any more stay as they are.
        history.doubt(.usd, since: at(-95_000).boottime, at: at(5000))
        #expect(history.unstored(of: .usd).last?.candle.doubtful == 6)
    }

    @Test func `a price in doubt is left out of the minute and the day, unless there is no other`() throws {
        let history = PriceHistory(store: archive)
        for (second, value) in [(0, "100"), (10, "90")] {
            _ = history.add(state(value, isInDoubt: true), isTick: true, at: at(Int64(second)))
        }
        #expect(history.day(of: .usd, at: at(10))?.high == 100)
        for (second, value, isInDoubt) in [(60, "200", true), (70, "101", false), (70, "300", true), (80, "99", false)]
        {
            _ = history.add(state(value, isInDoubt: isInDoubt), isTick: true, at: at(Int64(second)))
        }
        // A client's fetch has no count, so its doubt could not be told.
        let day = try #require(history.add(state("400", isInDoubt: true), isTick: false, at: at(85)))
        #expect((day.open, day.high, day.low, day.close) == (101, 101, 99, 99))
        #expect(day.since.milliseconds / 1000 == Self.midnight + 60)
        history.close()
        var (first, second) = (candle(0, "100", "90"), candle(1, "101", "99"))
        (first.ticks, first.fresh, first.doubtful, first.single, first.covered) = (2, 2, 2, 0, 2)
        (second.ticks, second.fresh, second.doubtful, second.single, second.covered) = (4, 4, 2, 0, 3)
        #expect(archive.kept.map(\.candle) == [first, second])
        #expect(first.isInDoubt && !second.isInDoubt)
        let seconds = history.seconds(of: .usd, in: Self.midnight + 60..<Self.midnight + 80)
        #expect(seconds.map(\.close) == [200, 101] && seconds.map(\.isInDoubt) == [true, false])
        // A longer candle counts them, and has the prices of the parts without doubt.
        let hour = try #require(hours([first, second]).first)
        #expect((hour.open, hour.high, hour.low, hour.doubtful) == (101, 101, 99, 4))
        #expect(hours([first]).map(\.isInDoubt) == [true])
        // A candle from before doubt was counted says nothing about it.
        #expect(hours([candle(0, "10", "12")]).map(\.doubtful) == [nil])
    }
}
