import BTCPriceCore
import TestSupport
import Testing

@testable import BTCPriceSocket

@Suite struct TokenBucketTests {
    @Test func `a burst passes, what is more waits, and a pause fills no more than the burst`() {
        var bucket = TokenBucket(burst: 100, perSecond: 20)
        func take(_ tokens: Int64, at time: BootTime) -> Int64 {
            defer { bucket.take(tokens) }
            return bucket.wait(for: tokens, at: time)
        }
        #expect([take(60, at: 1000), take(40, at: 1000), take(10, at: 1000)] == [0, 0, 500])
        #expect(!bucket.isFull(at: 6499) && bucket.isFull(at: 6500))
        // Those that wait have their turn first.
        #expect([take(10, at: 1500), take(1, at: 1500)] == [500, 550])
        // A clock that goes back gives nothing.
        #expect(take(1, at: 0) == 600)
        #expect([take(100, at: .max), take(1, at: .max)] == [0, 50])
    }

    @Test func `a call costs what its work is`() {
        let costs = [nil, 1, 24, 25, 1000].map { PriceCall.history(.getHistory(HistoryQuery(limit: $0))).cost }
        #expect(costs == [5, 1, 1, 2, 5])
        #expect([PriceCall.getMetrics, .getStatus, .history(.getDay())].map(\.cost) == [6, 1, 1])
    }
}
