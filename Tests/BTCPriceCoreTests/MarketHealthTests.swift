import TestSupport
import Testing

@testable import BTCPriceCore

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

@Suite struct MarketHealthTests {
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
