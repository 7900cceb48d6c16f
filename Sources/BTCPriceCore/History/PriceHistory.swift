import Synchronization

/// Builds the history from the published states: in memory the last hour by the second and the last day by the minute; candles for a store.
package final class PriceHistory: Sendable {
    /// If the clock is set back by at most this time, in seconds, the history waits for it: the current minute then lasts longer.
    static let tolerance: Int64 = 300

    /// How many closed minutes can still be marked as in doubt.
    static let doubtedMinutes = 5

    private struct CurrencyHistory {
        var builder = CandleBuilder()
        var day = DayWindow()
        var recent = RecentPrices()
        var hasKept = false
        /// The last minutes that were closed, without one that began before the daemon started.
        var closed: [Candle] = []

        mutating func add(_ sample: Sample, at second: Int64) -> PriceDay? {
            builder.add(sample, at: second)
            if let price = sample.price {
                day.add(price, isInDoubt: sample.isInDoubt, at: second)
                recent.add(price, isInDoubt: sample.isInDoubt, at: second)
            }
            return day.day(at: second)
        }

        /// Ends the current minute.
        /// - Returns: Its candle, and whether it is the first one; `nil` if it had no valid price.
        mutating func close() -> (candle: Candle, isFirst: Bool)? {
            guard let candle = builder.close() else { return nil }
            day.close(candle)
            defer { hasKept = true }
            if hasKept { closed = closed.suffix(PriceHistory.doubtedMinutes - 1) + [candle] }
            return (candle, !hasKept)
        }

        /// Marks the prices after a second as in doubt.
        /// - Returns: The closed minutes that have changed.
        mutating func doubt(after second: Int64) -> [Candle] {
            let doubted = recent.doubt(after: second)
            guard let start = doubted.first.map(Candle.Step.minute.start) else { return [] }
            let changed = closed.filter { $0.start >= start }.map { doubting($0, doubted) }
            closed = closed.filter { $0.start < start } + changed
            if let current = builder.current { builder.replace(doubting(current, doubted)) }
            for minute in changed + [builder.current].compactMap(\.self) { day.replace(minute) }
            return changed
        }

        /// A minute, made again from the prices of its seconds if all are known.
        private func doubting(_ minute: Candle, _ doubted: [Int64]) -> Candle {
            let range = minute.start..<minute.start + Candle.Step.minute.seconds
            let prices = recent.candles(in: range, limit: .max)
            let count = Int64(doubted.count { range.contains($0) })
            var made = minute
            made.doubtful = min(minute.fresh, (minute.doubtful ?? 0) + count)
            guard count > 0, prices.count >= minute.fresh, let whole = prices.whole else { return made }
            (made.open, made.high, made.low, made.close) = (whole.open, whole.high, whole.low, whole.close)
            return made
        }
    }

    /// What is held until the venues' time is known.
    private struct Waiting {
        /// Prices between two ticks are left out beyond this number of samples.
        static let mostSamples = 10_000

        var samples: [Sample] = []
        /// The minutes that were made of them.
        var minutes: [KeptCandle] = []

        mutating func add(_ sample: Sample) {
            if sample.isTick || samples.count < Self.mostSamples { samples.append(sample) }
        }

        mutating func keep(_ candles: [KeptCandle]) {
            for new in candles {
                let known = minutes.firstIndex {
                    $0.currency == new.currency && $0.candle.start == new.candle.start && new.conflict == .replaces
                }
                if let known {
                    minutes[known] = KeptCandle(new.currency, new.candle, minutes[known].conflict)
                } else {
                    minutes.append(new)
                }
            }
        }

        mutating func doubt(_ currency: Currency, since: BootTime) {
            for index in samples.indices where samples[index].currency == currency && samples[index].at >= since {
                samples[index].isInDoubt = true
            }
        }
    }

    private struct State {
        var currencies: [Currency: CurrencyHistory] = [:]
        /// The time of the last state, Unix seconds.
        var last: Int64?
        /// The time in use, as in ``HistoryTime/offset``; `nil` before the first state.
        var offset: Int64?
        var trust = HistoryTime.Trust.waiting
        /// `nil` once minutes are stored.
        var waiting: Waiting? = Waiting()

        /// Unix seconds.
        mutating func second(at wall: Timestamp) -> Int64 {
            var second = wall.wholeSeconds
            if let last, second < last, last - second <= tolerance { second = last }
            last = second
            return second
        }

        mutating func add(_ sample: Sample, at wall: Timestamp, to store: any CandleArchive) -> PriceDay? {
            let second = second(at: wall)
            keep(close(but: Candle.Step.minute.start(of: second)), in: store)
            return currencies[sample.currency, default: CurrencyHistory()].add(
                sample, at: second)
        }

        /// Stores minutes, or holds them until the time is known.
        mutating func keep(_ candles: [KeptCandle], in store: any CandleArchive) {
            guard !candles.isEmpty else { return }
            if waiting != nil {
                waiting?.keep(candles)
            } else {
                store.keep(trust == .confirmed ? candles : candles.doubted)
            }
        }

        /// Follows the time: minutes that are held are made again if it has changed, and stored once it is known.
        mutating func follow(
            _ reading: (time: ObservationTime, trust: HistoryTime.Trust), with store: any CandleArchive
        ) {
            let offset = reading.time.wall.milliseconds - reading.time.boottime.milliseconds
            let hasMoved = self.offset.map { abs($0 - offset) > VenueClocks.tolerance } ?? false
            let isNew = reading.trust == .confirmed && (trust != .confirmed || hasMoved)
            if hasMoved, waiting == nil {
                // What was made under the other time is not continued. The minute that is open was made under it, too.
                let open = close(but: nil)
                if !open.isEmpty { store.keep(open.doubted) }
                (currencies, last) = ([:], nil)
            }
            (self.offset, trust) = (offset, reading.trust)
            if hasMoved, let samples = waiting?.samples {
                (currencies, last) = ([:], nil)
                waiting?.minutes = []
                for sample in samples {
                    let wall = Timestamp(milliseconds: sample.at.milliseconds + offset)
                    _ = add(sample, at: wall, to: store)
                }
            }
            if isNew { store.settle(at: reading.time.wall.wholeSeconds) }
            if trust != .waiting, let held = waiting.take() { keep(held.minutes, in: store) }
        }

        /// Closes the finished minutes of all currencies, in one commit.
        /// - Parameter minute: The current minute, in Unix seconds; `nil` to close all.
        mutating func close(but minute: Int64?) -> [KeptCandle] {
            currencies.keys.sorted { $0.rawValue < $1.rawValue }.compactMap { currency in
                guard let open = currencies[currency]?.builder.minute, open != minute,
                    let (candle, isFirst) = currencies[currency]?.close()
                else { return nil }
                return KeptCandle(currency, candle, isFirst ? .continues : .keepsOwn)
            }
        }
    }

    private let store: any CandleArchive
    package let clock: HistoryClock
    /// What went on.
    package let episodes: EpisodeRecorder
    private let state = Mutex(State())

    package init(store: any CandleArchive, clock: HistoryClock) {
        self.store = store
        self.clock = clock
        episodes = EpisodeRecorder(archive: store, reading: { (clock.now, clock.isSettled) })
    }

    /// Adds a state that is about to be published.
    /// - Parameters:
    ///   - isTick: Whether a tick has made the state.
    ///   - interval: The time from one tick to the next.
    ///   - hasSeveral: Whether the currency has several sources.
    /// - Returns: The day to publish with it; `nil` if nothing is known.
    func add(
        _ published: PriceState, isTick: Bool, every interval: Duration, ofSeveral hasSeveral: Bool,
        at now: ObservationTime
    ) -> PriceDay? {
        guard let currency = Currency(rawValue: published.currency) else { return nil }
        // A derived price is no market's.
        let isOfMarket = published.freshness == .fresh && published.derivation == nil
        let sample = Sample(
            currency: currency, price: isOfMarket ? published.quote?.value : nil,
            isInDoubt: published.standing.isInDoubt, isSingle: hasSeveral && published.confirmation == .single,
            isTick: isTick, covers: (interval.wholeMilliseconds + 999) / 1000, at: now.boottime)
        let reading = clock.reading(at: now)
        return state.withLock { state in
            state.follow(reading, with: store)
            state.waiting?.add(sample)
            return state.add(sample, at: reading.time.wall, to: store)
        }
    }

    /// Marks the newest prices as in doubt, because another market's is shown now that is far from them. They no longer count where there
    /// are others.
    /// - Parameter since: When a right one was shown last; at most ``doubtedMinutes`` before the present count.
    func doubt(_ currency: Currency, since: BootTime, at now: ObservationTime) {
        let time = clock.reading(at: now).time
        let oldest = time.wall.wholeSeconds - Int64(Self.doubtedMinutes) * Candle.Step.minute.seconds
        state.withLock { state in
            // A wrong price may have come in the same second.
            let second = max(time.wallTime(of: since).wholeSeconds, oldest) - 1
            let changed = state.currencies[currency]?.doubt(after: second) ?? []
            state.waiting?.doubt(currency, since: since)
            state.keep(changed.map { KeptCandle(currency, $0, .replaces) }, in: store)
        }
    }

    /// Fills gaps in the last day.
    /// - Parameter candles: One-minute candles, from the oldest to the newest.
    package func restore(_ candles: [Candle], of currency: Currency) {
        state.withLock { $0.currencies[currency, default: CurrencyHistory()].day.restore(candles) }
    }

    /// The day before a moment; `nil` if nothing is known about it.
    package func day(of currency: Currency, at now: ObservationTime) -> PriceDay? {
        let second = clock.reading(at: now).time.wall.wholeSeconds
        return state.withLock { $0.currencies[currency]?.day.day(at: second) }
    }

    /// The prices of the last hour, as one-second candles.
    /// - Parameters:
    ///   - range: Unix seconds.
    ///   - limit: The maximum number of candles; the oldest ones are returned.
    package func seconds(of currency: Currency, in range: Range<Int64>, limit: Int = .max) -> [Candle] {
        state.withLock { $0.currencies[currency]?.recent.candles(in: range, limit: limit) ?? [] }
    }

    /// The minutes that were not passed to the store yet, from the oldest to the newest. The last one may be the current minute, as far as
    /// it is known.
    package func unstored(of currency: Currency) -> [KeptCandle] {
        state.withLock { state in
            let waiting = state.waiting?.minutes.filter { $0.currency == currency } ?? []
            guard let history = state.currencies[currency], let current = history.builder.current else {
                return waiting
            }
            return waiting + [KeptCandle(currency, current, history.hasKept ? .keepsOwn : .continues)]
        }
    }

    /// Stores what is known about the current minute, and ends what goes on, because the daemon ends.
    package func close() {
        episodes.close()
        state.withLock { state in
            let held = state.waiting.take()?.minutes ?? []
            // A tick covers only what has passed of the time until the next one.
            if let last = state.last {
                for currency in state.currencies.keys { state.currencies[currency]?.builder.end(at: last + 1) }
            }
            state.keep(held + state.close(but: nil), in: store)
        }
    }
}

extension [KeptCandle] {
    /// The same in doubt, because it is not known whether their time is right. They replace nothing.
    fileprivate var doubted: [KeptCandle] { map { KeptCandle($0.currency, $0.candle.inDoubt, .yields) } }
}

/// What a published state says of the price.
struct Sample: Sendable {
    let currency: Currency
    /// `nil` if it is not fresh.
    let price: Price?
    var isInDoubt = false
    /// Whether only one of several sources gave the price.
    var isSingle = false
    /// Whether a tick has made the state. Any other one extends the candle and is not counted. It is ignored if it is in doubt, or if the
    /// candle is.
    let isTick: Bool
    /// The seconds until the next tick is due.
    let covers: Int64
    let at: BootTime

    init(
        currency: Currency, price: Price?, isInDoubt: Bool = false, isSingle: Bool = false, isTick: Bool = true,
        covers: Int64 = 1, at: BootTime = .boot
    ) {
        self.currency = currency
        self.price = price
        self.isInDoubt = isInDoubt
        self.isSingle = isSingle
        self.isTick = isTick
        self.covers = covers
        self.at = at
    }
}

/// Makes one-minute candles from the published states of one currency. A pure value.
struct CandleBuilder: Sendable {
    /// The candle of the current minute; `nil` before its first valid price.
    private(set) var current: Candle?
    /// The minute of the last state, Unix seconds.
    private(set) var minute: Int64?
    /// The ticks of this minute before its first valid price.
    private var failedTicks: Int64 = 0
    /// The seconds that its valid ticks cover, and up to where, Unix seconds.
    private var covered: (seconds: Int64, end: Int64) = (0, .min)

    /// The most seconds that a tick covers.
    private static let mostCovered: Int64 = 10

    /// Adds a state. An earlier minute must have been ended with ``close()``.
    /// - Parameter second: The time of the state, in Unix seconds.
    mutating func add(_ sample: Sample, at second: Int64) {
        let start = Candle.Step.minute.start(of: second)
        minute = start
        let (isTick, isInDoubt) = (sample.isTick, sample.isInDoubt)
        // A price between two ticks is not counted, so it can't say that those before it were in doubt.
        guard let price = sample.price, isTick || !isInDoubt && current?.isInDoubt != true else {
            if isTick { if current == nil { failedTicks += 1 } else { current?.ticks += 1 } }
            return
        }
        var candle = Candle(start: start, price, isInDoubt: isInDoubt, isSingle: sample.isSingle)
        if isTick {
            let end = min(second + min(sample.covers, Self.mostCovered), start + Candle.Step.minute.seconds)
            covered = (covered.seconds + max(0, end - max(second, covered.end)), max(end, covered.end))
        } else {
            (candle.ticks, candle.fresh, candle.single) = (0, 0, 0)
        }
        defer { setCovered() }
        if current == nil {
            candle.ticks += failedTicks
            (current, failedTicks) = (candle, 0)
        } else {
            current?.add(candle)
        }
    }

    /// Ends what the last tick covers.
    /// - Parameter second: Unix seconds.
    mutating func end(at second: Int64) {
        guard covered.end > second else { return }
        covered.seconds -= covered.end - second
        setCovered()
    }

    private mutating func setCovered() {
        // A price between two ticks, alone in its minute, covers its second.
        current?.covered = Candle.covered(max(1, covered.seconds), of: .minute)
    }

    /// Replaces the current minute's candle by one with the same ticks.
    mutating func replace(_ candle: Candle) { current = candle }

    /// Ends the current minute.
    /// - Returns: Its candle; `nil` if it had no valid price.
    mutating func close() -> Candle? {
        defer { self = CandleBuilder() }
        return current
    }
}
