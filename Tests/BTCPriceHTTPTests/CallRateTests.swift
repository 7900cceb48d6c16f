import Testing

@testable import BTCPriceHTTP

@Suite struct CallRateTests {
    @Test func `a burst is admitted, then callers wait for their turn, and too many are refused`() {
        let rate = CallRate(burst: 5, perSecond: 2)
        #expect((0..<5).map { _ in rate.take(at: 1000) } == [0, 0, 0, 0, 0])
        #expect((0..<6).map { _ in rate.take(at: 1000) } == [500, 1000, 1500, 2000, nil, nil])
        // A second later two more may wait.
        #expect((0..<3).map { _ in rate.take(at: 2000) } == [1500, 2000, nil])
        // A clock that goes back admits no call, and a long pause no more than the burst.
        #expect(rate.take(at: 1500) == nil)
        #expect((0..<7).map { _ in rate.take(at: .max) } == [0, 0, 0, 0, 0, 500, 1000])
    }
}
