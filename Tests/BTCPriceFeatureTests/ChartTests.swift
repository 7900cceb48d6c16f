import BTCPriceCore
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import BTCPriceFeature

@Suite struct ChartTests {
    /// 2024-08-26, 12:00 UTC.
    private static let now: Int64 = 1_724_673_600

    private static func candles(_ step: Candle.Step, _ count: Int64, gap: Range<Int64> = 0..<0) -> [Candle] {
        Candle.samples(step, count, until: now, gap: gap)
    }

    private func text(
        _ candles: [Candle], _ span: ChartSpan, width: Int, height: Int, isCandles: Bool = false,
        symbols: Chart.Symbols = .braille
    ) -> [String] {
        let axis = span.axis(now: Self.now, first: candles.first?.start, isUTC: true, width: width)
        return Chart(
            candles, axis: axis, currency: "USD", size: (width, height), isCandles: isCandles, symbols: symbols
        )
        .lines.map { $0.parts.map(\.text).joined() }
    }

    /// The expected texts, each in a section of the file next to this one. UPDATE_GOLDEN writes them again.
    private static let golden = String(#filePath.dropLast("Tests.swift".count)) + ".golden"

    @Test func `charts at four sizes match the golden file`() throws {
        let day = Self.candles(.minute, 1440, gap: 500..<640)
        let month = Self.candles(.hour, 720)
        let charts: [(name: String, lines: [String])] = [
            ("40 columns, 24 h", text(day, .day, width: 40, height: 10)),
            ("80 columns, 24 h, candles", text(day, .day, width: 80, height: 18, isCandles: true)),
            ("120 columns, 30 d", text(month, .month, width: 120, height: 26)),
            ("200 columns, 30 d, candles", text(month, .month, width: 200, height: 30, isCandles: true)),
            ("40 columns, ASCII", text(day, .day, width: 40, height: 10, symbols: .ascii)),
            ("40 columns, blocks", text(day, .day, width: 40, height: 10, symbols: .blocks)),
            (
                "80 columns, candles, ASCII",
                text(month, .month, width: 80, height: 16, isCandles: true, symbols: .ascii)
            ),
        ]
        let drawn = charts.map { "== \($0.name)\n\($0.lines.joined(separator: "\n"))\n" }.joined(separator: "\n")
        if getenv("UPDATE_GOLDEN") != nil { try Data(drawn.utf8).write(to: URL(filePath: Self.golden)) }
        let kept = String(decoding: try Data(contentsOf: URL(filePath: Self.golden)), as: UTF8.self)
        #expect(drawn == kept)
        for (name, lines) in charts {
            let width = try #require(Int(name.prefix { $0.isNumber }))
            #expect(lines.allSatisfy { $0.count <= width }, "\(name)")
            #expect(lines.contains { $0.contains("▲") || $0.contains("^") }, "\(name): the highest price is marked")
            #expect(lines.contains { $0.contains("▼") || $0.contains("v ") }, "\(name): the lowest price is marked")
            if name.contains("ASCII") { #expect(lines.allSatisfy { $0.utf8.count == $0.count }) }
        }
    }

    @Test(arguments: [1, 24, 25, 40, 79, 200, 500], [1, 6, 7, 24, 100])
    func `a chart fits at any size`(width: Int, height: Int) {
        for (candles, span) in [
            (Self.candles(.minute, 1440), ChartSpan.day), (Self.candles(.day, 900), .all),
            (Array(Self.candles(.minute, 3)), .hour),
        ] {
            for isCandles in [false, true] {
                let lines = text(candles, span, width: width, height: height, isCandles: isCandles)
                #expect(lines.allSatisfy { $0.count <= max(width, Chart.least.width) })
                #expect(lines.count == max(height, Chart.least.height))
            }
        }
    }

    @Test(arguments: 1...40) func `a price at the axis is whole or omitted`(width: Int) {
        let lines = text(Self.candles(.minute, 1440), .day, width: width, height: 20)
        let labels = lines.compactMap { line in line.firstIndex(of: "┤").map { line[$0...].dropFirst(2) } }
        #expect(labels.allSatisfy { $0.wholeMatch(of: /\d\d,\d\d\d/) != nil }, "\(labels)")
        #expect(lines.allSatisfy { $0.count <= max(width, Chart.least.width) })
        #expect(labels.isEmpty == (width < 24))
    }

    @Test func `without prices there is no chart, and one price or one level is enough`() {
        #expect(text([], .day, width: 80, height: 20).isEmpty)
        let one = Candle(start: Self.now - 60, 68_900)
        #expect(text([one], .day, width: 80, height: 20).count == 20)
        let flat = (0..<60).map { Candle(start: Self.now - 3600 + $0 * 60, 68_900) }
        let lines = text(flat, .hour, width: 60, height: 12)
        #expect(
            lines.filter { $0.contains("⣀") || $0.contains("⠤") || $0.contains("⠒") || $0.contains("⠉") }.count == 1,
            "in the middle: \(lines)")
        // Far outside the span.
        #expect(text([Candle(start: 0, 1)], .day, width: 80, height: 20).isEmpty)
    }

    @Test func `a fall is red and a rise green`() {
        let rise = [Candle(start: Self.now - 3000, 100), Candle(start: Self.now - 60, 110)]
        let fall = [Candle(start: Self.now - 3000, 110), Candle(start: Self.now - 60, 100)]
        for (candles, style) in [(rise, StyledLine.Style.good), (fall, .bad)] {
            let axis = ChartSpan.hour.axis(now: Self.now, first: nil, isUTC: true, width: 80)
            let lines = Chart(candles, axis: axis, currency: "USD", size: (80, 20)).lines
            #expect(Set(lines.flatMap(\.parts).map(\.style)) == [.plain, style])
        }
    }

    @Test func `a span of one's own has candles that fit, and one of the past has no present price`() {
        let last = { (seconds: Int64) in ChartSpan(.last(seconds), name: "x") }
        #expect(
            [60, 3600, 100_000, 200_000, 7_000_000, 9_000_000].map { last($0).step(now: Self.now) } == [
                .minute, .minute, .minute, .hour, .hour, .day,
            ])
        let past = ChartSpan(.at(Self.now - 86_400 * 3), end: Self.now - 86_400, name: "Aug 23 to Aug 25")
        #expect(past.range(now: Self.now) == Self.now - 86_400 * 3..<Self.now - 86_400 + 1)
        #expect(past.step(now: Self.now) == .hour)
        #expect(ChartSpan(.at(Self.now), name: "x").range(now: Self.now) == Self.now - 60..<Self.now + 1)
        let title = ChartTitle(Self.candles(.hour, 72), currency: "USD", span: past, now: Self.now)
        let parts = title.parts(PriceState.empty(), width: 200).map(\.text).joined()
        #expect(parts.hasPrefix("BTC/USD  Aug 23 to Aug 25 +"), "\(parts)")
    }

    @Test func `the title has as many parts as fit`() {
        var state = PriceState.empty()
        state.ticks.freshness = .fresh
        state.price = ShownPrice(
            PriceQuote(
                value: 68_900, currency: "USD", timestamp: Timestamp(milliseconds: 0), source: "binance",
                market: "BTC/USDT"))
        let title = ChartTitle(Self.candles(.minute, 1440), currency: "USD", span: .day, now: Self.now)
        let text = { (width: Int) in title.parts(state, width: width).map(\.text).joined() }
        #expect(text(40) == "BTC/USD $68,900.00  24h +0.79 %")
        #expect(text(100).hasPrefix("BTC/USD $68,900.00  24h +0.79 %  low $67,9"))
        #expect(text(10) == "BTC/USD $68,900.00")
        let few = ChartTitle(Self.candles(.minute, 40), currency: "USD", span: .day, now: Self.now)
        #expect(few.parts(state, width: 60).map(\.text).joined().contains("  since 40 min "))
        state.ticks.freshness = .stale
        #expect(text(80).hasPrefix("BTC/USD $68,900.00  not current  24h"))
        // A spike in doubt is not the highest price.
        var candles = Self.candles(.minute, 1440)
        candles[700] = Candle(start: candles[700].start, 77_000, isInDoubt: true)
        candles[800].covered = 60
        let doubted = ChartTitle(candles, currency: "USD", span: .day, now: Self.now)
        let parts = doubted.parts(state, width: 200).map(\.text).joined()
        #expect(parts.contains("  not current  1 of 1440 known in part  1 of 1440 unconfirmed  24h"), "\(parts)")
        #expect(!parts.contains("77,0"))
        #expect(!self.text(candles, .day, width: 80, height: 20).joined().contains("77,0"))
    }
}

@Suite struct ReaderTimeTests {
    /// 2026-08-25T12:00:00Z
    private let now = Timestamp(milliseconds: 1_787_659_200_000)

    private static let times: [(String, Int64)] = [
        ("now", 0), ("24h", -86_400), ("7d", -604_800), ("30m", -1800), ("90s", -90), ("1y", -31_536_000),
        ("2y", -63_072_000), ("3mo", -7_948_800),
        ("2w", -1_209_600),
        ("2026-08-25", -43_200), ("2026-08-25T11:30", -1800), ("2026-08-25 11:30:05", -1795),
        ("2026-08-25T11:30:05.999Z", -1795),
        ("2026-08-25T11:30Z", -1800),
        ("2026-08-25T14:30+02:00", 1800), ("2026-08-25T14:30:10+0200", 1810), ("2026-08-25T07:00-05:00", 0),
        ("2024-02-29", -78_494_400), ("-1h", -3600), ("today", -43_200), ("yesterday", -129_600), ("14:30", 9000),
        ("7:05", -17_700), ("11:59:58", -2), ("@1787659100", -100), ("@1787659100000", -100), ("@0", -1_787_659_200),
    ]

    @Test(arguments: times)
    func `times are read as people write them`(text: String, seconds: Int64) throws {
        let read = try ReaderTime.reading(text, isUTC: true, now: now).time
        #expect(read.milliseconds - now.milliseconds == seconds * 1000)
    }

    @Test(arguments: [
        "", "24", "h", "-h", "--3h", "@", "@-1", "@253402300800", "25:00", "1:2", "2026-11", "23.11.2026", "2026-13-01",
        "2026-02-30", "2025-02-29", "2026-08-25T25:00", "2026-08-25T",
        "2026-08-25T1:00",
        "2026-08-25T11:30+25:00", "26-08-25", "999999999999999999h", "9999999y", "9999999mo", "1yy", "@99999999999999",
        "99999999h", "3200000001s",
        "2026-08-25T11:30:60",
    ])
    func `an invalid time is refused`(text: String) {
        #expect(throws: ReaderTime.Mistake.self) { try ReaderTime.reading(text, isUTC: true, now: now).time }
    }

    @Test func `a day begins at midnight, even if it has 23 or 25 hours`() throws {
        // Noon of the day after the clock was set forward, and of that day itself.
        for (text, milliseconds, expected) in [
            ("yesterday", 1_774_864_800_000, 1_774_738_800), ("today", 1_774_778_400_000, 1_774_738_800),
            ("yesterday", 1_793_012_400_000, 1_792_879_200),
        ] as [(String, Int64, Int64)] {
            let read = try inZone("Europe/Berlin") {
                try ReaderTime.reading(text, isUTC: false, now: Timestamp(milliseconds: milliseconds)).time
            }
            #expect(read.milliseconds / 1000 == expected, "\(text) at \(milliseconds)")
        }
    }

    /// Summer time ends on 2026-10-25 in Berlin, and on 2026-11-01 in New York.
    @Test(arguments: [
        ("Europe/Berlin", "2026-10-25T02:30", 1_792_888_200), ("Europe/Berlin", "2026-10-25T03:00", 1_792_893_600),
        ("America/New_York", "2026-11-01T01:30", 1_793_511_000),
        ("America/New_York", "2026-11-01T02:00", 1_793_516_400),
        ("Europe/Berlin", "2026-10-25", 1_792_879_200),
    ])
    func `a time in an hour that occurs twice is in the first one`(zone: String, text: String, expected: Int64) throws {
        let read = try inZone(zone) { try ReaderTime.reading(text, isUTC: false, now: now).time }
        #expect(read.milliseconds / 1000 == expected)
    }

    @Test(arguments: [("Europe/Berlin", "2026-03-29T02:30"), ("America/New_York", "2026-03-08T02:30")])
    func `a time in a skipped hour is invalid`(zone: String, text: String) {
        inZone(zone) {
            _ = #expect(throws: ReaderTime.Mistake.self) { try ReaderTime.reading(text, isUTC: false, now: now).time }
        }
    }

    /// The labels of a day around a change of the clock are round, unique and in order.
    @Test(arguments: [
        ("Europe/Berlin", 1_792_900_800, ["18:00", "Oct 25", "06:00"]),
        ("America/New_York", 1_793_534_400, ["18:00", "Nov 1", "06:00"]),
        ("Europe/Berlin", 1_774_771_200, ["18:00", "Mar 29", "06:00"]),
    ])
    func `time labels are round in the night of a clock change`(zone: String, end: Int64, expected: [String]) {
        let labels = inZone(zone) { ReaderCalendar(isUTC: false).labels(in: end - 86_400..<end, atLeast: 20_000) }
        let texts = labels.map(\.text)
        #expect(expected.allSatisfy(texts.contains), "\(texts)")
        #expect(zip(labels, labels.dropFirst()).allSatisfy { $0.second < $1.second })
        #expect(Set(texts).count == texts.count)
    }

    /// From December into February: the days restart in each month, in the right year.
    @Test func `labels of days continue over the new year`() {
        let labels = ReaderCalendar(isUTC: true).labels(in: 1_765_584_000..<1_770_940_800, atLeast: 6 * 86_400).map(
            \.text)
        #expect(labels == ["Dec 21", "Jan 1", "Jan 11", "Jan 21", "Feb 1", "Feb 11"])
    }

    @Test(arguments: ChartSpan.named) func `every span has a few labels`(span: ChartSpan) {
        inZone("Europe/Berlin") {
            for width in [40, 80, 120, 200] {
                let axis = span.axis(now: 1_787_659_200, first: 1_600_000_000, isUTC: false, width: width)
                #expect((2...width / 8).contains(axis.labels.count), "\(span) \(width): \(axis.labels.map(\.text))")
            }
        }
    }
}
