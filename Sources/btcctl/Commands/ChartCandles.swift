import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket

/// The candles of a chart: requested once a minute, and in between followed by the present price.
struct ChartCandles {
    /// The currency to request; `nil` for the daemon's first.
    let named: String?
    let span: ChartSpan
    let days: DayZone
    /// The length of the candles; `nil` for the shortest that are known.
    let length: CandleLength?
    /// From the oldest to the newest.
    private(set) var candles: [Candle]
    /// Their currency, ISO 4217.
    private(set) var currency = Currency.usd.rawValue
    /// The minute in which ``candles`` were requested, Unix seconds.
    private var minute: Int64?

    /// The most candles of a length that is chosen.
    static let mostOfLength: Int64 = 2000

    init(
        named: String?, span: ChartSpan, days: DayZone = .utc, length: CandleLength? = nil, candles: [Candle] = []
    ) {
        (self.named, self.span, self.days, self.length, self.candles) = (named, span, days, length, candles)
    }

    /// Whether the span has at most ``mostOfLength`` candles of the length.
    var hasFew: Bool {
        guard let length else { return true }
        return shown.map { $0 / length.seconds <= Self.mostOfLength } ?? (length.base == .day)
    }

    /// How much is shown, seconds; `nil` for all that is known.
    var shown: Int64? {
        guard span.start != .known else { return nil }
        let range = span.range(now: ObservationTime.now().wall.wholeSeconds)
        return range.upperBound - range.lowerBound
    }

    /// Requests the candles if a minute has begun since the last request.
    /// - Parameter now: Unix seconds.
    /// - Returns: Whether they were requested.
    mutating func update(_ connection: inout PriceConnection, now: Int64) throws(ClientError) -> Bool {
        let present = Candle.Step.minute.start(of: now)
        guard minute != present else { return false }
        let shown = span.range(now: now, first: 0)
        let time = Timestamp(milliseconds: shown.lowerBound * 1000)..<Timestamp(milliseconds: shown.upperBound * 1000)
        let request = History.Request(currency: named, span: time, days: days)
        let (requested, currency): ([Candle], currency: String?)
        if let length {
            (requested, currency) = try candles(request, length, &connection, now: now)
        } else {
            (requested, currency) = try shortest(request, &connection, now: now)
        }
        (candles, self.currency, minute) = (requested, currency ?? self.currency, present)
        return true
    }

    private func candles(
        _ request: History.Request, _ length: CandleLength, _ connection: inout PriceConnection, now: Int64
    ) throws(ClientError) -> ([Candle], currency: String?) {
        var (found, currency) = ([Candle](), String?.none)
        var merger = CandleMerger(length, request.calendar, at: now)
        try History.request(request.whole(length), length.base, &connection) { candles, named in
            found += merger.add(candles)
            currency = named
        }
        return (found + merger.finish(), currency)
    }

    /// Seconds are known for an hour, and longer candles for longer: these come first, up to the first shorter one.
    private func shortest(
        _ request: History.Request, _ connection: inout PriceConnection, now: Int64
    ) throws(ClientError) -> ([Candle], currency: String?) {
        var (requested, currency) = ([Candle](), String?.none)
        let (from, to) = (request.span.lowerBound.wholeSeconds, request.span.upperBound.wholeSeconds)
        let shortest = now - from <= 3600 ? .second : span.step(now: now)
        for step in Candle.Step.allCases where step >= shortest {
            let first = requested.first?.start
            let isEnough = span.start == .known ? first != nil : (first ?? to) - from <= step.seconds
            guard !isEnough else { break }
            // A longer candle is whole, also if shorter ones are known of its end.
            let end = first.map { step.start(of: $0 + step.seconds - 1) } ?? to
            var older = request
            older.span = request.span.lowerBound..<Timestamp(milliseconds: end * 1000)
            var found: [Candle] = []
            try History.request(older, step, &connection) { candles, named in
                found += candles
                currency = named
            }
            if !found.isEmpty { requested = found + requested.filter { $0.start >= end } }
        }
        return (requested, currency)
    }

    /// Adds the present price, if it is fresh.
    /// - Parameter now: Unix seconds.
    /// - Returns: Whether it has the currency of the candles. If not, all are to be requested.
    @discardableResult mutating func append(_ state: PriceState, now: Int64) -> Bool {
        guard state.currency == currency else {
            (minute, currency) = (nil, state.currency)
            return false
        }
        guard let candle = Candle(state, at: now) else { return true }
        if let length, let last = candles.last,
            length.span(of: last.start, ReaderCalendar(isUTC: days == .utc)).contains(now)
        {
            candles[candles.count - 1].add(candle)
        } else {
            candles.append(candle)
        }
        return true
    }
}
