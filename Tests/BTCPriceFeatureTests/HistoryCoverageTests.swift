import BTCPriceCore
import Testing

@testable import BTCPriceFeature

@Suite struct HistoryCoverageTests {
    private let day = HistoryCoverage(from: Timestamp(milliseconds: 0), to: Timestamp(milliseconds: 86_400_000))

    @Test func `a missing tenth is reported, one missing candle is not`() {
        #expect(day.count(.minute) == 1440)
        #expect(!day.isPoor(1440, .minute) && !day.isPoor(1297, .minute) && day.isPoor(1296, .minute))
        #expect(!day.isPoor(23, .hour) && day.isPoor(21, .hour))
        #expect(!day.isPoor(0, .day))
    }

    @Test func `longer candles count by their time`() {
        #expect(day.knowsMore(24, .hour, than: 60, .minute))
        #expect(!day.knowsMore(1, .hour, than: 60, .minute))
        #expect(!day.knowsMore(3, .hour, than: 60, .minute))
    }
}
