import BTCPriceCore
import Testing

@testable import BTCPriceFeature

@Suite struct HistoryCoverageTests {
    private let day = HistoryCoverage(from: Timestamp(milliseconds: 0), to: Timestamp(milliseconds: 86_400_000))

    @Test func `a missing tenth is reported, one missing candle is not`() {
        #expect(day.count(.minute) == 1440)
        #expect(!day.isPoor(1440 * 60, .minute) && !day.isPoor(1297 * 60, .minute) && day.isPoor(1296 * 60, .minute))
        #expect(!day.isPoor(23 * 3600, .hour) && day.isPoor(21 * 3600, .hour))
        #expect(!day.isPoor(0, .day))
    }

    @Test func `candles count with what they cover of the span`() {
        let hour = { (start: Int64, covered: Int64?) in
            var candle = Candle(start: start, 1)
            candle.covered = covered.map { $0 * 60 }
            return candle
        }
        #expect(day.seconds(in: [hour(0, nil), hour(3600, 38), hour(84_600, nil), hour(90_000, nil)], .hour) == 7680)
        // A whole day of which an hour is known does not know more than that hour.
        #expect(!day.knowsMore(day.seconds(in: [hour(0, 60)], .day), than: 3600))
    }
}
