import BTCPriceCore
import TestSupport
import Testing

@testable import btc_price_http

@Suite struct CallRateTests {
    private func take(_ count: Int, from rate: CallRate, for client: String = "a", at time: BootTime) -> [Int64?] {
        (0..<count).map { _ in rate.take(for: client, at: time) }
    }

    @Test func `a burst is admitted, then callers wait for their turn, and too many are refused`() {
        let rate = CallRate(burst: 10, perSecond: 2)
        #expect(take(5, from: rate, at: 1000) == [0, 0, 0, 0, 0])
        #expect(take(12, from: rate, at: 1000) == (1...10).map { $0 * 1000 } + [nil, nil])
        // A second later one more may wait.
        #expect(take(2, from: rate, at: 2000) == [10_000, nil])
        // A clock that goes back admits no call, and a long pause no more than the burst.
        #expect(rate.take(for: "a", at: 1500) == nil)
        #expect(take(7, from: rate, at: .max) == [0, 0, 0, 0, 0, 1000, 2000])
    }

    @Test func `a client that makes too many calls leaves half of them to the others`() {
        let rate = CallRate(burst: 100, perSecond: 20)
        for second in 0..<60 {
            let time = BootTime(milliseconds: Int64(second) * 1000)
            _ = take(1000, from: rate, for: "busy", at: time)
            // At first it waits for the calls that the busy client may queue.
            #expect(
                rate.take(for: "other", at: time).map { $0 <= (second < 10 ? 2550 : 0) } == true, "after \(second) s")
        }
        // All together have a limit, too.
        let many = (0..<400).map { rate.take(for: "client \($0)", at: 60_000) }
        #expect(many.last == .some(nil))
    }
}
