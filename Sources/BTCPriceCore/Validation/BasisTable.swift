/// How far each market usually is from the others: a pure value.
struct BasisTable: Sendable {
    /// How far a market usually is above the middle of all, and when it was compared last.
    struct Basis: Sendable, Hashable {
        var log: Double
        var at: BootTime
    }

    var known: [Market: Basis] = [:]

    subscript(market: Market) -> Basis? { known[market] }

    /// Learns from two prices that agree.
    /// - Parameters:
    ///   - apart: How far the market is from where it was expected.
    ///   - other: The market that it was compared with.
    /// - Returns: How far the middle of all has moved. All bases are relative to it.
    mutating func learn(_ market: Market, _ apart: Double, beside other: Market, at boottime: BootTime) -> Double {
        let before = known[market]
        let elapsed = before.map { Double(max(0, boottime - $0.at)) } ?? .infinity
        let share = min(Vote.Bounds.share, elapsed / Double(Vote.Bounds.habit))
        known[market] = Basis(log: (before?.log ?? 0) + apart * share, at: boottime)
        if !other.isMedian { known[other] = Basis(log: known[other]?.log ?? 0, at: boottime) }
        // A median is the middle of all itself.
        return other.isMedian ? 0 : center()
    }

    /// Forgets where a market usually is.
    /// - Returns: How far the middle of all has moved.
    mutating func forget(_ market: Market) -> Double {
        known[market] = nil
        return center()
    }

    /// Makes all bases relative to their middle.
    private mutating func center() -> Double {
        let middle = known.filter { !$0.key.isMedian }.values.map(\.log).median ?? 0
        for (market, basis) in known where !market.isMedian {
            let log = min(max(basis.log - middle, -Vote.Bounds.basis), Vote.Bounds.basis)
            known[market] = Basis(log: log, at: basis.at)
        }
        return middle
    }

    /// Forgets all markets but these.
    mutating func keep(only markets: Set<Market>) { known = known.filter { markets.contains($0.key) } }
}
