/// The last 24 hours of one currency, minute by minute: a pure value.
struct DayWindow: Sendable {
    /// The minutes of a day, including the current one.
    static let minutes: Int64 = 1440

    /// The known minutes, from the oldest to the newest, in memory that is allocated once: growing would leave holes in the heap.
    private var known: [Candle] = []
    /// The minute in which the daemon was started, and whether its part from before has been restored; `nil` before the first price.
    private var first: (start: Int64, isJoined: Bool)?
    /// All minutes before the newest one.
    private var before: Candle?

    private mutating func reserve() {
        // A restored day begins a few minutes before the one that is kept.
        if known.isEmpty { known.reserveCapacity(Int(Self.minutes) + 10) }
    }

    /// - Parameter second: Unix seconds.
    mutating func add(_ price: Price, isInDoubt: Bool, at second: Int64) {
        let start = Candle.Step.minute.start(of: second)
        let new = Candle(start: start, price, isInDoubt: isInDoubt)
        if let last = known.indices.last, known[last].start == start {
            known[last].add(new)
        } else {
            reserve()
            first = first ?? (start, false)
            // There are later minutes if the clock was set back.
            known.removeAll { $0.start >= start }
            known.append(new)
            measure()
        }
    }

    /// Ends the newest minute: how much it covers is known now. One whose part from before a restart was added keeps its own.
    mutating func close(_ candle: Candle) {
        guard let last = known.indices.last, known[last].start == candle.start else { return }
        if first?.start != candle.start || first?.isJoined == false { known[last].covered = candle.covered }
    }

    /// Replaces a known minute.
    mutating func replace(_ candle: Candle) {
        guard let index = known.lastIndex(where: { $0.start == candle.start }) else { return }
        known[index] = candle
        if index < known.count - 1 { measure() }
    }

    /// Adds one-minute candles for minutes that are not known, or known only from a later part because the daemon was restarted in them.
    /// - Parameter candles: From the oldest to the newest.
    mutating func restore(_ candles: [Candle]) {
        reserve()
        var index = 0
        for candle in candles {
            while index < known.count, known[index].start < candle.start { index += 1 }
            if index == known.count || known[index].start > candle.start {
                known.insert(candle, at: index)
            } else if candle.start == first?.start, first?.isJoined == false, candle.origin == Candle.own,
                known[index].origin == Candle.own
            {
                var whole = candle
                whole.append(known[index])
                known[index] = whole
                first?.isJoined = true
            } else if index < known.count - 1,
                candle.origin == Candle.mixed || candle.isPartlyOwn && candle.ticks >= known[index].ticks
            {
                // The store may have completed it. It counts no prices of streams.
                known[index] = candle
            }
        }
        measure()
    }

    /// What is known about the 24 hours before a moment; `nil` if nothing is known.
    /// - Parameter second: Unix seconds.
    mutating func day(at second: Int64) -> PriceDay? {
        let oldest = Candle.Step.minute.start(of: second) - (Self.minutes - 1) * Candle.Step.minute.seconds
        let outdated = known.prefix { $0.start < oldest }.count
        if outdated > 0 {
            known.removeFirst(outdated)
            measure()
        }
        guard let last = known.last else { return nil }
        var day = before ?? last
        if before != nil { day.add(last) }
        return PriceDay(
            since: Timestamp(milliseconds: day.start * 1000), open: day.open, high: day.high, low: day.low,
            close: day.close, isBackfilled: day.origin != Candle.own,
            until: Timestamp(milliseconds: min(second, last.start + Candle.Step.minute.seconds) * 1000),
            coveredMinutes: Int64(known.count { $0.covered == nil }))
    }

    private mutating func measure() { before = known.dropLast().whole }
}
