import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct SourceRegistryTests {
    private static let minute = [RequestLimit(3000, per: .seconds(60))]

    private func names(_ plan: SourceRegistry.Plan) -> [String] { plan.order.map(\.venue) }

    @Test func `a rate limit in one response for all markets of a venue counts once`() {
        let venue = Venue("kraken", limits: Self.minute)
        var registry = SourceRegistry(
            ["BTC/USD", "BTC/EUR", "BTC/CHF"].map {
                source(venue, Market("kraken", $0))
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
            [source(venue, .binance)], interval: .seconds(1))
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
        let sources = [("alpha", "USD"), ("binance", "USD"), ("kraken", "EUR")].map { name, currency in
            source(
                Venue(name), Market(name, "BTC/\(currency)"), at: name,
                reserve: name == "binance" ? .seconds(300) : nil)
        }
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
                (source(venue, $0, at: "https://mine"), .seconds($1))
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
                (source($0, $1, at: "https://mine"), .seconds(1))
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
            [source(Venue("a"), Market("a", "BTC/USD"), at: "https://mirror")], interval: .seconds(1))
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
            markets.map { source(venue, $0, at: "https://a") }, interval: .seconds(1))
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
