/// The last 24 hours of one currency, minute by minute: a pure value.
struct DayWindow: Sendable {
    /// The minutes of a day, including the current one.
    static let minutes: Int64 = 1440

    /// The known minutes, from the oldest to the newest.
    private var known: [Candle] = []
    /// All minutes before the newest one.
    private var before: Candle?

    /// - Parameter second: Unix seconds.
    mutating func add(_ price: Price, isInDoubt: Bool, at second: Int64) {
        let start = Candle.Step.minute.start(of: second)
        let new = Candle(start: start, price, isInDoubt: isInDoubt)
        if let last = known.indices.last, known[last].start == start {
            known[last].add(new)
        } else {
            // There are later minutes if the clock was set back.
            known.removeAll { $0.start >= start }
            known.append(new)
            measure()
        }
    }

    /// Adds one-minute candles for minutes that are not known, or known only from a later part because the daemon was restarted in them.
    mutating func restore(_ candles: [Candle]) {
        var minutes = Dictionary(uniqueKeysWithValues: known.map { ($0.start, $0) })
        for candle in candles {
            if let later = minutes[candle.start] {
                guard candle.origin == Candle.own, later.origin == Candle.own else { continue }
                var whole = candle
                whole.add(later)
                minutes[candle.start] = whole
            } else {
                minutes[candle.start] = candle
            }
        }
        known = minutes.values.sorted { $0.start < $1.start }
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
            close: day.close, isBackfilled: day.origin != Candle.own)
    }

    private mutating func measure() {
        before = nil
        for minute in known.dropLast() {
            if before == nil { before = minute } else { before?.add(minute) }
        }
    }
}
