import TestSupport
import Testing

@testable import BTCPriceCore

extension RequestLimiter {
    /// Whether a requester may send a request.
    func admits(_ requester: Requester, at boottime: BootTime) -> Bool {
        opens(for: requester, at: boottime) <= boottime
    }
}

@Suite struct RequestLimiterTests {
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
        var times: [BootTime] = []
        let seed = UInt64.random(in: 0..<1_000_000)
        var generator = SeededGenerator(seed: seed)
        var now: BootTime = 5_000_000
        while times.count < 3_000, now < 5_600_000 {
            let requester = [Requester.tick, .client, .observer, .candles].randomElement(using: &generator) ?? .tick
            if limiter.admits(requester, at: now) {
                limiter.take(requester, at: now)
                times.append(now)
            } else {
                limiter.wait(requester, at: now, until: now + 2000)
            }
            // Bursts, and now and then a pause after which the limit is unused again.
            let isPause = Int.random(in: 0..<20_000, using: &generator) == 0
            now += isPause ? 120_000 : Int64.random(in: 0...3, using: &generator)
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
        for passed in stride(from: 0, to: limit.period.wholeMilliseconds, by: 10) {
            let now: BootTime = 5_000_000 + passed
            while limiter.admits(.tick, at: now) {
                limiter.take(.tick, at: now)
                taken += 1
            }
        }
        #expect(taken * 10 >= limit.requests * 8)
    }

    @Test func `the ticks use the part of a limit that clients leave`() {
        var limiter = RequestLimiter([RequestLimit(10, per: .seconds(1))])
        var clients = 0
        while limiter.admits(.client, at: 0) {
            limiter.take(.client, at: 0)
            clients += 1
        }
        #expect(clients == 1)
        #expect(limiter.admits(.tick, at: 0))
    }

    @Test func `a client that has used up the clients' part keeps no other requester waiting`() {
        var limiter = RequestLimiter([RequestLimit(10, per: .seconds(60))])
        #expect(limiter.admits(.client, at: 0))
        limiter.take(.client, at: 0)
        // The exchange allows the next one after 8 s, and the clients' part one of all clients after 86 s.
        for second in 1...60 as ClosedRange<Int64> {
            let now = BootTime(milliseconds: second * 1000)
            if !limiter.admits(.client, at: now) { limiter.wait(.client, at: now, until: now + 5000) }
        }
        #expect(limiter.admits(.observer, at: 60_000))
    }

    @Test func `an unused limit is the new one at once, and a used one after a change as if its burst had been used`() {
        var limiter = RequestLimiter([RequestLimit(10, per: .seconds(1))])
        var fresh = RequestLimiter([RequestLimit(1, per: .seconds(10))])
        fresh.adopt(limiter, lastRequest: nil)
        #expect(fresh.admits(.tick, at: 5000))
        limiter.take(.tick, at: 5000)
        var changed = RequestLimiter([RequestLimit(1, per: .seconds(10))])
        changed.adopt(limiter, lastRequest: 5000)
        #expect(!changed.admits(.tick, at: 14_999) && changed.admits(.tick, at: 15_000))
        // A limit of a day whose burst is in use is not kept for hours.
        var day = RequestLimiter([RequestLimit(7500, per: .seconds(86_400))])
        for second in 0..<1000 { day.take(.tick, at: 5000 + Int64(second)) }
        var larger = RequestLimiter([RequestLimit(15_000, per: .seconds(86_400))])
        larger.adopt(day, lastRequest: 5999)
        #expect(larger.admits(.tick, at: 16_000))
        var same = RequestLimiter([RequestLimit(10, per: .seconds(1))])
        same.adopt(limiter, lastRequest: 5000)
        #expect(same.admits(.tick, at: 5000), "the rest of the burst")
    }

    @Test func `without a limit every request is admitted, and the pace is zero`() {
        let limiter = RequestLimiter([])
        #expect(limiter.admits(.client, at: 0))
        #expect(limiter.pace == .zero)
        #expect(RequestLimiter([RequestLimit(1, per: .seconds(2))]).pace == .seconds(2))
    }
}

/// Who gets how much of a limit, if several requesters want as much as they can get.
@Suite struct RequestSharesTests {
    /// A source, and what its ticks need of it.
    struct Source: Sendable, CustomTestStringConvertible {
        let name: String
        let venue: Venue
        let interval: Duration
        var testDescription: String { name }

        init(_ name: String, _ limits: [RequestLimit], cache: Duration = .zero, every interval: Int) {
            self.name = name
            venue = Venue("a", limits: limits, cacheTime: cache)
            self.interval = .seconds(interval)
        }
    }

    static let sources = [
        Source(
            "1 a second and a cache of 2 s, every 10 s", [RequestLimit(1, per: .seconds(1))], cache: .seconds(2),
            every: 10),
        Source("1 a second, every 10 s", [RequestLimit(1, per: .seconds(1))], every: 10),
        Source("1 a second, every 2 s", [RequestLimit(1, per: .seconds(1))], every: 2),
        Source("1 a second, every second", [RequestLimit(1, per: .seconds(1))], every: 1),
        Source("10 a minute, every 10 s", [RequestLimit(10, per: .seconds(60))], every: 10),
        Source("7 in 7 s, every 2 s", [RequestLimit(7, per: .seconds(7))], every: 2),
        Source("10 a second, every second", [RequestLimit(10, per: .seconds(1))], every: 1),
        Source("3000 a minute, every second", [RequestLimit(3000, per: .seconds(60))], every: 1),
    ]

    struct Outcome {
        var served: [Requester: Int] = [:]
        var ticks = 0
        var waited = 0
        var mostInARow = 0
        var times: [BootTime] = []
        var timesOfClients: [BootTime] = []
    }

    /// Two minutes in which the ticks and these requesters want requests.
    static func run(_ source: Source, _ flood: Set<Requester>, seed: UInt64) -> Outcome {
        var generator = SeededGenerator(seed: seed)
        let (market, observed) = (Market("a", "BTC/CHF"), Market("a", "BTC/USD"))
        var registry = SourceRegistry(
            [market, observed].map {
                (BTCPriceCoreTests.source(source.venue, $0), source.interval)
            })
        var outcome = Outcome()
        let (start, interval) = (BootTime(milliseconds: 5_000_000), source.interval.wholeMilliseconds)
        var (tick, row) = (start, 0)
        var next: [Requester: BootTime] = [.observer: start, .client: start, .candles: start]
        for passed in 0..<120_000 as Range<Int64> {
            let now = start + passed
            if now >= tick {
                outcome.ticks += 1
                let plan = registry.plan(.tick, among: [market], at: now)
                registry.wait(for: plan.waiting, .tick, at: now)
                let sent = now + registry.wait(for: registry.market(0), at: now).wholeMilliseconds
                if plan.order.contains(registry.market(0)), registry.take(0, .tick, at: sent) {
                    outcome.times.append(sent)
                    row = 0
                } else {
                    row += 1
                    outcome.waited += 1
                }
                outcome.mostInARow = max(outcome.mostInARow, row)
                // A busy machine is late.
                tick = start + Int64(outcome.ticks) * interval + Int64.random(in: 0...3, using: &generator)
            }
            for requester in [Requester.observer, .client, .candles]
            where flood.contains(requester) && now >= next[requester, default: 0] {
                switch requester {
                case .candles, .client:
                    // Clients that request minutes of the past, one after the other.
                    let wait = registry.grant(market, requester, within: 60_000, at: now) ?? 1000
                    if wait == 0 {
                        outcome.served[requester, default: 0] += 1
                        outcome.times.append(now)
                        if requester == .client { outcome.timesOfClients.append(now) }
                    }
                    next[requester] = now + max(wait, 1) + Int64.random(in: 0...2, using: &generator)
                default:
                    let plan = registry.plan(.observer, among: [observed], at: now)
                    registry.wait(for: plan.waiting, .observer, at: now)
                    if plan.order.contains(registry.market(1)), registry.take(1, .observer, at: now) {
                        outcome.served[.observer, default: 0] += 1
                        outcome.times.append(now)
                    }
                    next[requester] = now + 3000 + Int64.random(in: 0...1500, using: &generator)
                }
            }
        }
        return outcome
    }

    @Test(arguments: sources) func `ticks come first, and every other requester has its share`(source: Source) {
        for flood in [
            [Requester.observer], [.client], [.candles], [.client, .candles], [.observer, .client, .candles],
        ] {
            let outcome = Self.run(source, Set(flood), seed: 7)
            let note = Comment(
                "\(flood): \(outcome.served), \(outcome.waited) of \(outcome.ticks) ticks waited, \(outcome.mostInARow) in a row"
            )
            #expect(outcome.waited * 10 <= outcome.ticks && outcome.mostInARow < 2, note)
            for limit in source.venue.limits {
                // The request after as many as are allowed.
                let later = zip(outcome.times, outcome.times.dropFirst(limit.requests))
                #expect(later.allSatisfy { $1 - $0 >= limit.period.wholeMilliseconds }, note)
            }
            for limit in source.venue.limits.map(\.tenth) {
                let later = zip(outcome.timesOfClients, outcome.timesOfClients.dropFirst(limit.requests))
                #expect(later.allSatisfy { $1 - $0 >= limit.period.wholeMilliseconds }, note)
            }
            // In turn: clients do not get much more than their part.
            let (clients, candles) = (outcome.served[.client] ?? 0, outcome.served[.candles] ?? 0)
            if flood.count > 1 { #expect(clients - candles <= 5 + clients / 5, note) }
            #expect(outcome.served.keys.contains { flood.contains($0) } || flood == [.observer], note)
        }
    }
}
