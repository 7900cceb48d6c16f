/// The rates that one source has published, as they were received.
package struct ReferenceRateTable: Sendable, Hashable {
    /// A rate, and the day that it is of.
    package struct Rate: Sendable, Hashable {
        /// How much of the currency buys one of the base.
        package let value: Price
        /// Midnight of the day, UTC.
        package let date: Timestamp
    }

    /// The accepted rates. The dearest currency costs about three dollars, and of the cheapest ones a dollar buys a hundred thousand.
    package static let possible: ClosedRange<Price> = Price(1, scale: 4)...10_000_000

    /// The source's name: `ecb`.
    package let source: String
    /// The currency of which the rates buy one.
    package let base: Currency
    package internal(set) var rates: [Currency: Rate]
    /// The rates of an earlier day, as far as they are known.
    package internal(set) var earlier: [Currency: Rate]
    /// Newer rates that are not believed yet, each with the day of the first one.
    package internal(set) var refused: [Currency: Rate]
    /// When they were received.
    package let received: Timestamp

    /// - Parameters:
    ///   - rates: Those outside ``possible`` are left out.
    ///   - earlier: The same of an earlier day.
    ///   - refused: See ``refused``.
    package init(
        _ source: String, of base: Currency, _ rates: [(currency: Currency, value: Price, date: Timestamp)],
        earlier: [(currency: Currency, value: Price, date: Timestamp)] = [],
        refused: [(currency: Currency, value: Price, date: Timestamp)] = [], received: Timestamp
    ) {
        func possible(_ rates: [(currency: Currency, value: Price, date: Timestamp)]) -> [Currency: Rate] {
            Dictionary(
                rates.filter { Self.possible.contains($0.value) }.map {
                    ($0.currency, Rate(value: $0.value, date: $0.date))
                }, uniquingKeysWith: { first, _ in first })
        }
        self.source = source
        self.base = base
        self.received = received
        self.rates = possible(rates)
        self.earlier = possible(earlier)
        self.refused = possible(refused)
    }

    /// How much of `currency` buys one of `other`; `nil` if it does not have both.
    /// - Parameter day: Only the rates of this day count; `nil` for the newest ones.
    func rate(of currency: Currency, per other: Currency, on day: Timestamp? = nil) -> Rate? {
        func own(_ currency: Currency) -> Rate? {
            if currency == base { return Rate(value: 1, date: Timestamp(milliseconds: .max)) }
            return [rates[currency], earlier[currency]].compactMap(\.self).first { day == nil || $0.date == day }
        }
        guard let mine = own(currency), let theirs = own(other) else { return nil }
        let value = other == base ? mine.value : mine.value.divided(by: theirs.value, places: 10)
        return Rate(value: value, date: min(mine.date, theirs.date))
    }
}

extension ReferenceRateTable {
    /// How much of `currency` buys one of `other` by a newer rate that is not believed yet; `nil` if there is none.
    fileprivate func newer(of currency: Currency, per other: Currency) -> Price? {
        guard refused[currency] != nil || refused[other] != nil else { return nil }
        let own = { (currency: Currency) in currency == base ? 1 : (refused[currency] ?? rates[currency])?.value }
        guard let mine = own(currency), let theirs = own(other) else { return nil }
        return other == base ? mine : mine.divided(by: theirs, places: 10)
    }
}

/// A rate between two currencies that may be used.
package struct ReferenceRate: Sendable, Hashable {
    /// How much of the one currency buys one of the other.
    package let value: Price
    package let source: String
    /// Midnight of its day, UTC.
    package let date: Timestamp
    /// Whether a second source agrees.
    package let isConfirmed: Bool
    /// A newer rate of the source that is not believed yet; `nil` if there is none.
    package var newer: Price?

    /// How far the newer rate is away, as a natural logarithm.
    package var doubt: Double { newer.map { abs($0.logarithm - value.logarithm) } ?? 0 }
}

/// The reference rates of all sources: a pure value.
package struct ReferenceRates: Sendable, Hashable {
    private static let day = Duration.seconds(86_400).wholeMilliseconds
    /// A rate that is older is not used, days. Easter is five.
    package static let oldest: Int64 = 8
    /// A rate that is older is used with a warning, days.
    package static let old: Int64 = 5
    /// How far two sources may differ on the same day, as a natural logarithm.
    static let agreement = 0.01
    /// A rate that has moved farther since the last one of its source, as a natural logarithm, needs a second source.
    static let longestMove = 0.2
    /// After as many days of the same new rate it is believed without a second source.
    static let newRateLasts: Int64 = 2

    /// Of each source, in their order.
    package private(set) var tables: [ReferenceRateTable] = []
    /// The sources in their order.
    private var sources: [String] = []

    /// Whether there are rates, or sources of which they may come.
    var areWanted: Bool { !sources.isEmpty || !tables.isEmpty }

    /// Keeps the tables of these sources only.
    /// - Parameter sources: In their order.
    package mutating func keep(only sources: [String]) {
        self.sources = sources
        tables = sources.compactMap { source in tables.first { $0.source == source } }
    }

    /// Takes a new table. Of a currency that is missing in it, or whose rate is not believed, the old one stays.
    /// - Returns: The currencies whose rate is not believed, because it has moved too far and no second source agrees.
    package mutating func take(_ new: ReferenceRateTable) -> [Currency] {
        let before = tables.first { $0.source == new.source }
        var taken = new
        var refused: [Currency] = []
        if let before, before.base == new.base {
            for (currency, old) in before.rates where Self.age(of: old.date, at: new.received) <= Self.oldest {
                taken.earlier[currency] = before.earlier[currency]
                guard let rate = new.rates[currency] else {
                    taken.rates[currency] = old
                    taken.refused[currency] = before.refused[currency]
                    continue
                }
                let isBelieved =
                    abs(rate.value.logarithm - old.value.logarithm) <= Self.longestMove
                    || tables.contains { table in
                        table.source != new.source
                            && table.rate(of: currency, per: new.base).map {
                                abs($0.value.logarithm - rate.value.logarithm)
                                    <= Self.agreementOfDays(currency, per: new.base)
                            } == true
                    }
                let first = before.refused[currency].flatMap { first in
                    abs(first.value.logarithm - rate.value.logarithm)
                        <= Self.agreementOfDays(currency, per: new.base) ? first : nil
                }
                let since = first?.date ?? rate.date
                let hasLasted = Self.age(of: since, at: new.received) >= Self.newRateLasts && first != nil
                guard !isBelieved && !hasLasted || rate.date < old.date else {
                    if rate.date > old.date { taken.earlier[currency] = old }
                    continue
                }
                taken.rates[currency] = old
                guard !isBelieved else { continue }
                taken.refused[currency] = ReferenceRateTable.Rate(value: rate.value, date: since)
                refused.append(currency)
            }
        }
        tables.removeAll { $0.source == new.source }
        let rank = sources.firstIndex(of: new.source) ?? sources.count
        let next = tables.firstIndex { (sources.firstIndex(of: $0.source) ?? sources.count) > rank }
        tables.insert(taken, at: next ?? tables.count)
        return refused.sorted { $0.rawValue < $1.rawValue }
    }

    /// How far two sources may differ on different days: ``agreement`` and twice the move that 19 of 20 days do not exceed. The days between
    /// do not count, because a source chooses the day of its rates itself.
    private static func agreementOfDays(_ currency: Currency, per other: Currency) -> Double {
        agreement + 2 * currency.moves(against: other)
    }

    /// How much of `currency` buys one of `other`: the rate of the first source that has the newest day. Every other source must agree: its
    /// newest rate with this one and, if that is from an earlier day, also with this source's rate of that day.
    /// - Throws: ``DerivationError``: Why no rate may be used.
    package func rate(
        of currency: Currency, per other: Currency, at wall: Timestamp
    ) throws(DerivationError) -> ReferenceRate {
        let all = tables.compactMap { table in
            table.rate(of: currency, per: other).map { (table: table, rate: $0) }
        }
        guard let newest = all.map(\.rate.date).max() else {
            throw DerivationError(description: "no source has a reference rate of \(currency)")
        }
        let usable = all.filter { Self.age(of: $0.rate.date, at: wall) <= Self.oldest }
        guard let chosen = usable.first(where: { $0.rate.date == newest }) else {
            throw DerivationError(
                description:
                    "the reference rate of \(currency) is of \(newest.utc.date), \(Self.age(of: newest, at: wall)) days ago"
            )
        }
        for (table, rate) in usable where table.source != chosen.table.source {
            for own in [chosen.rate, chosen.table.rate(of: currency, per: other, on: rate.date)].compactMap(\.self) {
                let allowed =
                    own.date == rate.date ? Self.agreement : Self.agreementOfDays(currency, per: other)
                guard abs(rate.value.logarithm - own.value.logarithm) > allowed else { continue }
                throw DerivationError(
                    description:
                        "the reference rates of \(currency) differ: \(own.value) by \(chosen.table.source), \(rate.value) by \(table.source)"
                )
            }
        }
        return ReferenceRate(
            value: chosen.rate.value, source: chosen.table.source, date: chosen.rate.date,
            isConfirmed: usable.count > 1, newer: chosen.table.newer(of: currency, per: other))
    }

    /// The age of a date in whole days, by the calendar in UTC.
    static func age(of date: Timestamp, at wall: Timestamp) -> Int64 {
        (wall.milliseconds - date.milliseconds) / day
    }
}
