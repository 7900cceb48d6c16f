@testable import BTCPriceCore

// Short forms for tests that do not depend on the currency: all sources have dollar prices.

extension SourceRegistry {
    init(_ sources: [SourceDescription], interval: Duration) {
        self.init(sources.map { ($0, interval) })
    }

    private var markets: [Market] { entries.map(\.source.market) }

    func plan(_ requester: Requester, at boottime: BootTime) -> Plan {
        plan(requester, among: Set(markets), at: boottime)
    }

    func reports(at now: ObservationTime, _ verdicts: [Market: MarketVerdict]) -> [SourceReport] {
        reports(of: markets, at: now, verdicts)
    }
}
