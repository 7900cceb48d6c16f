import BTCPriceCore
import Glibc
import TestSupport
import Testing

@testable import BTCPriceFeature

@Suite struct PresentationTests {
    @Test(arguments: [
        ("68901.23", "$68,901.23"), ("68901.2", "$68,901.20"), ("68901", "$68,901.00"), ("0.5", "$0.50"),
        ("999.999", "$1,000.00"), ("1234567.891", "$1,234,567.89"), ("99999999.995", "$100,000,000.00"),
        // Half to even.
        ("68901.225", "$68,901.22"), ("68901.235", "$68,901.24"), ("68901.2250001", "$68,901.23"),
        ("68901.2249999", "$68,901.22"), ("0.005", "$0.00"), ("0.015", "$0.02"), ("75500.99", "$75,500.99"),
        ("-1234.5", "-$1,234.50"),
    ])
    func `prices are shown with cents, rounded half to even`(value: String, expected: String) {
        #expect(MoneyFormatter().string(from: Price(value) ?? 0, currency: "USD") == expected)
    }

    @Test(arguments: [
        ("UTC", 1_724_596_200_000, "Aug 25, 14:30"), ("Europe/Berlin", 1_724_596_200_000, "Aug 25, 16:30"),
        ("America/New_York", 1_724_596_200_000, "Aug 25, 10:30"), ("Asia/Kolkata", 1_724_596_200_000, "Aug 25, 20:00"),
        ("<+0330>-3:30", 1_724_596_200_000, "Aug 25, 18:00"), ("UTC", 1_767_225_599_999, "Dec 31, 23:59"),
        ("UTC", 1_767_225_600_000, "Jan 1, 00:00"), ("UTC", 1_709_164_800_000, "Feb 29, 00:00"),
        ("UTC", 0, "Jan 1, 00:00"),
        // The two sides of the end of summer time.
        ("Europe/Berlin", 1_729_990_799_000, "Oct 27, 02:59 CEST"),
        ("Europe/Berlin", 1_729_990_800_000, "Oct 27, 02:00 CET"),
    ])
    func `times are in the reader's time zone`(zone: String, milliseconds: Int64, expected: String) {
        let time = Timestamp(milliseconds: milliseconds)
        let text = inZone(zone) { TimestampFormatter(present: time).string(from: time) }
        #expect(text == expected)
    }

    @Test(arguments: [
        ("UTC", false, "2024-08-25T14:30:05+00:00"), ("Europe/Berlin", false, "2024-08-25T16:30:05+02:00"),
        ("America/St_Johns", false, "2024-08-25T12:00:05-02:30"), ("Europe/Berlin", true, "2024-08-25T14:30:05Z"),
    ])
    func `times as ISO 8601 have their offset`(zone: String, isUTC: Bool, expected: String) {
        let time = Timestamp(milliseconds: 1_724_596_205_999)
        let text = inZone(zone) { TimestampFormatter(isUTC: isUTC, isISO: true).string(from: time) }
        #expect(text == expected)
        let short = inZone(zone) { TimestampFormatter(isUTC: true, present: time).string(from: time) }
        #expect(short == "Aug 25, 14:30")
    }

    @Test(arguments: [
        ("UTC", 1_795_350_600_000, "Aug 25 2024, 14:30"), ("UTC", 1_735_689_599_999, "Aug 25, 14:30"),
        ("UTC", 1_735_689_600_000, "Aug 25 2024, 14:30"), ("Europe/Berlin", 1_735_686_000_000, "Aug 25 2024, 16:30"),
    ])
    func `a time in another year has its year`(zone: String, present: Int64, expected: String) {
        let formatter = TimestampFormatter(present: Timestamp(milliseconds: present))
        #expect(inZone(zone) { formatter.string(from: Timestamp(milliseconds: 1_724_596_200_000)) } == expected)
    }

    @Test(arguments: [
        ("0.05btc", "0.05 BTC"), ("5000000sat", "5,000,000 sat"), ("999sat", "999 sat"), ("1000.5sat", "1,000.5 sat"),
        ("21000000btc", "21,000,000 BTC"),
        ("3445.065usd", "$3,445.06"), ("0.01usd", "$0.01"), ("0.0006890123usd", "$0.0006890123"), ("0usd", "$0.00"),
    ])
    func `amounts are shown with their unit`(text: String, expected: String) {
        #expect(Amount(text).map(AmountFormatter().string(from:)) == expected)
    }

    @Test(arguments: [
        ("68901.23", "USD", "1,451 sat per $1"), ("55020.1", "CHF", "1,818 sat per CHF 1"),
        ("10345678", "JPY", "9.7 sat per ¥1"), ("1000000", "USD", "100 sat per $1"),
        ("0.01", "USD", "10,000,000,000 sat per $1"), ("1", "SEK", "100,000,000 sat per SEK 1"),
    ])
    func `a price in satoshis is what one unit buys`(price: String, currency: String, expected: String) throws {
        #expect(SatoshiFormatter().string(from: try #require(Price(price)), currency: currency) == expected)
    }

    @Test func `the direction is that of the last change`() {
        let model = PriceViewModel()
        var directions: [PriceDirection] = []
        for value in ["5", "5", "6", "6", "4"] {
            model.show(state(.fresh, value), at: now)
            directions.append(model.direction)
        }
        model.show(state(.none), at: now)
        model.show(state(.fresh, "4.5"), at: now)
        directions.append(model.direction)
        #expect(directions == [.flat, .flat, .up, .up, .down, .up])
    }

    private let now = ObservationTime(wall: Timestamp(milliseconds: 1_724_596_202_000), boottime: 0)
    private let formatter = TimestampFormatter(present: Timestamp(milliseconds: 1_724_596_202_000))

    private func state(_ freshness: Freshness, _ value: String = "68901.23") -> PriceState {
        PriceState(
            tick: 1, freshness: freshness,
            quote: freshness == .none
                ? nil
                : PriceQuote(
                    value: Price(value) ?? 0, currency: "USD",
                    timestamp: Timestamp(milliseconds: 1_724_596_200_000), source: "binance", market: "BTC/USDT"),
            observedBoottime: nil, confirmation: nil, failure: nil)
    }

    @Test(arguments: [
        (86_399, ""), (86_400, " (1 day ago)"), (63_072_000, " (730 days ago)"),
    ])
    func `after a day the age follows the time`(seconds: Int64, expected: String) {
        let model = PriceViewModel(timestampFormatter: formatter)
        let later = ObservationTime(
            wall: Timestamp(milliseconds: 1_724_596_200_000 + seconds * 1000), boottime: 0)
        inZone("UTC") { model.show(state(.stale), at: later) }
        #expect(
            model.banner == "Failed to update value. Displaying last updated value from Aug 25, 14:30\(expected)")
    }

    @Test func `a daemon that does not say who paused it, and a warning about a confirmed price`() {
        let model = PriceViewModel(timestampFormatter: formatter)
        var paused = state(.stale)
        paused.ticks.failure = PriceState.pausedFailure
        model.show(paused, at: now)
        #expect(model.reason?.contains("An idle pause ends with this request.") == true, "\(model.reason ?? "")")
        var warned = state(.fresh)
        warned.price?.confirmation = .confirmed
        warned.standing.warning = "coinbase ($71,827.87) contradicts it"
        model.show(warned, at: now)
        #expect(model.notes == ["Warning: coinbase ($71,827.87) contradicts it."])
    }

    @Test(
        arguments: [
            (nil, 60, nil, []), (38 * 60, 60, 0, ["38 of 60 minutes"]), (nil, 60, 3, ["in doubt: 3 of 60 ticks"]),
            (38 * 60, 60, 60, ["38 of 60 minutes", "unconfirmed"]), (7, 7, nil, ["7 of 60 s"]),
        ] as [(Int64?, Int64, Int64?, [String])])
    func `a candle says what it covers and what is in doubt`(
        covered: Int64?, fresh: Int64, doubtful: Int64?, expected: [String]
    ) {
        let candle = Candle(
            start: 0, open: 1, high: 1, low: 1, close: 1, ticks: fresh, fresh: fresh, covered: covered,
            doubtful: doubtful)
        #expect(PriceTexts.notes(on: candle, minutes: 60) == expected)
        var single = candle
        single.single = 5
        #expect(PriceTexts.notes(on: single, minutes: 60) == expected + ["of one source: 5 of \(fresh) ticks"])
    }

    @Test func `a day says since when and how much of it is known, and stands still while the ticks are paused`() {
        let now = Timestamp(milliseconds: 86_400_000)
        var state = PriceState.empty()
        let day = { (minutes: Int64, covered: Int64?) in
            PriceDay(
                since: Timestamp(milliseconds: now.milliseconds - minutes * 60_000), open: 100, high: 130, low: 90,
                close: 99, coveredMinutes: covered)
        }
        let texts = [day(1439, 1200), day(1439, 1100), day(30, nil), day(30, 24)].map {
            PriceTexts.day($0, currency: "USD", at: now)
        }
        #expect(
            texts == [
                "24 h: -1.00 %, low $90.00, high $130.00",
                "24 h: -1.00 %, low $90.00, high $130.00 (1100 of 1439 minutes)",
                "since 30 min: -1.00 %, low $90.00, high $130.00",
                "since 30 min: -1.00 %, low $90.00, high $130.00 (24 of 30 minutes)",
            ])
        state.day = day(1, 1)
        #expect(state.shownDay(at: now) == nil)
        state.day = day(2, 2)
        #expect(state.shownDay(at: now) == state.day)
        state.ticks.failure = PriceState.pausedFailure
        #expect(state.shownDay(at: now) == nil)
    }
}
