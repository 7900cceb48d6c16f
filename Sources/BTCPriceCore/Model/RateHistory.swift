/// The reference rates of past days, as one source has published them: a pure value. Days are numbered from 1970-01-01.
package struct RateHistory: Sendable, Hashable {
    /// The rates of one currency.
    package struct Series: Sendable, Hashable {
        /// The days that are known, with and without a rate.
        package var days: ClosedRange<Int64>
        /// How much of the currency buys one of the base.
        package var rates: [Int64: Price]

        package init(days: ClosedRange<Int64>, rates: [Int64: Price]) {
            self.days = days
            self.rates = rates
        }
    }

    /// A request for some days of some currencies.
    package struct Request: Sendable, Hashable {
        package internal(set) var currencies: [Currency]
        package let days: ClosedRange<Int64>

        package init(currencies: [Currency], days: ClosedRange<Int64>) {
            self.currencies = currencies
            self.days = days
        }
    }

    /// The days that are wanted: two years.
    static let wantedDays: Int64 = 731
    /// How many of the last known days may get another rate.
    static let changingDays: Int64 = 3
    /// The days of one request.
    static let daysOfRequest: Int64 = 366

    package let source: String
    /// The currency of which the rates buy one.
    package let base: Currency
    package private(set) var series: [Currency: Series]
    /// When the newest days were received last; `nil` for never.
    package internal(set) var renewed: Timestamp?

    package init(
        _ source: String, of base: Currency, _ series: [Currency: Series] = [:], renewed: Timestamp? = nil
    ) {
        self.renewed = renewed
        self.source = source
        self.base = base
        self.series = series
    }

    /// The number of the day that contains a moment.
    /// - Parameter second: Unix seconds.
    package static func day(of second: Int64) -> Int64 { Candle.Step.day.start(of: second) / Candle.Step.day.seconds }

    /// How much of `currency` buys one of `other` by the rates of the last day, up to this one, that has both; `nil` if that is too old.
    package func rate(of currency: Currency, per other: Currency, on day: Int64) -> Price? {
        func rate(_ currency: Currency, _ day: Int64) -> Price? {
            currency == base ? 1 : series[currency]?.rates[day]
        }
        for day in stride(from: day, through: day - ReferenceRates.oldest, by: -1) {
            guard let mine = rate(currency, day), let theirs = rate(other, day) else { continue }
            return other == base ? mine : mine.divided(by: theirs, places: 10)
        }
        return nil
    }

    /// The currencies of which rates are known.
    var currencies: Set<Currency> { Set(series.keys) }

    /// The next request: for the newest days of what is known, for a year of a currency of which nothing is, then for earlier years.
    /// - Parameter renews: Whether the newest days are wanted. The rates of the last ones may still change.
    func next(for wanted: Set<Currency>, today: Int64, renews: Bool) -> Request? {
        let (year, oldest) = (today - Self.daysOfRequest + 1...today, today - Self.wantedDays + 1)
        let known = wanted.filter { $0 != base }.compactMap { currency in
            series[currency].map { (currency: currency, days: $0.days) }
        }
        func request(_ currencies: some Sequence<Currency>, _ days: ClosedRange<Int64>) -> Request {
            Request(currencies: currencies.sorted { $0.rawValue < $1.rawValue }, days: days)
        }
        if renews, let last = known.map(\.days.upperBound).min() {
            return request(known.map(\.currency), max(year.lowerBound, last - Self.changingDays + 1)...today)
        }
        let new = wanted.filter { $0 != base && series[$0] == nil }
        if !new.isEmpty { return request(new, year) }
        guard let first = known.map(\.days.lowerBound).max(), first > oldest else { return nil }
        return request(
            known.filter { $0.days.lowerBound == first }.map(\.currency),
            max(oldest, first - Self.daysOfRequest)...first - 1)
    }

    /// Adds the response to a request.
    /// - Parameter rates: Those that were not requested, or are outside ``ReferenceRateTable/possible``, are left out.
    mutating func add(_ rates: [(currency: Currency, day: Int64, value: Price)], _ request: Request, today: Int64) {
        for currency in request.currencies {
            let valid = rates.filter {
                $0.currency == currency && request.days.contains($0.day)
                    && ReferenceRateTable.possible.contains($0.value)
            }
            var new = Dictionary(valid.map { ($0.day, $0.value) }) { first, _ in first }
            for day in Self.jumps(in: (series[currency]?.rates ?? [:]).merging(new) { $1 }) { new[day] = nil }
            // The last days may get a rate later.
            let end = min(request.days.upperBound, max(new.keys.max() ?? .min, today - ReferenceRates.oldest))
            guard end >= request.days.lowerBound else { continue }
            let days = request.days.lowerBound...end
            var known = series[currency]
            if let before = known?.days, before.upperBound + 1 >= days.lowerBound,
                days.upperBound + 1 >= before.lowerBound
            {
                known?.days =
                    min(before.lowerBound, days.lowerBound)...max(before.upperBound, days.upperBound)
                known?.rates.merge(new) { $1 }
            } else {
                known = Series(days: days, rates: new)
            }
            series[currency] = known
        }
    }

    /// The days whose rate is far from those of the two days before and after it: nothing confirms it.
    private static func jumps(in rates: [Int64: Price]) -> [Int64] {
        let days = rates.keys.sorted()
        let logs = days.map { rates[$0]?.logarithm ?? 0 }
        return days.indices.filter { index in
            let beside = [index - 2, index - 1, index + 1, index + 2].filter(days.indices.contains)
            return !beside.isEmpty && beside.allSatisfy { abs(logs[$0] - logs[index]) > ReferenceRates.longestMove }
        }.map { days[$0] }
    }

    /// Forgets all other currencies, days that are no longer wanted, and what was received by a clock that was ahead.
    mutating func keep(only wanted: Set<Currency>, today: Int64) {
        let oldest = today - Self.wantedDays + 1
        series = series.filter { wanted.contains($0.key) && (oldest...today).contains($0.value.days.upperBound) }
            .mapValues { known in
                guard known.days.lowerBound < oldest else { return known }
                return Series(days: oldest...known.days.upperBound, rates: known.rates.filter { $0.key >= oldest })
            }
    }
}

extension Candle {
    /// The origin of a candle that was derived from another currency's by the reference rate of its day.
    package static let derived = "derived"
    package var isDerived: Bool { origin == Self.derived }

    /// The candle in another currency; `nil` if its prices are not valid there.
    /// - Parameter rate: How much of the other currency buys one of this.
    package func derived(_ rate: Price, in currency: Currency) -> Candle? {
        let prices = [open, high, low, close].map { ($0 * rate).rounded(toPlaces: currency.places) }
        // Beside an exchange's prices, it is not all in doubt.
        let isKnown = isInDoubt || (doubtful ?? 0) < fresh
        return Candle(
            checkedStart: start, open: prices[0], high: prices[1], low: prices[2], close: prices[3], ticks: ticks,
            fresh: fresh, origin: Self.derived, covered: covered, doubtful: isKnown ? doubtful : nil, single: single,
            in: currency)
    }
}
