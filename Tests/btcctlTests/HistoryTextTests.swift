import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import Testing

@testable import btcctl

@Suite struct HistoryTextTests {
    /// 2026-11-25T00:00:00Z
    private static let midnight: Int64 = 1_795_564_800

    private let present = Timestamp(milliseconds: Self.midnight * 1000)

    private func candle(_ covered: Int64? = nil, doubtful: Int64? = nil) -> Candle {
        Candle(
            start: Self.midnight, open: 1, high: 3, low: 1, close: 2, ticks: 60, fresh: 60,
            covered: covered.map { $0 * 60 },
            doubtful: doubtful)
    }

    private func text(_ length: CandleLength, _ days: DayZone = .utc) -> HistoryText {
        HistoryText(
            currency: "USD", length: length, timestamps: TimestampFormatter(isUTC: true, present: present), days: days
        )
    }

    @Test func `what is known of a part or in doubt is in every format`() {
        let hour = text(.hour)
        #expect(hour.row(candle(38, doubtful: 3)).last == "own, 38 of 60 minutes, in doubt: 3 of 60 ticks")
        #expect(hour.line(candle(doubtful: 0)) == "2026-11-25T00:00:00Z 1 3 1 2 own")
        #expect(hour.line(candle(38)) == "2026-11-25T00:00:00Z 1 3 1 2 own (38 of 60 minutes)")
        #expect(
            HistoryText.csvHeader.hasSuffix(",origin,covered_minutes,doubtful,currency,pair,covered_seconds,single"))
        #expect(hour.csv(candle(38, doubtful: 60)).hasSuffix(",60,60,own,38,60,USD,BTC/USD,2280,"))
        #expect(hour.csv(candle()).hasSuffix(",60,60,own,,,USD,BTC/USD,,"))
        #expect(
            hour.json(candle(38, doubtful: 3)).hasSuffix(
                #""coveredMinutes":38,"doubtful":3,"coveredSeconds":2280,"single":null}"#))
        #expect(hour.range(of: candle(38)) == "38 of 60 minutes of the hour: $1.00 to $3.00")
        #expect(
            hour.description(of: candle(38, doubtful: 60))
                == "Hour from Nov 25, 00:00: open $1.00, high $3.00, low $1.00, close $2.00; own prices, 60 of 60 ticks, 38 of 60 minutes, unconfirmed"
        )
    }

    @Test(arguments: [20, 40, 60, 80, 200]) func `a table fits the terminal`(width: Int) {
        let text = text(.hour)
        let rows = [text.header] + [candle(38, doubtful: 3), candle()].map(text.row)
        let lines = HistoryText.table(rows, width: width)
        #expect(lines.allSatisfy { $0.count <= max(width, 28) }, "\(lines)")
        let columns = [20: 3, 40: 3, 60: 6, 80: 6, 200: 6][width]
        #expect(lines[0].split(separator: " ").count == columns, "\(lines[0])")
        // Neither a price nor a note is cut.
        let shown = lines.flatMap { $0.split(separator: " ") }.joined(separator: " ")
        for part in ["$2.00", "38 of 60 minutes", "in doubt: 3 of 60 ticks"] {
            #expect(shown.contains(part), "\(width): \(shown)")
        }
    }

    @Test func `a day names its zone, and a second its seconds`() {
        #expect(text(.day).header.first == "Day (UTC)")
        #expect(text(.day, .local).header.first == "Day (local)")
        #expect(text(.hour).header.first == "Time")
        #expect(text(.day).row(candle()).first == "Nov 25")
        #expect(text(.day).description(of: candle()).hasPrefix("Day of Nov 25 (UTC): open"))
        #expect(text(.second).row(candle()).first == "Nov 25, 00:00:00")
        let known = PriceAt(candle(), .second, at: Self.midnight)
        #expect(text(.second).line(known, at: Timestamp(milliseconds: 1_795_564_805_000)) == "Nov 25, 00:00:05 - $1.00")
    }

    @Test func `a source that others contradict names them, and -v shows the vote`() {
        var reports = [("binance", SourceReport.Use.current), ("kraken", .ready), ("coinbase", .untried)].map {
            SourceReport(name: $0.0, order: 1, market: "BTC/USD", address: "", use: $0.1)
        }
        reports[0].claim = MarketClaim(low: Price(684013, scale: 1), high: 68_801, isMember: true)
        reports[1].verdict = .disagrees
        let text = SourcesText(timestamps: TimestampFormatter())
        #expect(text.lines(reports, isVerbose: false, at: .now())[3] == "    too far from the price that is shown")
        reports[1].claim = MarketClaim(
            low: 69_801, high: 70_201, isMember: false, contradictedBy: ["binance", "bitstamp"])
        let lines = text.lines(reports, isVerbose: false, at: .now())
        #expect(lines.count == 5)
        #expect(lines[3] == "    contradicted by binance and bitstamp")
        let verbose = text.lines(reports, isVerbose: true, at: .now(), width: 100).suffix(5).filter {
            $0.hasPrefix("    ")
        }
        #expect(
            verbose == [
                "    in the vote: 68,401.30 to 68,801.00",
                "    not in the vote: 69,801.00 to 70,201.00; contradicted by binance and bitstamp",
            ])
    }

    @Test func `the explanation of the sources fits`() {
        for width in [40, 60, 80] {
            let lines = SourcesText(timestamps: TimestampFormatter()).lines(
                [], isVerbose: true, at: .now(), width: width)
            #expect(lines.allSatisfy { $0.count < width }, "\(lines)")
            #expect(lines.joined(separator: " ").contains("derived from another currency's"))
        }
    }
}
