import TestSupport
import Testing

@testable import BTCPriceCore

private let outage = PriceLoadingError.unavailable("HTTP 503")

private func moment(_ seconds: Double) -> ObservationTime {
    ObservationTime(
        wall: Timestamp(milliseconds: 1_724_596_200_000 + Int64(seconds * 1000)),
        boottime: 5_000_000 + Int64(seconds * 1000))
}

/// A market's health with its venue's health.
private struct Health {
    var market = MarketHealth()
    var venue: VenueHealth

    init(limits: [RequestLimit] = []) { venue = VenueHealth(limits: limits) }

    mutating func ended(
        _ outcome: MarketHealth.Outcome, latency: Duration, at now: ObservationTime, jitter: Double
    ) -> SourceCooldown? {
        market.ended(outcome, latency: latency, at: now, venue: &venue, jitter: jitter)
    }

    func breaker(at boottime: BootTime) -> CircuitBreaker.State { market.breaker.state(at: boottime, venue.breaker) }
    func isBound(at boottime: BootTime) -> Bool { venue.isBound(at: boottime) }
    var cooldown: SourceCooldown? { venue.breaker.cooldown ?? market.breaker.cooldown }
}

@Suite struct HealthTests {
    private func failed(
        _ health: inout Health, _ error: PriceLoadingError, at seconds: Double, jitter: Double = 1
    ) -> SourceCooldown? {
        health.ended(.failure(error), latency: .zero, at: moment(seconds), jitter: jitter)
    }

    private func length(_ cooldown: SourceCooldown?) -> Duration? {
        cooldown.map { .milliseconds($0.until.boottime - $0.since.boottime) }
    }

    @Test func `a source that refuses requests may be probed a minute after the last request`() {
        var health = Health()
        health.venue.requested(by: .tick, at: moment(0).boottime)
        _ = failed(&health, .refused("HTTP 403"), at: 0)
        #expect(health.isBound(at: moment(60).boottime))
        #expect(!health.venue.mayProbeRefusal(at: moment(59.9).boottime))
        #expect(health.venue.mayProbeRefusal(at: moment(60).boottime))
        health.venue.requested(by: .tick, at: moment(60).boottime)
        #expect(!health.venue.mayProbeRefusal(at: moment(61).boottime))
        var limited = Health()
        _ = failed(&limited, .rateLimited("HTTP 429", retryAfter: .seconds(600)), at: 0)
        #expect(!limited.venue.mayProbeRefusal(at: moment(500).boottime))
    }

    @Test func `a retry clears cooldowns that no exchange has requested`() {
        var refused = registry([("a", [])])
        end(&refused, 0, .refused("HTTP 403"))
        let (retried, none) = (refused.retry(nil, at: moment(1).boottime), refused.retry(nil, at: moment(1).boottime))
        #expect(retried.retried == ["a"] && retried.kept.isEmpty)
        #expect(!refused.isCoolingDown(0, at: moment(1).boottime))
        #expect(none.retried.isEmpty && none.kept.isEmpty)
        var limited = registry([("a", [])])
        end(&limited, 0, .rateLimited("HTTP 429", retryAfter: .seconds(600)))
        let kept = limited.retry(nil, at: moment(1).boottime)
        #expect(kept.retried.isEmpty && kept.kept.map(\.source) == ["a"])
        #expect(limited.isCoolingDown(0, at: moment(1).boottime))
    }

    @Test func `three failures in a row open the breaker, and a probe after the cooldown decides`() {
        var health = Health()
        let rest1 = failed(&health, outage, at: 0)
        #expect(rest1 == nil)
        let rest2 = failed(&health, outage, at: 1)
        #expect(rest2 == nil)
        #expect(health.breaker(at: moment(1).boottime) == .closed)
        let rest3 = failed(&health, outage, at: 2)
        #expect(length(rest3) == .seconds(5))
        #expect(health.breaker(at: moment(6.999).boottime) == .open)
        #expect(!health.isBound(at: moment(3).boottime), "it may be asked where nobody else is left")
        #expect(health.breaker(at: moment(7).boottime) == .halfOpen)
        let rest4 = failed(&health, outage, at: 8)
        #expect(length(rest4) == .seconds(10), "a failed probe doubles the rest")
        let rest5 = health.ended(.success, latency: .milliseconds(90), at: moment(20), jitter: 0)
        #expect(rest5 == nil)
        #expect(health.breaker(at: moment(20).boottime) == .closed)
        #expect(health.market.latencies.percentile(50) == .milliseconds(90))
        #expect(health.market.lastSuccess == moment(20))
        #expect(health.market.lastFailure?.at == moment(8))
    }

    @Test func `a source that fails every second time gets a cooldown too`() {
        var health = Health()
        var asked = 0
        while health.cooldown == nil, asked < 100 {
            if asked % 2 == 0 {
                _ = failed(&health, outage, at: Double(asked))
            } else {
                _ = health.ended(.success, latency: .zero, at: moment(Double(asked)), jitter: 0)
            }
            asked += 1
        }
        #expect(asked == 19, "ten failures of the last twenty")
    }

    @Test func `cooldowns grow up to a bound with random parts, and sixty successes reset them`() {
        var health = Health()
        for second in 0..<2 { _ = failed(&health, outage, at: Double(second)) }
        var lengths: [Duration] = []
        var at = 2.0
        for _ in 0..<8 {
            guard let cooldown = failed(&health, outage, at: at, jitter: 1) else { break }
            lengths.append(.milliseconds(cooldown.until.boottime - cooldown.since.boottime))
            at += Double(cooldown.until.boottime - cooldown.since.boottime) / 1000
        }
        #expect(lengths == [5, 10, 20, 40, 80, 160, 300, 300].map { Duration.seconds($0) })
        #expect(CooldownRule.length(outage, consecutiveFailures: 3, jitter: 0) == .seconds(10), "half of it is drawn")
        for second in 0..<60 { _ = health.ended(.success, latency: .zero, at: moment(at + Double(second)), jitter: 0) }
        for second in 60..<62 { _ = failed(&health, outage, at: at + Double(second)) }
        let rest6 = failed(&health, outage, at: at + 62)
        #expect(length(rest6) == .seconds(5))
    }

    @Test func `a ban causes a cooldown a little longer than the ban, at the first failure`() {
        var health = Health()
        let ban = PriceLoadingError.rateLimited("HTTP 418", retryAfter: .seconds(120))
        let rest7 = failed(&health, ban, at: 0, jitter: 0)
        #expect(length(rest7) == .seconds(121))
        #expect(health.isBound(at: moment(120.9).boottime))
        #expect(!health.isBound(at: moment(121).boottime))
        // After the ban the source is banned again: from now on the cooldown grows by itself, and is never shorter than the ban.
        let rest8 = failed(&health, ban, at: 121, jitter: 0)
        #expect(length(rest8) == .seconds(121))
        for (strike, seconds) in [(3, 121), (4, 241), (5, 481), (20, 10_801)] {
            #expect(
                CooldownRule.length(ban, consecutiveFailures: strike, jitter: 0) == .seconds(seconds),
                "strike \(strike)")
        }
        let longest = PriceLoadingError.rateLimited("", retryAfter: .seconds(1 << 40))
        #expect(CooldownRule.length(longest, consecutiveFailures: 1, jitter: 0) == .seconds(3 * 86_400 + 1))
        #expect(
            CooldownRule.length(.rateLimited("", retryAfter: .zero), consecutiveFailures: 1, jitter: 0) == .seconds(2))
    }

    @Test func `maintenance with a known end is waiting, not a ban`() {
        let told = PriceLoadingError.unavailable("HTTP 503", retryAfter: .seconds(20))
        var registry = registry([("a", [])])
        end(&registry, 0, told)
        #expect(registry.plan(.tick, at: moment(20.9).boottime).order.isEmpty, "not before the time")
        #expect(registry.plan(.tick, at: moment(20.9).boottime).skipped.count == 1)
        #expect(registry.plan(.tick, at: moment(21).boottime).order == [registry.market(0)])
        #expect(registry.cooldowns(at: moment(1)).isEmpty)
        // Again and again: the cooldown grows to five minutes at most, and is a last resort when the time is over.
        for round in 1...12 { end(&registry, 0, told, at: 30 * Double(round)) }
        let cooldown = registry.cooldown(0)
        #expect(length(cooldown).map { $0 <= .seconds(316) && $0 > .seconds(100) } == true)
        let present = moment(360 + 22).boottime
        #expect(registry.isCoolingDown(0, at: present))
        #expect(registry.plan(.tick, at: present).order == [registry.market(0)])
        let retried = registry.retry("a", at: moment(361).boottime).retried
        #expect(retried == ["a"])
        #expect(registry.plan(.tick, at: moment(361).boottime).order == [registry.market(0)])
        let lengths = [0, 5, 1 << 40].map { seconds in
            CooldownRule.length(
                .unavailable("", retryAfter: .seconds(seconds)), consecutiveFailures: 1, jitter: 0
            ).components.seconds
        }
        #expect(lengths == [3, 6, 259_201])
    }

    @Test
    func `without a Retry-After, a limit doubles from a minute to six hours, a refusal from ten minutes to a day`() {
        func lengths(_ error: PriceLoadingError) -> [Int64] {
            (1...12).map { CooldownRule.length(error, consecutiveFailures: $0, jitter: 0).components.seconds / 60 }
        }
        #expect(lengths(.rateLimited("", retryAfter: nil)) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360, 360])
        #expect(lengths(.refused("")) == [10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440, 1440, 1440])
        #expect(CooldownRule.length(.refused(""), consecutiveFailures: 99, jitter: 1) == .seconds(95_040))
    }

    @Test func `a ban during a cooldown for failures counts`() {
        var health = Health()
        for second in 0..<3 { _ = failed(&health, outage, at: Double(second)) }
        let rest9 = failed(&health, outage, at: 3)
        #expect(rest9 == nil, "asked as a last resort: nothing changes")
        let rest10 = failed(&health, .rateLimited("", retryAfter: .seconds(30)), at: 4, jitter: 0)
        #expect(length(rest10) == .seconds(31))
        #expect(health.isBound(at: moment(30).boottime))
    }

    @Test(arguments: [PriceLoadingError.cancelled, .timedOut(after: nil)])
    func `an error that does not come from the source is not counted`(error: PriceLoadingError) {
        var health = Health()
        for second in 0..<30 {
            let cooldown = failed(&health, error, at: Double(second))
            #expect(cooldown == nil)
        }
        #expect(health.market.lastFailure == nil)
        #expect(health.breaker(at: moment(31).boottime) == .closed)
    }

    /// The wall clock is set while a source is in cooldown: on the boot clock nothing changes.
    @Test(arguments: [-86_400.0, 86_400])
    func `a step of the wall clock does not move a cooldown`(step: Double) throws {
        var health = Health()
        let cooldown = failed(&health, .rateLimited("", retryAfter: .seconds(300)), at: 0, jitter: 0)
        let stepped = ObservationTime(
            wall: Timestamp(milliseconds: moment(300 + step).wall.milliseconds), boottime: moment(300).boottime)
        #expect(health.isBound(at: stepped.boottime))
        #expect(length(cooldown) == .seconds(301))
        let kept = KeptCooldown(address: "", cooldown: try #require(cooldown), isOfThisBoot: true)
        #expect(kept.remaining(at: stepped) == .seconds(1))
        // After a reboot only the wall clock counts: the cooldown may end early, and is never longer than before.
        #expect(kept.ofAnotherBoot.remaining(at: stepped) <= .seconds(301))
    }

    @Test func `a cooldown continues after a restart, one for a refusal only for its shortest time`() throws {
        let ban = SourceCooldown(
            reason: .rateLimited("HTTP 418", retryAfter: nil), since: moment(0), until: moment(3600),
            consecutiveFailures: 2)
        var health = Health()
        health.venue.breaker.resume(KeptCooldown(address: "", cooldown: ban, isOfThisBoot: true), at: moment(600))
        #expect(health.cooldown?.until == moment(3600))
        #expect(health.isBound(at: moment(3599).boottime))
        let rest12 = failed(&health, ban.reason, at: 3600, jitter: 0)
        #expect(CooldownRule.length(ban.reason, consecutiveFailures: 3, jitter: 0) == length(rest12))

        var refused = Health()
        let refusal = SourceCooldown(
            reason: .refused("HTTP 451"), since: moment(0), until: moment(86_400), consecutiveFailures: 9)
        refused.venue.breaker.resume(KeptCooldown(address: "", cooldown: refusal, isOfThisBoot: true), at: moment(600))
        #expect(refused.cooldown?.until == moment(1200))

        var over = Health()
        over.venue.breaker.resume(KeptCooldown(address: "", cooldown: ban, isOfThisBoot: true), at: moment(3601))
        #expect(over.cooldown == nil)
    }
}

private func registry(_ sources: [(name: String, limits: [RequestLimit])], interval: Duration = .seconds(1))
    -> SourceRegistry
{
    SourceRegistry(
        sources.map { name, limits in
            SourceDescription(
                venue: Venue(name, limits: limits), market: Market(name, "BTC/USD"), address: "https://\(name)")
        }, interval: interval)
}

extension SourceRegistry {
    fileprivate func requested(_ index: Int, at seconds: Double) -> SourceRegistry {
        var registry = self
        _ = registry.take(index, .tick, at: moment(seconds).boottime)
        return registry
    }
}

private func end(
    _ registry: inout SourceRegistry, _ index: Int, _ error: PriceLoadingError, times: Int = 1, at seconds: Double = 0
) {
    for _ in 0..<times {
        _ = registry.ended(index, .failure(error), latency: .zero, at: moment(seconds), jitter: 1)
    }
}

@Suite struct RegistryTests {
    private static let minute = [RequestLimit(3000, per: .seconds(60))]

    private func names(_ plan: SourceRegistry.Plan) -> [String] { plan.order.map(\.venue) }

    @Test func `a rate limit in one response for all markets of a venue counts once`() {
        let venue = Venue("kraken", limits: Self.minute)
        var registry = SourceRegistry(
            ["BTC/USD", "BTC/EUR", "BTC/CHF"].map {
                SourceDescription(venue: venue, market: Market("kraken", $0), address: "")
            }, interval: .seconds(1))
        let limit = PriceLoadingError.rateLimited("HTTP 429", retryAfter: nil)
        for index in 0...2 { end(&registry, index, limit, at: 0.01 * Double(index)) }
        #expect(registry.cooldown(2)?.consecutiveFailures == 1)
        end(&registry, 0, limit, at: 70)
        #expect(registry.cooldown(2)?.consecutiveFailures == 2)
        registry = registry.requested(0, at: 300)
        #expect(registry.reports(at: moment(300), [:]).map(\.requests) == [1, 1, 1], "a limit of the venue")
    }

    @Test func `while an exchange is in cooldown nothing is requested, whatever was planned`() {
        let venue = Venue("binance", limits: Self.minute)
        var registry = SourceRegistry(
            [SourceDescription(venue: venue, market: .binance, address: "")], interval: .seconds(1))
        func mayRequest(_ seconds: Double) -> Bool {
            var registry = registry
            return registry.take(0, .tick, at: moment(seconds).boottime)
        }
        #expect(mayRequest(0))
        #expect(registry.plan(.tick, among: [.binance], at: moment(0).boottime).order == [registry.market(0)])
        end(&registry, 0, .rateLimited("HTTP 418", retryAfter: .seconds(120)), at: 1)
        #expect(!mayRequest(10))
        #expect(mayRequest(600))
    }

    @Test func `a reserve is not requested until no other source has had a price for its time`() {
        var sources = [("alpha", "USD"), ("binance", "USD"), ("kraken", "EUR")].map { name, currency in
            SourceDescription(venue: Venue(name), market: Market(name, "BTC/\(currency)"), address: name)
        }
        sources[1].reserve = .seconds(300)
        var registry = SourceRegistry(sources.map { ($0, .seconds(1)) }, at: moment(0).boottime)
        func order(at seconds: Double, _ requester: Requester = .tick) -> [String] {
            // The euro's source has a price at every moment.
            _ = registry.ended(2, .success, latency: .zero, at: moment(seconds), jitter: 0)
            let dollars = Set(sources.prefix(2).map(\.market))
            return names(registry.plan(requester, among: dollars, at: moment(seconds).boottime))
        }
        #expect(order(at: 299.9) == ["alpha"])
        #expect(order(at: 299.9, .observer) == ["alpha"])
        #expect(order(at: 300) == ["alpha", "binance"])
        // A success of the reserve does not end its use; a success of the peer does.
        _ = registry.ended(1, .success, latency: .zero, at: moment(310), jitter: 0)
        #expect(order(at: 311) == ["alpha", "binance"])
        _ = registry.ended(0, .success, latency: .zero, at: moment(320), jitter: 0)
        #expect(order(at: 321) == ["alpha"])
        // Sources of another currency do not count, and a sleep of the machine restarts the time.
        registry.looked(at: moment(610).boottime)
        registry.looked(at: moment(3600).boottime)
        #expect(order(at: 3600) == ["alpha"])
        #expect(order(at: 3900) == ["alpha", "binance"])
        _ = registry.ended(0, .success, latency: .zero, at: moment(320), jitter: 0)
        // A reload does not restart the time.
        var reloaded = SourceRegistry(sources.map { ($0, .seconds(1)) }, at: moment(600).boottime)
        reloaded.inherit(registry, at: moment(600))
        registry = reloaded
        #expect(order(at: 619) == ["alpha"])
        #expect(order(at: 620) == ["alpha", "binance"])
    }

    @Test func `a source in cooldown is skipped, and the plan says so`() {
        var registry = registry([("a", Self.minute), ("b", Self.minute), ("c", Self.minute)])
        end(&registry, 0, outage, times: 3)
        end(&registry, 1, .rateLimited("HTTP 429", retryAfter: .seconds(59)))
        let plan = registry.plan(.tick, at: moment(1).boottime)
        #expect(names(plan) == ["c", "a"], "who only failed is the last resort of a tick")
        #expect(plan.skipped.map(\.source) == ["b"])
        #expect(names(registry.plan(.client, at: moment(1).boottime)) == ["c"])
        #expect(
            registry.plan(.client, at: moment(1).boottime).skipped.map(\.description) == [
                "a: cooldown until 2024-08-25 14:30:05 UTC, not available: HTTP 503",
                "b: cooldown until 2024-08-25 14:31:02 UTC, rate limited for 59 s: HTTP 429",
            ])
    }

    @Test func `if all are in cooldown, failed sources are requested, but not sources with a limit or a refusal`() {
        var registry = registry([("a", Self.minute), ("b", Self.minute), ("c", Self.minute)])
        end(&registry, 0, .refused("HTTP 451"))
        end(&registry, 1, .rateLimited("HTTP 418", retryAfter: .seconds(60)))
        end(&registry, 2, outage, times: 3)
        #expect(names(registry.plan(.tick, at: moment(1).boottime)) == ["c"])
        end(&registry, 2, .rateLimited("", retryAfter: .seconds(60)), at: 1)
        #expect(registry.plan(.tick, at: moment(2).boottime).order.isEmpty)
        #expect(registry.plan(.tick, at: moment(2).boottime).skipped.count == 3)
    }

    @Test func `a tick leaves probing to the observer while another source is healthy`() {
        var registry = registry([("a", Self.minute), ("b", Self.minute)])
        end(&registry, 0, outage, times: 3)
        #expect(names(registry.plan(.tick, at: moment(60).boottime)) == ["b", "a"])
        #expect(names(registry.plan(.observer, at: moment(60).boottime)) == ["a"])
        #expect(
            names(registry.plan(.observer, at: moment(4).boottime)) == ["b"], "not before its rest is over")
    }

    @Test func `the observer takes turns among the sources that the ticks do not request`() {
        var registry = registry([("a", Self.minute), ("b", Self.minute), ("c", Self.minute)])
        var seen: [String] = []
        for second in stride(from: 0.0, to: 90, by: 15) {
            for tick in 0..<15 { _ = registry.take(0, .tick, at: moment(second + Double(tick)).boottime) }
            let plan = registry.plan(.observer, at: moment(second + 14.5).boottime)
            for index in plan.order { _ = registry.take(index, .observer, at: moment(second + 14.5).boottime) }
            seen += names(plan)
        }
        #expect(seen == ["b", "c", "b", "c", "b", "c"])
    }

    @Test func `a source whose requests the ticks give up each time is the observer's`() {
        var registry = registry([("a", Self.minute), ("b", Self.minute)])
        for second in 0..<20 {
            _ = registry.take(0, .tick, at: moment(Double(second)).boottime)
            _ = registry.take(1, .tick, at: moment(Double(second) + 0.5).boottime)
            registry.gaveUp(Market("b", "BTC/USD"))
        }
        #expect(names(registry.plan(.observer, at: moment(20).boottime)) == ["b"])
        _ = registry.take(1, .observer, at: moment(20).boottime)
        #expect(names(registry.plan(.observer, at: moment(20).boottime)).isEmpty)
    }

    @Test func `a request for candles counts in the limits, and the observer does not know of it`() {
        var registry = registry([("a", Self.minute), ("b", Self.minute)])
        _ = registry.take(0, .tick, at: moment(0).boottime)
        for second in 0..<20 {
            let wait = registry.grant(
                Market("b", "BTC/USD"), .client, within: 60_000, at: moment(Double(second)).boottime)
            #expect(wait == 0)
        }
        #expect(names(registry.plan(.observer, at: moment(9).boottime)) == ["b"])
        #expect(registry.reports(at: moment(9), [:])[1].requests == 20)
        let unknown = registry.grant(Market("c", "BTC/USD"), .client, within: 60_000, at: moment(0).boottime)
        #expect(unknown == nil)
    }

    @Test func `changed limits apply at once, and what is known of the exchange is kept`() {
        var old = registry([("a", [RequestLimit(10, per: .seconds(1))])])
        _ = old.take(0, .tick, at: moment(0).boottime)
        end(&old, 0, .rateLimited("HTTP 429", retryAfter: .seconds(5)))
        var new = registry([("a", [RequestLimit(1, per: .seconds(10))])])
        new.inherit(old, at: moment(1))
        #expect(new.isCoolingDown(0, at: moment(1).boottime))
        #expect(!new.isWithinLimits(0, .tick, at: moment(9.8).boottime))
        #expect(new.isWithinLimits(0, .tick, at: moment(10).boottime))
        #expect(new.pace(0) == .seconds(10))
        #expect(new.reports(at: moment(1), [:])[0].requests == 1)
    }

    @Test func `a source that was not configured for a while has used what it had used of its limits`() {
        let limits = [RequestLimit(1, per: .seconds(10))]
        let sources = [("a", limits), ("b", limits)]
        let full = registry(sources).requested(0, at: 0)
        var without = registry([("b", limits)])
        without.inherit(full, at: moment(1))
        var back = registry(sources)
        back.inherit(without, at: moment(2))
        #expect(!back.isWithinLimits(0, .tick, at: moment(9.8).boottime))
        #expect(back.reports(at: moment(2), [:]).map(\.requests) == [1, 0])
        // Once the period is over, nothing needs to be known.
        without.inherit(without, at: moment(60))
        back = registry(sources)
        back.inherit(without, at: moment(61))
        #expect(back.reports(at: moment(61), [:]).map(\.requests) == [0, 0])
    }

    @Test func `the observer does not request the only source, which the ticks request`() {
        var registry = registry([("a", Self.minute)])
        _ = registry.take(0, .tick, at: moment(0).boottime)
        #expect(registry.plan(.observer, at: moment(9).boottime).order.isEmpty)
    }

    /// Currencies on one exchange that allows a request in `period` seconds: how many ticks of each send a request in two minutes, and the
    /// longest time between two, in seconds.
    private func granted(_ intervals: [Int64], period: Int64 = 1, phase: Int64 = 1) -> [(count: Int, longest: Int64)] {
        let venue = Venue("mine", limits: [RequestLimit(1, per: .seconds(period))])
        let markets = ["EUR", "USD", "CHF", "GBP"].prefix(intervals.count).map { Market("mine", "BTC/\($0)") }
        var registry = SourceRegistry(
            zip(markets, intervals).map {
                (SourceDescription(venue: venue, market: $0, address: "https://mine"), .seconds($1))
            })
        var granted = intervals.map { _ in [Int64]() }
        func tick(_ index: Int, _ milliseconds: Int64) {
            let at = BootTime.boot + milliseconds
            let plan = registry.plan(.tick, among: [markets[index]], at: at)
            registry.wait(for: plan.waiting, .tick, at: at)
            guard !plan.order.isEmpty else { return }
            let wait = registry.wait(for: markets[index], at: at).wholeMilliseconds
            if registry.take(markets[index], .tick, at: at + wait) { granted[index].append(milliseconds / 1000) }
        }
        for second in 0..<120 as Range<Int64> {
            for index in intervals.indices where second % intervals[index] == 0 {
                tick(index, second * 1000 + Int64(index) * phase)
            }
        }
        return granted.map { seconds in
            (seconds.count, zip(seconds, seconds.dropFirst() + [120]).map { $1 - $0 }.max() ?? 120)
        }
    }

    @Test(arguments: [1, 300] as [Int64])
    func `a rare tick comes before the frequent ones of another currency, which lose no more than these requests`(
        phase: Int64
    ) {
        let shares = granted([1, 10], phase: phase)
        #expect(shares[1] == (11, 10))
        #expect(shares[0].count >= 96 && shares[0].longest <= 3)
    }

    @Test(
        arguments: [
            ([1, 1], 1, 59), ([1, 1, 1], 1, 39), ([1, 1, 1, 1], 1, 29), ([1, 1], 2, 29), ([1, 2], 2, 29),
            ([1, 10], 10, 5),
        ] as [([Int64], Int64, Int)])
    func `currencies that need more than the limit allows take turns`(intervals: [Int64], period: Int64, least: Int) {
        for share in granted(intervals, period: period) {
            #expect(share.count >= least)
            #expect(share.longest <= 2 * period * Int64(intervals.count) + 1)
        }
    }

    @Test func `a tick that leaves its request to another currency goes on to its next source`() {
        let mine = Venue("mine", limits: [RequestLimit(1, per: .seconds(1))])
        let (euro, other, dollar) = (Market("mine", "BTC/EUR"), Market("other", "BTC/EUR"), Market("mine", "BTC/USD"))
        var registry = SourceRegistry(
            [(mine, euro), (Venue("other"), other), (mine, dollar)].map {
                (SourceDescription(venue: $0, market: $1, address: "https://mine"), .seconds(1))
            })
        let first = BootTime.boot
        #expect(registry.plan(.tick, among: [euro, other], at: first).order == [euro, other])
        let isTaken = registry.take(euro, .tick, at: first)
        #expect(isTaken)
        registry.wait(for: registry.plan(.tick, among: [dollar], at: first).waiting, .tick, at: first)
        let next = registry.plan(.tick, among: [euro, other], at: first + 1000)
        #expect(next.order == [other] && next.waiting == [euro])
        #expect(registry.plan(.tick, among: [dollar], at: first + 1000).order == [dollar])
    }

    @Test func `a source that can't be requested at every tick comes after those that can`() {
        let slow = [RequestLimit(1, per: .seconds(10))]
        let impatient = registry([("a", Self.minute), ("slow", slow), ("b", [])])
        #expect(names(impatient.plan(.tick, at: 0)) == ["a", "b", "slow"])
        let patient = registry([("slow", slow), ("b", [])], interval: .seconds(10))
        #expect(names(patient.plan(.tick, at: 0)) == ["slow", "b"])
        #expect(registry([("slow", slow)]).isSlow(0))
    }

    @Test func `a tick skips a source whose limit is used up, and a client gets no other source's price instead`() {
        var registry = registry([("a", [RequestLimit(1, per: .seconds(1))]), ("b", Self.minute)])
        let now = moment(0).boottime
        let (first, second) = (registry.take(0, .tick, at: now), registry.take(0, .tick, at: now + 999))
        #expect(first && !second)
        // A tick waits for a limit for a moment: ticks are not exactly periodic.
        #expect(names(registry.plan(.tick, at: now + 950)) == ["a", "b"])
        #expect(registry.wait(for: registry.market(0), at: now + 950) == .milliseconds(50))
        #expect(registry.wait(for: registry.market(0), at: now + 949) == .zero)
        #expect(names(registry.plan(.tick, at: now + 949)) == ["b"])
        let client = registry.plan(.client, at: now + 999)
        #expect(client.order.isEmpty)
        #expect(client.skipped.map(\.description) == ["a: requested as often as its limit allows"])
        #expect(client.skipped.map(\.lastFailure) == [nil])
        end(&registry, 0, .unreachable("no route"))
        #expect(registry.plan(.client, at: now + 999).skipped.map(\.lastFailure) == [.unreachable("no route")])
        // The next tick has priority, as long as there are ticks.
        #expect(registry.plan(.client, at: now + 1000).order.isEmpty)
        #expect(names(registry.plan(.client, at: now + 2000)) == ["a", "b"])
    }

    @Test func `cooldowns that a restart must not shorten are stored by address`() {
        var first = registry([("a", []), ("b", []), ("c", [])])
        end(&first, 0, .rateLimited("HTTP 429", retryAfter: .seconds(60)))
        end(&first, 1, .refused("HTTP 451"))
        end(&first, 2, outage, times: 3)
        let cooldowns = first.cooldowns(at: moment(1))
        #expect(Set(cooldowns.keys) == ["a", "b"])
        var second = registry([("a", []), ("b", [])])
        second.resume(cooldowns, at: moment(2))
        #expect(second.plan(.tick, at: moment(2).boottime).order.isEmpty)
        var elsewhere = SourceRegistry(
            [SourceDescription(venue: Venue("a"), market: Market("a", "BTC/USD"), address: "https://mirror")],
            interval: .seconds(1))
        elsewhere.resume(cooldowns, at: moment(2))
        #expect(elsewhere.plan(.tick, at: moment(2).boottime).order == [elsewhere.market(0)])
        // The cooldown of the unused address is kept, because the source may use that address again.
        #expect(Set(elsewhere.cooldowns(at: moment(3)).keys) == ["a", "b"])
        var back = registry([("b", []), ("a", [])])
        back.inherit(elsewhere, at: moment(4))
        #expect(back.plan(.tick, at: moment(4).boottime).order.isEmpty)
        #expect(first.cooldowns(at: moment(100_000)).isEmpty && back.cooldowns(at: moment(100_000)).isEmpty)
    }

    @Test func `two markets of a venue share its limits and bans, and have separate failures`() {
        let venue = Venue("a", limits: [RequestLimit(1, per: .seconds(1))])
        let markets = [Market("a", "BTC/USD"), Market("a", "BTC/EUR")]
        var registry = SourceRegistry(
            markets.map { SourceDescription(venue: venue, market: $0, address: "https://a") }, interval: .seconds(1))
        let now = moment(0).boottime
        let (first, second) = (registry.take(0, .tick, at: now), registry.take(1, .tick, at: now))
        #expect(first && !second)
        end(&registry, 0, outage, times: 3)
        #expect(registry.isCoolingDown(0, at: now) && !registry.isCoolingDown(1, at: now))
        end(&registry, 0, .rateLimited("HTTP 429", retryAfter: .seconds(60)))
        #expect(registry.isCoolingDown(1, at: now))
        #expect(registry.cooldowns(at: moment(0)).count == 1)
    }

    @Test func `a cooldown is stored by the wall clock at the time of storing`() throws {
        var registry = registry([("a", [])])
        end(&registry, 0, .rateLimited("HTTP 429", retryAfter: .seconds(3600)))
        let now = moment(60)
        // The clock was set a year ahead in the meantime.
        let set = ObservationTime(
            wall: Timestamp(milliseconds: now.wall.milliseconds + 31_536_000_000), boottime: now.boottime)
        let kept = try #require(registry.cooldowns(at: set)["a"])
        #expect(
            kept.cooldown.until.wall.milliseconds - set.wall.milliseconds == kept.cooldown.until.boottime - now.boottime
        )
        #expect(kept.ofAnotherBoot.remaining(at: set) > .seconds(3500))
    }
}
