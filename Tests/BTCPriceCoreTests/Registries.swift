import TestSupport

@testable import BTCPriceCore

let outage = PriceLoadingError.unavailable("HTTP 503")

func moment(_ seconds: Double) -> ObservationTime {
    ObservationTime(
        wall: Timestamp(milliseconds: 1_724_596_200_000 + Int64(seconds * 1000)),
        boottime: 5_000_000 + Int64(seconds * 1000))
}

/// A source that is not requested.
func source(_ venue: Venue, _ market: Market, at address: String = "", reserve: Duration? = nil) -> FetchLatestPrice {
    FetchLatestPrice(
        loader: SetLoader(venue, market) { () throws(PriceLoadingError) in throw .cancelled }, address: address,
        timeout: .milliseconds(800), hedge: .milliseconds(400), reserve: reserve)
}

/// Short forms for tests that do not depend on the currency: all sources have dollar prices.
extension SourceRegistry {
    init(_ sources: [FetchLatestPrice], interval: Duration) {
        self.init(sources.map { ($0, interval) })
    }

    private var markets: [Market] { entries.map(\.source.market) }

    func plan(_ requester: Requester, at boottime: BootTime) -> Plan {
        plan(requester, among: Set(markets), at: boottime)
    }

    func reports(at now: ObservationTime, _ verdicts: [Market: MarketVerdict]) -> [SourceReport] {
        reports(of: markets, at: now, verdicts)
    }

    // The sources by their index in the configured order, for tests that have no name for their markets.

    func market(_ index: Int) -> Market { entries[index].source.market }

    mutating func take(_ index: Int, _ requester: Requester, at boottime: BootTime) -> Bool {
        take(market(index), requester, at: boottime)
    }

    mutating func ended(
        _ index: Int, _ outcome: MarketHealth.Outcome, latency: Duration, at now: ObservationTime,
        jitter: @autoclosure () -> Double
    ) -> SourceCooldown? {
        ended(market(index), outcome, latency: latency, at: now, jitter: jitter())
    }
}

func registry(_ sources: [(name: String, limits: [RequestLimit])], interval: Duration = .seconds(1))
    -> SourceRegistry
{
    SourceRegistry(
        sources.map { name, limits in
            source(Venue(name, limits: limits), Market(name, "BTC/USD"), at: "https://\(name)")
        }, interval: interval)
}

extension SourceRegistry {
    func requested(_ index: Int, at seconds: Double) -> SourceRegistry {
        var registry = self
        _ = registry.take(index, .tick, at: moment(seconds).boottime)
        return registry
    }
}

func end(
    _ registry: inout SourceRegistry, _ index: Int, _ error: PriceLoadingError, times: Int = 1, at seconds: Double = 0
) {
    for _ in 0..<times {
        _ = registry.ended(index, .failure(error), latency: .zero, at: moment(seconds), jitter: 1)
    }
}
