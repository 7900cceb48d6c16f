import Testing

@testable import BTCPriceHTTP

@Suite struct CallRateTests {
    @Test func `a burst is let through, and then so many a second`() {
        var rate = CallRate(burst: 5, perSecond: 2)
        var taken = 0
        for _ in 0..<10 where rate.take(at: 1000) { taken += 1 }
        #expect(taken == 5)
        for time in stride(from: Int64(1100), through: 4000, by: 100) where rate.take(at: time) { taken += 1 }
        #expect(taken == 5 + 6)
        // A clock that stands or goes back gives nothing, and a long rest no more than the burst.
        let isEarlier = rate.take(at: 3000)
        #expect(!isEarlier)
        for _ in 0..<10 where rate.take(at: .max) { taken += 1 }
        #expect(taken == 5 + 6 + 5)
    }
}
