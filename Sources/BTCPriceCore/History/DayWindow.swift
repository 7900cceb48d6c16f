/// The last 24 hours of one currency, minute by minute: a pure value.
struct DayWindow: Sendable {
    /// The minutes of a day, including the current one.
    static let minutes: Int64 = 1440

    private struct Minute {
        let start: Int64
        let open: Price
        var high: Price
        var low: Price
        var close: Price
        let isOwn: Bool

        init(_ candle: Candle) {
            start = candle.start
            (open, high, low, close) = (candle.open, candle.high, candle.low, candle.close)
            isOwn = candle.origin == Candle.own
        }
    }

    /// The known minutes, from the oldest to the newest.
    private var known: [Minute] = []
    /// The highest and the lowest price of all minutes before the newest one.
    private var before: (high: Price, low: Price)?
    private var isBackfilled = false

    /// Adds a price.
    /// - Parameter second: The time of the price, in Unix seconds.
    mutating func add(_ price: Price, at second: Int64) {
        let start = Candle.Step.minute.start(of: second)
        if let last = known.indices.last, known[last].start == start {
            known[last].high = max(known[last].high, price)
            known[last].low = min(known[last].low, price)
            known[last].close = price
        } else {
            // There are later minutes if the clock was set back.
            known.removeAll { $0.start >= start }
            known.append(Minute(Candle(start: start, price)))
            measure()
        }
    }

    /// Adds one-minute candles for minutes that are not known, or known only from a later part because the daemon was restarted in them.
    mutating func restore(_ candles: [Candle]) {
        var minutes = Dictionary(uniqueKeysWithValues: known.map { ($0.start, $0) })
        for candle in candles {
            if let later = minutes[candle.start] {
                guard candle.origin == Candle.own, later.isOwn else { continue }
                var whole = candle
                whole.add(
                    Candle(start: candle.start, open: later.open, high: later.high, low: later.low, close: later.close))
                minutes[candle.start] = Minute(whole)
            } else {
                minutes[candle.start] = Minute(candle)
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
        guard let first = known.first, let last = known.last else { return nil }
        return PriceDay(
            since: Timestamp(milliseconds: first.start * 1000), open: first.open,
            high: max(before?.high ?? last.high, last.high), low: min(before?.low ?? last.low, last.low),
            close: last.close, isBackfilled: isBackfilled)
    }

    private mutating func measure() {
        let closed = known.dropLast()
        before = closed.map(\.high).max().flatMap { high in closed.map(\.low).min().map { (high, $0) } }
        isBackfilled = known.contains { !$0.isOwn }
    }
}
