import BTCPriceCore
import FoundationEssentials
import TestSupport

/// Runs recorded prices from a single source through the shipped core. No other source can confirm them, and none may be withheld.
/// - Parameters:
///   - path: A file with one line per price: its second and the price.
///   - interval: The time from one tick to the next.
func rehearseReplay(of path: String, interval: Duration, on clock: VirtualClock) async throws {
    let prices = try recorded(path)
    guard let first = prices.first, let last = prices.last else { throw ReplayError(reason: "\(path) holds no price") }
    let venue = try ScriptedVenue("binance", clock: clock) { seconds, _ in
        // The last price before this moment.
        var (low, high) = (0, prices.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if prices[middle].second <= first.second + seconds { low = middle } else { high = middle }
        }
        return .price(prices[low].price)
    }
    let kept = CachedPrice(
        ShownPrice(
            PriceQuote(
                value: .cents(first.price), currency: "USD",
                timestamp: Timestamp(milliseconds: VirtualDaemon.wallStart),
                source: "binance", market: "BTC/USDT")))
    let shown = Shared((fresh: 0, stale: 0, failures: [String]()))
    let tally = Shared(Tally())
    let daemon = await VirtualDaemon(
        [VirtualCurrency(interval: interval, loaders: [venue])], clock: clock, store: MemoryStore(kept),
        tally: tally
    ) { state in
        shown.update { shown in
            if state.freshness == .fresh { shown.fresh += 1 } else { shown.stale += 1 }
            if let failure = state.failure, shown.failures.count < 5 { shown.failures.append(failure) }
        }
    }
    try await clock.sleep(until: clock.instant(at: .milliseconds(Int64((last.second - first.second) * 1000))))
    let record = await daemon.record
    await daemon.stop()
    print(
        "prices \(prices.count) fresh \(shown.current.fresh) stale \(shown.current.stale) withheld \(record.validated.withheld)"
    )
    for failure in shown.current.failures { print(failure) }
}

private struct ReplayError: Error {
    let reason: String
}

private func recorded(_ path: String) throws -> [(second: Double, price: Double)] {
    try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map { line in
        let parts = line.split(separator: " ").compactMap { Double($0) }
        guard parts.count == 2 else { throw ReplayError(reason: "\(path): \(line)") }
        return (parts[0], parts[1])
    }
}
