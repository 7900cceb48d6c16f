import TestSupport
import Testing

@testable import BTCPriceCore
@testable import BTCPriceDaemon
@testable import BTCPricePersistence
@testable import BTCPriceSocket

/// What the metrics say of each kind of doubt.
@Suite struct DoubtTests {
    @Test func `the table of doubt: the metrics say of every kind what it is`() throws {
        var table = DoubtTable()
        table.add("metrics of the price", KindOfDoubt.allCases) { kind in
            let state = kind.state
            let record = TickRecord(
                state: state, since: KindOfDoubt.now.wall, failed: 0, skipped: 0, lastTick: nil,
                durations: DurationHistogram(), validated: ValidatedTicks(), pegRate: nil, lastPrices: [:],
                verdicts: [:], claims: [:], ways: [:], quotes: [:])
            let metrics = DaemonMetrics(
                now: KindOfDoubt.now, startedAt: KindOfDoubt.now, isTicking: kind != .paused,
                currencies: [
                    .init(
                        currency: Currency(rawValue: state.currency) ?? .usd, interval: .seconds(1), record: record,
                        sources: [])
                ], registry: SourceRegistry([]), clients: ClientCounts(limits: .fitting()), lastSync: nil,
                writes: .init(), process: ProcessUsage(cpu: 0, resident: nil, descriptors: nil))
            return metrics.families.filter { $0.name.hasPrefix("btcpriced_price") }.flatMap { family in
                // Of several states, the one that it is in.
                family.samples.filter { family.kind != .stateset || $0.value == "1" }.map { sample in
                    let labels = sample.labels.filter { !["base", "quote"].contains($0.name) }.map(\.value)
                    return ([String(family.name.dropFirst("btcpriced_".count))] + labels + [sample.value])
                        .joined(separator: " ")
                }
            }.joined(separator: ", ")
        }
        #expect(try table.isKept(), "\(table.text)")
    }
}
