import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct ReferenceRatesTests {
    /// Friday, 2026-11-20.
    private static let friday = Timestamp(milliseconds: 1_795_132_800_000)

    private static func day(_ days: Int64, hours: Int64 = 0) -> Timestamp {
        Timestamp(milliseconds: friday.milliseconds + (days * 24 + hours) * 3_600_000)
    }

    private func table(
        _ source: String, _ rates: [String: String], of base: Currency = .eur, day: Int64 = 0, received: Int64? = nil
    ) -> ReferenceRateTable {
        ReferenceRateTable(
            source, of: base,
            rates.compactMap { code, value in
                Currency(rawValue: code).map { ($0, price(value), Self.day(day)) }
            }, received: Self.day(received ?? day, hours: 16))
    }

    private func rates(_ tables: [ReferenceRateTable]) -> ReferenceRates {
        var rates = ReferenceRates()
        rates.keep(only: ["ecb", "frankfurter"])
        for table in tables { _ = rates.take(table) }
        return rates
    }

    private func rate(
        _ rates: ReferenceRates, _ code: String = "CZK", per other: Currency = .eur, day: Int64 = 0, hours: Int64 = 17
    ) -> String {
        do throws(DerivationError) {
            let rate = try rates.rate(of: Currency(rawValue: code) ?? .usd, per: other, at: Self.day(day, hours: hours))
            return "\(rate.value) \(rate.source) \(rate.date.utc.date)\(rate.isConfirmed ? " confirmed" : "")"
        } catch {
            return error.description
        }
    }

    @Test func `a rate lasts over a weekend and Easter, and for eight days at most`() {
        let rates = self.rates([table("ecb", ["CZK": "24.527"])])
        for (day, hours) in [(0, 16), (2, 12), (5, 0), (8, 23)] as [(Int64, Int64)] {
            #expect(rate(rates, day: day, hours: hours) == "24.527 ecb 2026-11-20")
        }
        #expect(rate(rates, day: 9, hours: 0) == "the reference rate of CZK is of 2026-11-20, 9 days ago")
        #expect(rate(rates, "AED") == "no source has a reference rate of AED")
    }

    @Test func `a rate per dollar is made of two rates per euro of the same source`() {
        let rates = self.rates([
            table("ecb", ["CZK": "24.527"]), table("frankfurter", ["USD": "1.15", "AED": "4.223375", "CZK": "24.527"]),
        ])
        #expect(rate(rates, "AED", per: .usd) == "3.6725 frankfurter 2026-11-20")
        // The first source has no rate of the dollar.
        #expect(rate(rates, "CZK", per: .usd) == "21.327826087 frankfurter 2026-11-20")
        #expect(rate(rates, "CZK") == "24.527 ecb 2026-11-20 confirmed")
    }

    @Test(arguments: [("24.7", true), ("24.8", false), ("245.27", false)])
    func `two sources that differ by more than one percent are not used`(other: String, isUsed: Bool) {
        let rates = self.rates([table("ecb", ["CZK": "24.527"]), table("frankfurter", ["CZK": other])])
        #expect(
            rate(rates)
                == (isUsed
                    ? "24.527 ecb 2026-11-20 confirmed"
                    : "the reference rates of CZK differ: 24.527 by ecb, \(other) by frankfurter"))
    }

    @Test func `a rate that a newer one contradicts is in doubt, and after two days of it the new one counts`() throws {
        var rates = self.rates([table("mine", ["CZK": "24.5"])])
        for day in 1...4 as ClosedRange<Int64> {
            let refused = rates.take(table("mine", ["CZK": "44.\(day)"], day: day))
            let rate = try rates.rate(of: EuroWorld.czk, per: .eur, at: Self.day(day, hours: 17))
            if day < 3 {
                #expect(refused == [EuroWorld.czk] && rate.value == price("24.5") && rate.newer == price("44.\(day)"))
            } else {
                #expect(refused.isEmpty && rate.value == price("44.\(day)") && rate.newer == nil)
            }
        }
    }

    @Test func `the newest day counts, whatever the order of the sources`() {
        let rates = self.rates([
            table("ecb", ["CZK": "24.527"]), table("frankfurter", ["CZK": "24.9"], day: 3),
        ])
        #expect(rate(rates, day: 3) == "24.9 frankfurter 2026-11-23 confirmed")
    }

    /// The usual day's move of the koruna is 0.3 %, of the dirham 0.1 % against the dollar, of an unknown currency 1.5 %.
    @Test(arguments: [
        ("CZK", Currency.eur, "24.88", true), ("CZK", .eur, "24.95", false), ("AED", .usd, "24.78", true),
        ("AED", .usd, "24.82", false), ("ISK", .eur, "25.4", true), ("ISK", .eur, "25.6", false),
    ])
    func `a newer day moves a rate by one percent and two usual moves at most`(
        code: String, other: Currency, moved: String, isUsed: Bool
    ) {
        let rates = self.rates([
            table("ecb", [code: "24.5"], of: other), table("frankfurter", [code: moved], of: other, day: 3),
        ])
        #expect(
            rate(rates, code, per: other, day: 3)
                == (isUsed
                    ? "\(moved) frankfurter 2026-11-23 confirmed"
                    : "the reference rates of \(code) differ: \(moved) by frankfurter, 24.5 by ecb"))
    }

    @Test func `a source that is always a day ahead is compared with its rate of the day before, too`() {
        var rates = self.rates([])
        // 1.4 % too high: on another day, that may be the move of the day.
        for day in 0...3 as ClosedRange<Int64> {
            _ = rates.take(table("frankfurter", ["CZK": "24.85", "USD": "1.16"], day: day + 1, received: day))
            _ = rates.take(table("ecb", ["CZK": "24.5", "USD": "1.16"], day: day))
            let shown = rate(rates, day: day)
            #expect(shown == (day == 0 ? "24.85 frankfurter 2026-11-21 confirmed" : Self.differing), "day \(day)")
        }
        #expect(rate(rates, per: .usd, day: 3).contains("differ"))
        // It is right again.
        for day in 4...5 as ClosedRange<Int64> {
            _ = rates.take(table("frankfurter", ["CZK": "24.6", "USD": "1.16"], day: day + 1, received: day))
            _ = rates.take(table("ecb", ["CZK": "24.5", "USD": "1.16"], day: day))
        }
        #expect(rate(rates, day: 5) == "24.6 frankfurter 2026-11-26 confirmed")
    }

    private static let differing = "the reference rates of CZK differ: 24.85 by frankfurter, 24.5 by ecb"

    @Test func `a rate that is not believed is not the one of the day before`() {
        var rates = self.rates([table("ecb", ["CZK": "24.5"])])
        #expect(rates.take(table("ecb", ["CZK": "245"], day: 1)) == [EuroWorld.czk])
        #expect(rates.tables[0].earlier == [:])
        _ = rates.take(table("ecb", ["CZK": "24.6"], day: 2))
        #expect(rates.tables[0].earlier[EuroWorld.czk]?.value == price("24.5"))
        // A table that is received again changes nothing.
        _ = rates.take(table("ecb", ["CZK": "24.6"], day: 2))
        _ = rates.take(table("ecb", ["HUF": "390"], day: 3))
        #expect(rates.tables[0].earlier[EuroWorld.czk]?.value == price("24.5"))
    }

    @Test func `a rate that has moved by a factor needs a second source, and the old one lasts`() {
        var rates = self.rates([])
        #expect(rates.take(table("ecb", ["CZK": "24.5", "ARS": "1650"])) == [])
        #expect(rates.take(table("ecb", ["CZK": "245", "ARS": "1660"], day: 1)) == [EuroWorld.czk])
        #expect(rate(rates, day: 1) == "24.5 ecb 2026-11-20")
        #expect(rate(rates, "ARS", day: 1) == "1660 ecb 2026-11-21")
        // Argentina halved the value of its peso on 2023-12-12. A second source shows it.
        #expect(rates.take(table("frankfurter", ["ARS": "3300"], day: 2)) == [])
        #expect(rates.take(table("ecb", ["ARS": "3310"], day: 2)) == [])
        #expect(rate(rates, "ARS", day: 2) == "3310 ecb 2026-11-22 confirmed")
        // Without one, it is believed when the old one is too old to be used.
        #expect(rates.take(table("ecb", ["CZK": "245"], day: 9)) == [])
        #expect(rate(rates, day: 9) == "245 ecb 2026-11-29")
    }

    @Test func `a currency that is missing keeps its rate, and an older table changes nothing`() {
        var rates = self.rates([table("ecb", ["CZK": "24.5", "HUF": "390"])])
        _ = rates.take(table("ecb", ["CZK": "24.6"], day: 1))
        #expect(rate(rates, "HUF", day: 1) == "390 ecb 2026-11-20")
        _ = rates.take(table("ecb", ["CZK": "24.4"], day: -1, received: 1))
        #expect(rate(rates, day: 1) == "24.6 ecb 2026-11-21")
    }

    @Test func `the first source counts, whichever responds first`() {
        let rates = rates([table("frankfurter", ["CZK": "24.6"]), table("ecb", ["CZK": "24.5"])])
        #expect(rate(rates) == "24.5 ecb 2026-11-20 confirmed")
    }

    @Test func `rates outside the possible range are left out`() {
        let rates = self.rates([table("ecb", ["CZK": "0.00001", "HUF": "20000000", "PLN": "4.3"])])
        #expect(rate(rates) == "no source has a reference rate of CZK")
        #expect(rate(rates, "HUF") == "no source has a reference rate of HUF")
        #expect(rate(rates, "PLN") == "4.3 ecb 2026-11-20")
    }
}
