import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct RateHistoryTests {
    private let czk = EuroWorld.czk
    private let pln = Currency(rawValue: "PLN") ?? .usd

    @Test func `a rate is that of the last day that has both, and eight days are the most`() {
        let history = RateHistory(
            "frankfurter", of: .eur,
            [
                .usd: .init(days: 0...30, rates: [10: Price("1.25")!, 11: Price("1.2")!]),
                czk: .init(days: 0...30, rates: [9: 24, 10: 25, 12: 30]),
            ])
        #expect(history.rate(of: czk, per: .eur, on: 11) == 25)
        #expect(history.rate(of: czk, per: .usd, on: 10) == 20)
        // The day after has none of the dollar: two rates are of one day.
        #expect(history.rate(of: czk, per: .usd, on: 12) == 20)
        #expect(history.rate(of: .usd, per: czk, on: 10) == Price("0.05"))
        #expect(history.rate(of: czk, per: .eur, on: 20) == 30)
        #expect(history.rate(of: czk, per: .eur, on: 21) == nil)
        #expect(history.rate(of: czk, per: .eur, on: 8) == nil)
        #expect(history.rate(of: pln, per: .eur, on: 10) == nil)
        #expect(RateHistory.day(of: 86_400) == 1)
        #expect(RateHistory.day(of: 86_399) == 0)
    }

    @Test func `two years are requested in two requests, and then the new days`() {
        var history = RateHistory("frankfurter", of: .eur)
        var today: Int64 = 20_000
        func answer(_ wanted: Set<Currency>, renews: Bool = false) -> RateHistory.Request? {
            guard let request = history.next(for: wanted, today: today, renews: renews) else { return nil }
            // Today's rate is published in the afternoon.
            let rates = request.currencies.flatMap { currency in
                request.days.filter { $0 < today }.map { (currency: currency, day: $0, value: Price(25)) }
            }
            history.add(
                rates + [(.jpy, today - 1, 150), (czk, today - 2, 0), (czk, today + 1, 99)], request, today: today)
            return request
        }
        #expect(answer([czk, .eur]) == .init(currencies: [czk], days: 19_635...20_000))
        #expect(answer([czk, .eur]) == .init(currencies: [czk], days: 19_270...19_634))
        #expect(answer([czk]) == nil)
        #expect(history.series.keys.map(\.rawValue) == ["CZK"])
        #expect(history.series[czk]?.days == 19_270...19_999)
        #expect(history.series[czk]?.rates.count == 730)
        // A currency that is added gets its own. The last days are requested again, of all in one request.
        #expect(answer([czk, pln]) == .init(currencies: [pln], days: 19_635...20_000))
        #expect(answer([czk, pln], renews: true) == .init(currencies: [czk, pln], days: 19_997...20_000))
        #expect(history.series[czk]?.days == 19_270...19_999, "there was no rate yet")
        today += 3
        #expect(answer([czk], renews: true) == .init(currencies: [czk], days: 19_997...20_003))
        #expect(history.series[czk]?.rates[20_002] == 25)
        history.keep(only: [czk], today: today)
        #expect(history.series[czk]?.days == 19_273...20_002)
        // After more than a year everything is requested again.
        today += 400
        #expect(answer([czk], renews: true)?.days == 20_038...20_403)
        #expect(history.series[czk]?.days == 20_038...20_402)
        // A clock that was wrong.
        today = 20_010
        history.keep(only: [czk], today: today)
        #expect(history.series.isEmpty)
        #expect(history.next(for: [czk], today: today, renews: false)?.days == 19_645...20_010)
        history.keep(only: [pln], today: today)
        #expect(history.series.keys.isEmpty)
    }

    @Test func `days without a rate are known after a while`() {
        var history = RateHistory("frankfurter", of: .eur)
        let request = RateHistory.Request(currencies: [czk], days: 100...120)
        history.add([], request, today: 120)
        #expect(history.series[czk] == .init(days: 100...112, rates: [:]))
    }

    @Test func `a rate of one day that is far from those beside it is left out, until another day confirms it`() {
        var history = RateHistory("frankfurter", of: .eur)
        func add(_ rates: [(Int64, Price)], today: Int64) -> [Int64: Price] {
            history.add(
                rates.map { (czk, $0.0, $0.1) }, .init(currencies: [czk], days: (rates.first?.0 ?? 0)...today),
                today: today)
            return history.series[czk]?.rates ?? [:]
        }
        #expect(
            add([(100, 25), (101, 2500), (102, 25), (103, 26), (104, 60)], today: 104) == [100: 25, 102: 25, 103: 26])
        // A devaluation.
        #expect(add([(103, 26), (104, 60), (105, 61)], today: 105)[104] == 60)
        #expect(history.series[czk]?.rates.count == 5)
    }

    @Test func `a derived candle is in doubt if the other one is`() {
        var candle = Candle(start: 0, 100, isInDoubt: true)
        #expect(candle.derived(25, in: czk)?.isInDoubt == true)
        candle.fresh = 2
        candle.ticks = 2
        #expect(candle.derived(25, in: czk).map { [$0.isInDoubt, $0.doubtful == 1] } == [false, true])
        // Beside an exchange's prices, which are not in doubt.
        candle.doubtful = 2
        candle.origin = Candle.mixed
        #expect(candle.derived(25, in: czk)?.isInDoubt == false)
    }

    @Test func `a derived candle has the prices of the other one at the rate, and says so`() {
        let candle = Candle(
            start: 0, open: 100, high: 120, low: 90, close: 110, ticks: 60, fresh: 60, covered: 55, doubtful: 2,
            single: 1)
        let derived = candle.derived(25, in: czk)
        #expect(
            derived
                == Candle(
                    start: 0, open: 2500, high: 3000, low: 2250, close: 2750, ticks: 60, fresh: 60, origin: "derived",
                    covered: 55, doubtful: 2, single: 1))
        #expect(candle.derived(Price(1, scale: 12), in: czk) == nil)
    }
}
