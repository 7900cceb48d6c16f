import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct LimiterTests {
    static let limits: [(name: String, limits: [RequestLimit])] = [
        ("3000 a minute", [RequestLimit(3000, per: .seconds(60))]),
        ("10 a second", [RequestLimit(10, per: .seconds(1))]),
        ("1 in 2 s", [RequestLimit(1, per: .seconds(1)), RequestLimit(1, per: .seconds(2))]),
        ("two at once", [RequestLimit(400, per: .seconds(1)), RequestLimit(10_000, per: .seconds(600))]),
    ]

    /// For any demand, a half-open span of the period never has more requests than the limit.
    @Test(arguments: limits.indices) func `no span of a period ever sees more than its limit`(index: Int) {
        let limits = Self.limits[index].limits
        var limiter = RequestLimiter(limits)
        var times: [Int64] = []
        let seed = UInt64.random(in: 0..<1_000_000)
        var generator = SeededGenerator(seed: seed)
        var now: Int64 = 5_000_000
        while times.count < 3_000, now < 5_000_000 + 600_000 {
            let requester = [Requester.tick, .client, .observer].randomElement(using: &generator) ?? .tick
            if limiter.admits(requester, at: now) {
                limiter.take(at: now)
                times.append(now)
            }
            // Bursts, and now and then a pause after which the limit is unused again.
            now +=
                Int.random(in: 0..<20_000, using: &generator) == 0
                ? 120_000 : Int64.random(in: 0...3, using: &generator)
        }
        for limit in limits {
            var first = 0
            var most = 0
            for (last, time) in times.enumerated() {
                while times[first] <= time - limit.period.wholeMilliseconds { first += 1 }
                most = max(most, last - first + 1)
            }
            #expect(most <= limit.requests, "seed \(seed)")
        }
    }

    /// The limiter is not too careful to be useful.
    @Test(arguments: limits.flatMap(\.limits)) func `at least eight tenths of a limit can be used`(limit: RequestLimit)
    {
        var limiter = RequestLimiter([limit])
        var taken = 0
        for now in stride(from: Int64(5_000_000), to: 5_000_000 + limit.period.wholeMilliseconds, by: 10) {
            while limiter.admits(.tick, at: now) {
                limiter.take(at: now)
                taken += 1
            }
        }
        #expect(taken * 10 >= limit.requests * 8)
    }

    @Test func `the ticks use the part of a limit that clients leave`() {
        var limiter = RequestLimiter([RequestLimit(10, per: .seconds(1))])
        var clients = 0
        while limiter.admits(.client, at: 0) {
            limiter.take(at: 0)
            clients += 1
        }
        #expect(clients == 1)
        #expect(limiter.admits(.tick, at: 0))
    }

    @Test func `without a limit every request is admitted, and the pace is zero`() {
        let limiter = RequestLimiter([])
        #expect(limiter.admits(.client, at: 0))
        #expect(limiter.pace == .zero)
        #expect(RequestLimiter([RequestLimit(1, per: .seconds(2))]).pace == .seconds(2))
    }
}

@Suite struct LatencyTests {
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

@Suite struct TimestampTextTests {
    @Test(arguments: [
        (0, "1970-01-01 00:00:00 UTC"), (-1, "1969-12-31 23:59:59 UTC"), (951_868_799_999, "2000-02-29 23:59:59 UTC"),
        (951_868_800_000, "2000-03-01 00:00:00 UTC"), (4_107_542_399_000, "2100-02-28 23:59:59 UTC"),
        (4_107_542_400_000, "2100-03-01 00:00:00 UTC"), (1_724_596_200_000, "2024-08-25 14:30:00 UTC"),
    ])
    func `a time is written in UTC`(milliseconds: Int64, text: String) {
        #expect(Timestamp(milliseconds: milliseconds).utcText == text)
    }
}
