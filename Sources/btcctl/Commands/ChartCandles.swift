import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket

/// The candles of a chart: requested once a minute, and in between followed by the present price.
struct ChartCandles {
    /// The currency to request; `nil` for the daemon's first.
    let named: String?
    let span: ChartSpan
    let days: DayZone
    /// From the oldest to the newest.
    private(set) var candles: [Candle]
    /// Their currency, ISO 4217.
    private(set) var currency = Currency.usd.rawValue
    /// The minute in which ``candles`` were requested, Unix seconds.
    private var minute: Int64?

    init(named: String?, span: ChartSpan, days: DayZone = .utc, candles: [Candle] = []) {
        (self.named, self.span, self.days, self.candles) = (named, span, days, candles)
    }

    /// Requests the candles if a minute has begun since the last request.
    /// - Parameter now: Unix seconds.
    /// - Returns: Whether they were requested.
    mutating func update(_ connection: inout PriceConnection, now: Int64) throws(ClientError) -> Bool {
        let present = Candle.Step.minute.start(of: now)
        guard minute != present else { return false }
        var (requested, currency) = ([Candle](), self.currency)
        let shown = span.range(now: now, first: 0)
        let asked = History.Request(
            currency: named,
            span: Timestamp(milliseconds: shown.lowerBound * 1000)..<Timestamp(milliseconds: shown.upperBound * 1000),
            days: days)
        // Seconds are known for an hour, and longer candles for longer: these come first, up to the first shorter one.
        let shortest = now - shown.lowerBound <= 3600 ? .second : span.step(now: now)
        for step in Candle.Step.allCases where step >= shortest {
            let first = requested.first?.start
            let isEnough =
                span.start == .known ? first != nil : (first ?? shown.upperBound) - shown.lowerBound <= step.seconds
            guard !isEnough else { break }
            // A longer candle is whole, also if shorter ones are known of its end.
            let end = first.map { step.start(of: $0 + step.seconds - 1) } ?? shown.upperBound
            var older = asked
            older.span = asked.span.lowerBound..<Timestamp(milliseconds: end * 1000)
            var found: [Candle] = []
            try History.request(older, step, &connection) { candles, named in
                found += candles
                currency = named
            }
            if !found.isEmpty { requested = found + requested.filter { $0.start >= end } }
        }
        (candles, self.currency, minute) = (requested, currency, present)
        return true
    }

    /// Appends the present price, if it is fresh.
    /// - Parameter now: Unix seconds.
    mutating func append(_ state: PriceState, now: Int64) {
        guard state.freshness == .fresh, let price = state.quote?.value else { return }
        candles.append(Candle(start: now, price, isInDoubt: state.doubt != nil))
    }
}
