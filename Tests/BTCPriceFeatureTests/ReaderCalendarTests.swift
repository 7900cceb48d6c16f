import BTCPriceCore
import Testing

@testable import BTCPriceFeature

/// Days and hours of zones whose clocks change at unusual times.
@Suite struct ReaderCalendarTests {
    /// The first moment of a day, that of the next one and that of the day before.
    private static let days: [(zone: String, day: String, start: Int64, end: Int64, before: Int64)] = [
        // Without a midnight.
        ("Africa/Cairo", "2024-04-26", 1_714_082_400, 1_714_165_200, 1_713_996_000),
        ("Asia/Beirut", "2024-03-31", 1_711_836_000, 1_711_918_800, 1_711_749_600),
        ("America/Santiago", "2024-09-08", 1_725_768_000, 1_725_850_800, 1_725_681_600),
        ("America/Havana", "2024-03-10", 1_710_046_800, 1_710_129_600, 1_709_960_400),
        // With two.
        ("America/Havana", "2024-11-03", 1_730_606_400, 1_730_696_400, 1_730_520_000),
        // The time of the winter is the one with the flag of daylight saving time.
        ("Europe/Dublin", "2024-10-27", 1_729_983_600, 1_730_073_600, 1_729_897_200),
        ("Africa/Casablanca", "2024-03-10", 1_710_025_200, 1_710_115_200, 1_709_938_800),
        ("Africa/Casablanca", "2024-04-14", 1_713_052_800, 1_713_135_600, 1_712_966_400),
        // The clock is set by half an hour, and by two.
        ("Australia/Lord_Howe", "2024-04-07", 1_712_408_400, 1_712_496_600, 1_712_322_000),
        ("Australia/Lord_Howe", "2024-10-06", 1_728_135_000, 1_728_219_600, 1_728_048_600),
        ("Antarctica/Troll", "2024-03-31", 1_711_843_200, 1_711_922_400, 1_711_756_800),
        ("Antarctica/Troll", "2024-10-27", 1_729_980_000, 1_730_073_600, 1_729_893_600),
        // Without December 30.
        ("Pacific/Apia", "2011-12-29", 1_325_152_800, 1_325_239_200, 1_325_066_400),
        ("Pacific/Apia", "2011-12-31", 1_325_239_200, 1_325_325_600, 1_325_152_800),
        // A quarter and three quarters of an hour.
        ("Asia/Kathmandu", "2024-01-01", 1_704_046_500, 1_704_132_900, 1_703_960_100),
        ("Pacific/Chatham", "2024-04-07", 1_712_398_500, 1_712_488_500, 1_712_312_100),
        ("UTC", "2024-02-29", 1_709_164_800, 1_709_251_200, 1_709_078_400),
    ]

    @Test(arguments: days) func `a day begins at its first moment`(
        zone: String, day: String, start: Int64, end: Int64, before: Int64
    ) throws {
        try inZone(zone) {
            let calendar = ReaderCalendar(isUTC: false)
            for moment in [start, (start + end) / 2, end - 1] {
                #expect(calendar.startOfDay(moment) == start)
                #expect(calendar.startOfDay(after: moment) == end)
                let now = Timestamp(milliseconds: moment * 1000)
                for (text, expected) in [(day, start), ("today", start), ("yesterday", before)] {
                    let read = try ReaderTime.reading(text, isUTC: false, now: now).time
                    #expect(read.milliseconds == expected * 1000, "\(text)")
                    // The day of UTC has the same date.
                    let utcDay = ReaderTime.utcDay(text, read: read, isUTC: false, now: now)
                    let formatter = TimestampFormatter(isUTC: true, isISO: true)
                    #expect(
                        utcDay.map(formatter.string) == TimestampFormatter(isISO: true).date(of: read) + "T00:00:00Z")
                }
                #expect(ReaderTime.utcDay("24h", read: now, isUTC: false, now: now) == nil)
                #expect(TimestampFormatter(isISO: true).date(of: now) == day)
            }
        }
    }

    @Test func `a day that a zone has left out does not exist`() {
        inZone("Pacific/Apia") {
            let now = Timestamp(milliseconds: 1_795_000_000_000)
            let mistake = #expect(throws: ReaderTime.Mistake.self) {
                try ReaderTime.reading("2011-12-30", isUTC: false, now: now).time
            }
            #expect(mistake?.message == "there is no day '2011-12-30' in this time zone")
        }
    }

    @Test(
        arguments: [
            ("Europe/Dublin", "2024-10-27T01:30", 1_729_989_000, 3600, "01:30 IST", "01:30 GMT"),
            ("Africa/Casablanca", "2024-03-10T02:30", 1_710_034_200, 3600, "02:30 +01", "02:30 +00"),
            ("Australia/Lord_Howe", "2024-04-07T01:45", 1_712_414_700, 1800, "01:45 +11", "01:45 +1030"),
            ("Antarctica/Troll", "2024-10-27T02:00", 1_729_987_200, 7200, "02:00 +02", "02:00 +00"),
            ("Pacific/Chatham", "2024-04-07T03:00", 1_712_409_300, 3600, "03:00 +1345", "03:00 +1245"),
            ("America/Havana", "2024-11-03T00:30", 1_730_608_200, 3600, "00:30 CDT", "00:30 CST"),
            ("America/New_York", "2024-11-03T01:30", 1_730_611_800, 3600, "01:30 EDT", "01:30 EST"),
        ] as [(String, String, Int64, Int64, String, String)])
    func `a time that the clocks show twice is the first one, and has its zone`(
        zone: String, text: String, first: Int64, length: Int64, early: String, late: String
    ) throws {
        try inZone(zone) {
            let now = Timestamp(milliseconds: first * 1000 + 86_400_000)
            let read = try ReaderTime.reading(text, isUTC: false, now: now)
            #expect(read.time.milliseconds == first * 1000)
            let second = try #require(read.second)
            #expect(second.milliseconds == (first + length) * 1000)
            let formatter = TimestampFormatter(present: now)
            #expect(formatter.string(from: read.time).hasSuffix(", \(early)"))
            #expect(formatter.string(from: second).hasSuffix(", \(late)"))
            let exact = TimestampFormatter(isISO: true).string(from: second)
            #expect(try ReaderTime.reading(exact, isUTC: false, now: now) == .init(time: second))
        }
    }

    @Test func `seconds are shown where they count`() {
        var formatter = TimestampFormatter(isUTC: true, present: Timestamp(milliseconds: 1_724_596_200_000))
        formatter.hasSeconds = true
        #expect(formatter.string(from: Timestamp(milliseconds: 1_724_596_205_999)) == "Aug 25, 14:30:05")
        #expect(formatter.date(of: Timestamp(milliseconds: 1_724_596_205_999)) == "Aug 25")
        #expect(formatter.date(of: Timestamp(milliseconds: 1_704_046_500_000)) == "Dec 31 2023")
    }

    /// 2024-02-29T10:00:05Z and 2026-05-31T12:00Z
    @Test(
        arguments: [
            ("1y", 1_709_200_805, "2023-02-28T10:00:05Z"), ("4y", 1_709_200_805, "2020-02-29T10:00:05Z"),
            ("12mo", 1_709_200_805, "2023-02-28T10:00:05Z"), ("3mo", 1_780_228_800, "2026-02-28T12:00:00Z"),
            ("-1mo", 1_780_228_800, "2026-04-30T12:00:00Z"), ("2y", 1_780_228_800, "2024-05-31T12:00:00Z"),
        ] as [(String, Int64, String)])
    func `a year and a month ago are by the calendar`(text: String, now: Int64, expected: String) throws {
        let read = try ReaderTime.reading(text, isUTC: true, now: Timestamp(milliseconds: now * 1000 + 7)).time
        #expect(TimestampFormatter(isUTC: true, isISO: true).string(from: read) == expected)
        #expect(read.milliseconds % 1000 == 7)
    }

    @Test func `a year ago has the same time of day in the reader's zone`() throws {
        // On 2024-10-28 Berlin had winter time, on 2023-10-28 summer time.
        let read = try inZone("Europe/Berlin") {
            let now = try ReaderTime.reading("2024-10-28T09:00", isUTC: false, now: Timestamp(milliseconds: 0)).time
            return TimestampFormatter(isISO: true).string(
                from: try ReaderTime.reading("1y", isUTC: false, now: now).time)
        }
        #expect(read == "2023-10-28T09:00:00+02:00")
    }

    // MARK: - Days of hours

    private func hours(_ range: Range<Int64>) -> [Candle] {
        stride(from: Candle.Step.hour.start(of: range.lowerBound), to: range.upperBound, by: 3600).map {
            Candle(start: $0, Price($0 % 1_000_000, scale: 0) + 1)
        }
    }

    @Test(arguments: days) func `a whole day is made of its hours and, at its edges, of minutes`(
        zone: String, day: String, start: Int64, end: Int64, before: Int64
    ) throws {
        try inZone(zone) {
            let days = ReaderDays(
                from: Timestamp(milliseconds: start * 1000), to: Timestamp(milliseconds: start * 1000 + 1),
                calendar: ReaderCalendar(isUTC: false))
            let asked = try #require(days.hours)
            #expect(asked.from.milliseconds / 1000 == start / 3600 * 3600)
            #expect(asked.to.milliseconds / 1000 == end)
            let known = hours(start..<end)
            let cut = days.cut(known)
            let edges = Set([start, end].filter { $0 % 3600 != 0 }.map { $0 - $0 % 3600 })
            #expect(cut == edges.sorted())
            let minutes = cut.flatMap { hour in (0..<60).map { Candle(start: hour + $0 * 60, 7) } }
            let made = days.candles(hours: known, minutes: minutes, at: end + 86_400)
            #expect(made.map(\.start) == [start])
            #expect(made.first?.coveredMinutes == nil)
            let parts = known.filter { !cut.contains($0.start) } + minutes.filter { (start..<end).contains($0.start) }
            #expect(made.first?.ticks == Int64(parts.count))
            // Without the minutes, and while it runs, it is a part.
            let part = days.candles(hours: known, minutes: [], at: end + 86_400)
            #expect((part.first?.coveredMinutes != nil) == !cut.isEmpty)
            let running = days.candles(hours: Array(known.dropLast(3)), minutes: minutes, at: end - 7200)
            #expect(running.first?.coveredMinutes != nil)
        }
    }

    @Test func `a few hours of an exchange make no day`() {
        inZone("America/New_York") {
            let (start, end): (Int64, Int64) = (1_709_269_200, 1_709_355_600)
            let days = ReaderDays(
                from: Timestamp(milliseconds: start * 1000 - 5), to: Timestamp(milliseconds: end * 1000),
                calendar: ReaderCalendar(isUTC: false))
            var known = hours(start..<end)
            for index in known.indices { known[index].origin = "coinbase" }
            #expect(days.candles(hours: known, minutes: [], at: end).map(\.start) == [start])
            #expect(days.candles(hours: Array(known.prefix(20)), minutes: [], at: end).first?.coveredMinutes == 1200)
            #expect(days.candles(hours: Array(known.prefix(19)), minutes: [], at: end).isEmpty)
            known[0].origin = Candle.own
            #expect(days.candles(hours: Array(known.prefix(19)), minutes: [], at: end).first?.coveredMinutes == 60)
        }
    }
}
