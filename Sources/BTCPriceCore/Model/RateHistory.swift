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
        package let currencies: [Currency]
        package let days: ClosedRange<Int64>

        package init(currencies: [Currency], days: ClosedRange<Int64>) {
            self.currencies = currencies
            self.days = days
        }
    }

    /// The days that are wanted: two years.
    static let wantedDays: Int64 = 731
    /// The days of one request.
    static let daysOfRequest: Int64 = 366

    package let source: String
    /// The currency of which the rates buy one.
    package let base: Currency
    package private(set) var series: [Currency: Series]

    package init(_ source: String, of base: Currency, _ series: [Currency: Series] = [:]) {
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

    /// The next request: for a year of a currency of which nothing is known, for the days since the last one, then for earlier years.
    /// - Parameter renews: Whether days since the last one are wanted, which may have no rate yet.
    func next(for wanted: Set<Currency>, today: Int64, renews: Bool) -> Request? {
        var needs: [Currency: ClosedRange<Int64>] = [:]
        let oldest = today - Self.wantedDays + 1
        for currency in wanted where currency != base {
            guard let days = series[currency]?.days, days.upperBound <= today else {
                needs[currency] = today - Self.daysOfRequest + 1...today
                continue
            }
            if renews, days.upperBound < today {
                needs[currency] = max(days.upperBound + 1, today - Self.daysOfRequest + 1)...today
            } else if days.lowerBound > oldest {
                needs[currency] = max(oldest, days.lowerBound - Self.daysOfRequest)...days.lowerBound - 1
            }
        }
        guard let newest = needs.values.max(by: { ($0.upperBound, $0.count) < ($1.upperBound, $1.count) }) else {
            return nil
        }
        let currencies = needs.filter { $0.value == newest }.keys.sorted { $0.rawValue < $1.rawValue }
        return Request(currencies: currencies, days: newest)
    }

    /// Adds the response to a request.
    /// - Parameter rates: Those that were not requested, or are outside ``ReferenceRateTable/possible``, are left out.
    mutating func add(_ rates: [(currency: Currency, day: Int64, value: Price)], _ request: Request, today: Int64) {
        for currency in request.currencies {
            let valid = rates.filter {
                $0.currency == currency && request.days.contains($0.day)
                    && ReferenceRateTable.possible.contains($0.value)
            }
            let new = Dictionary(valid.map { ($0.day, $0.value) }) { first, _ in first }
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

    /// Forgets all other currencies, and days that are no longer wanted.
    mutating func keep(only wanted: Set<Currency>, today: Int64) {
        let oldest = today - Self.wantedDays + 1
        series = series.filter { wanted.contains($0.key) && $0.value.days.upperBound >= oldest }.mapValues { known in
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
        return Candle(
            checkedStart: start, open: prices[0], high: prices[1], low: prices[2], close: prices[3], ticks: ticks,
            fresh: fresh, origin: Self.derived, covered: covered, doubtful: doubtful, single: single, in: currency)
    }
}
