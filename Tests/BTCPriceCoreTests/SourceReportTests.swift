import TestSupport
import Testing

@testable import BTCPriceCore

/// The source reports for an operator, and their counts.
@Suite struct SourceReportTests {
    private static let second = RequestLimit(10, per: .seconds(1))

    private static func registry(_ names: [String] = ["a", "b"], limits: [RequestLimit] = [second]) -> SourceRegistry {
        SourceRegistry(
            names.map {
                source(Venue($0, limits: limits), Market($0, "BTC/USD"), at: "https://\($0)")
            }, interval: .seconds(1))
    }

    private func uses(
        _ registry: SourceRegistry, at boottime: BootTime = 10_000, shown: Set<String> = []
    ) -> [SourceReport.Use] {
        registry.reports(
            at: time(boottime), Dictionary(uniqueKeysWithValues: shown.map { (Market($0, "BTC/USD"), .used) })
        ).map(\.use)
    }

    private func time(_ boottime: BootTime) -> ObservationTime {
        ObservationTime(wall: Timestamp(milliseconds: 1_000_000 + boottime.milliseconds), boottime: boottime)
    }

    private func ask(
        _ registry: inout SourceRegistry, _ index: Int, _ outcome: MarketHealth.Outcome, at boottime: BootTime = 10_000
    ) {
        _ = registry.take(index, .tick, at: boottime)
        _ = registry.ended(index, outcome, latency: .milliseconds(35), at: time(boottime), jitter: 0)
    }

    @Test func `each state of health has its own name`() {
        var registry = Self.registry()
        #expect(uses(registry) == [.untried, .untried])
        ask(&registry, 0, .success)
        #expect(uses(registry, shown: ["a"]) == [.current, .untried])
        #expect(uses(registry) == [.ready, .untried])
        ask(&registry, 1, .failure(.unavailable("HTTP 500")))
        #expect(uses(registry, shown: ["a"]) == [.current, .failing])
        for _ in 0..<2 { ask(&registry, 1, .failure(.unavailable("HTTP 500"))) }
        #expect(uses(registry, shown: ["a"]) == [.current, .resting])
        #expect(uses(registry, at: 10_000 + 6000, shown: ["a"]) == [.current, .probing])
        ask(&registry, 0, .failure(.rateLimited("HTTP 429", retryAfter: .seconds(9))))
        #expect(uses(registry)[0] == .limited)
        var other = Self.registry()
        ask(&other, 0, .failure(.refused("HTTP 451")))
        #expect(uses(other)[0] == .refused)
    }

    @Test func `a source with less than a request per tick is slow, and full when its limit is used up`() {
        var registry = Self.registry(["a"], limits: [RequestLimit(1, per: .seconds(3))])
        ask(&registry, 0, .success, at: 10_000)
        #expect(uses(registry, shown: ["a"]) == [.current], "it is what is shown")
        #expect(uses(registry) == [.full])
        #expect(uses(registry, at: 14_000) == [.slow])
        var quick = Self.registry(["a"], limits: [RequestLimit(10, per: .seconds(1))])
        for _ in 0..<4 { ask(&quick, 0, .success) }
        #expect(uses(quick) == [.full])
    }

    @Test func `after a reload, a source at the same address keeps its health`() {
        let registry = { (sources: [(name: String, address: String)]) in
            SourceRegistry(
                sources.map {
                    source(Venue($0.name), Market($0.name, "BTC/USD"), at: $0.address)
                }, interval: .seconds(1))
        }
        var old = registry([("a", "https://a"), ("b", "https://b")])
        ask(&old, 0, .failure(.refused("HTTP 451")))
        var new = registry([("c", "https://c"), ("b", "https://b"), ("a", "https://a")])
        new.inherit(old, at: time(10_000))
        #expect(uses(new) == [.untried, .untried, .refused])
        // Another address is another host.
        var elsewhere = registry([("a", "https://mirror")])
        elsewhere.inherit(new, at: time(10_000))
        #expect(uses(elsewhere) == [.untried])
    }

    @Test func `the letters are all different`() {
        let letters = SourceReport.Use.allCases.map(\.letter)
        #expect(Set(letters).count == letters.count)
    }

    @Test func `times use the current setting of the wall clock`() throws {
        var registry = Self.registry()
        ask(&registry, 0, .success, at: 10_000)
        // Ten seconds later the clock is set an hour ahead.
        let later = ObservationTime(wall: Timestamp(milliseconds: 5_000_000), boottime: 20_000)
        let report = try #require(registry.reports(at: later, [:]).first)
        #expect(report.lastSuccess == Timestamp(milliseconds: 4_990_000))
        #expect(report.latency == SourceReport.Latency(p50: 35, p90: 35, p99: 35, answers: 1))
        #expect(report.requests == 1)
    }

    @Test(arguments: [0, 5, 1_000_000, 400_000_000_000] as [BootTime])
    func `requests are counted over the last period, from the first second of a boot on`(boot: BootTime) {
        for limit in [RequestLimit(10, per: .seconds(1)), RequestLimit(7500, per: .seconds(86_400))] {
            let period = limit.period.wholeMilliseconds
            var tally = RequestTally(limit)
            #expect(tally.count(at: boot) == 0)
            for step in 0..<10 as Range<Int64> { tally.add(at: boot + step * period / 10) }
            #expect(tally.count(at: boot + period * 9 / 10) == 10)
            // Half a period later half of the requests are outside of it. Up to one thirtieth of the period may still be counted.
            #expect((5...6).contains(tally.count(at: boot + period * 15 / 10)))
            #expect(tally.count(at: boot + 3 * period) == 0)
        }
    }
}
