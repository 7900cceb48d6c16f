import BTCPriceCore
import Glibc
import Testing

@testable import BTCPriceFeature

@Suite struct CandleLengthTests {
    private let utc = ReaderCalendar(isUTC: true)
    private let local = ReaderCalendar(isUTC: false)

    /// A moment of UTC, Unix seconds.
    private func at(_ text: String) throws -> Int64 {
        try ReaderTime.reading(text, isUTC: true, now: Timestamp(milliseconds: 0)).time.wholeSeconds
    }

    private func span(_ length: CandleLength, _ text: String, _ calendar: ReaderCalendar) throws -> [String] {
        let span = length.span(of: try at(text), calendar)
        let dates = TimestampFormatter(isUTC: true, isISO: true)
        return [span.lowerBound, span.upperBound].map { dates.string(from: Timestamp(milliseconds: $0 * 1000)) }
    }

    @Test(arguments: [
        (CandleLength.fiveMinutes, "2026-11-29T14:38:05", "2026-11-29T14:35:00Z", "2026-11-29T14:40:00Z"),
        (.quarterHour, "2026-11-29T14:45", "2026-11-29T14:45:00Z", "2026-11-29T15:00:00Z"),
        (.fourHours, "2026-11-29T03:59:59", "2026-11-29T00:00:00Z", "2026-11-29T04:00:00Z"),
        // Sunday, and the Monday after it.
        (.week, "2026-11-29T23:59:59", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"),
        (.week, "2026-11-30T00:00", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"),
        (.month, "2024-02-29T12:00", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"),
        (.month, "2026-12-31T23:59:59", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        (.month, "2026-01-01T00:00", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"),
    ])
    func `a candle begins where people expect it`(_ length: CandleLength, moment: String, start: String, end: String)
        throws
    {
        #expect(try span(length, moment, utc) == [start, end])
    }

    @Test func `weeks and months begin at the reader's midnight`() throws {
        try inZone("America/New_York") {
            // The clocks are set back on Sunday, November 1.
            let week = try span(.week, "2026-11-02T04:59", local)
            #expect(week == ["2026-10-26T04:00:00Z", "2026-11-02T05:00:00Z"])
            let month = try span(.month, "2026-11-15T00:00", local)
            #expect(month == ["2026-11-01T04:00:00Z", "2026-12-01T05:00:00Z"])
            let day = try span(.day, "2026-11-01T12:00", local)
            #expect(day == ["2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"])
            let hours = try span(.fourHours, "2026-11-01T12:00", local)
            #expect(hours[0] == "2026-11-01T12:00:00Z", "shorter ones are of UTC")
        }
    }

    @Test func `any moment is in its candle, and candles are next to each other`() {
        for zone in ["America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Pacific/Apia", "America/Sao_Paulo"] {
            inZone(zone) {
                for length in CandleLength.allCases {
                    for calendar in [utc, local] {
                        for step in 0..<200 {
                            let second = 1_300_000_000 + Int64(step) * 2_345_678
                            let span = length.span(of: second, calendar)
                            #expect(span.contains(second))
                            #expect(
                                length.span(of: span.upperBound, calendar).lowerBound == span.upperBound,
                                "\(zone) \(length) \(second)")
                            #expect(length.span(of: span.lowerBound, calendar) == span)
                        }
                    }
                }
            }
        }
    }

    private func candles(_ step: Candle.Step, from start: Int64, _ count: Int64) -> [Candle] {
        (0..<count).map { index in
            Candle(
                start: start + index * step.seconds, open: Price(100 + index), high: Price(110 + index),
                low: Price(90 + index),
                close: Price(101 + index), ticks: 10, fresh: 10)
        }
    }

    @Test func `longer candles are made as they come, and say how much is known`() throws {
        let start = try at("2026-11-23")
        let days = candles(.day, from: start, 16)
        for size in [1, 3, 16] {
            var merger = CandleMerger(.week, utc, at: start + 30 * 86_400)
            var made: [Candle] = []
            for first in stride(from: 0, to: days.count, by: size) {
                made += merger.add(Array(days[first..<min(first + size, days.count)]))
            }
            made += merger.finish()
            #expect(made.map(\.start) == [start, start + 7 * 86_400, start + 14 * 86_400])
            #expect(made[0].open == 100 && made[0].high == 116 && made[0].low == 90 && made[0].close == 107)
            #expect(made.map(\.ticks) == [70, 70, 20])
            #expect(made.map(\.coveredMinutes) == [nil, nil, 2880])
            #expect(merger.finish() == [])
        }
    }

    @Test func `a week of days with 23 and 25 hours is whole`() throws {
        try inZone("America/New_York") {
            for monday in ["2026-10-26T04:00", "2026-03-02T05:00"] {
                var start = try at(monday)
                var days: [Candle] = []
                for _ in 0..<7 {
                    days += candles(.day, from: start, 1)
                    start = local.startOfDay(after: start)
                }
                var merger = CandleMerger(.week, local, at: start)
                #expect(
                    merger.add(days) + merger.finish()
                        == [
                            days.reduce(into: nil) { (whole: inout Candle?, day) in
                                if whole == nil { whole = day } else { whole?.add(day) }
                            }
                        ].compactMap(\.self))
            }
        }
    }

    @Test func `too little of an exchange's candles is no candle, and own ones say what they have`() throws {
        let start = try at("2026-11-29T12:00")
        var four = candles(.hour, from: start, 3)
        var merger = CandleMerger(.fourHours, utc, at: start + 86_400)
        #expect((merger.add(four) + merger.finish()).map(\.coveredMinutes) == [180], "three of four hours")
        for index in four.indices { four[index].origin = "kraken" }
        #expect(merger.add(four) + merger.finish() == [], "an exchange's, less than five sixths")
    }
}
