@testable import BTCPriceCore

/// The sources by their place in the configured order, for tests that have no name for their markets.
extension SourceRegistry {
    func market(_ place: Int) -> Market { entries[place].source.market }

    mutating func take(_ place: Int, _ requester: Requester, at boottime: BootTime) -> Bool {
        take(market(place), requester, at: boottime)
    }

    mutating func ended(
        _ place: Int, _ outcome: MarketHealth.Outcome, latency: Duration, at now: ObservationTime,
        jitter: @autoclosure () -> Double
    ) -> SourceCooldown? {
        ended(market(place), outcome, latency: latency, at: now, jitter: jitter())
    }
}
