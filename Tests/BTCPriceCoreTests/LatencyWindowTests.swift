import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct LatencyWindowTests {
    @Test func `percentiles are computed from the newest responses, by nearest rank`() {
        var window = LatencyWindow()
        #expect(window.percentile(50) == nil)
        for value in 1...100 { window.add(.milliseconds(value)) }
        #expect(window.percentile(50) == .milliseconds(50))
        #expect(window.percentile(99) == .milliseconds(99))
        #expect(window.percentile(100) == .milliseconds(100))
        #expect(window.percentile(0) == .milliseconds(1))
        for _ in 0..<128 { window.add(.milliseconds(7)) }
        #expect(window.percentile(100) == .milliseconds(7))
        #expect(window.count == 128)
    }
}
