/// How far each market usually is from the others: a pure value.
struct BasisTable: Sendable {
    /// How far a market usually is above the middle of all, and when it was compared last.
    struct Basis: Sendable, Hashable {
        let log: Double
        let at: BootTime
    }

    private(set) var known: [Market: Basis] = [:]

    subscript(market: Market) -> Basis? { known[market] }

    /// Begins with a market that is not yet compared with another one.
    mutating func begin(_ market: Market, at boottime: BootTime) { known[market] = Basis(log: 0, at: boottime) }

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

    /// What to store with a quote that was observed at `boottime`.
    func learned(at boottime: BootTime) -> [LearnedBasis] {
        known.filter { !$0.key.isMedian }
            .map { market, basis in
                LearnedBasis(
                    market: market, millionths: Int64((basis.log * 1_000_000).rounded()),
                    age: max(0, boottime - basis.at))
            }.sorted { $0.market.venue < $1.market.venue }
    }

    /// Continues from what an earlier run learned.
    /// - Parameter boottime: When the quote that it was stored with was observed.
    mutating func restore(_ learned: [LearnedBasis], at boottime: BootTime, now: BootTime) {
        for basis in learned where now - boottime + basis.age <= LearnedBasis.lasts {
            let log = Double(basis.millionths) / 1_000_000
            guard abs(log) <= Vote.Bounds.basis else { continue }
            known[basis.market] = Basis(log: log, at: boottime - basis.age)
        }
    }
}

/// How far a market usually is from the others, as it is stored with the last quote across a restart.
package struct LearnedBasis: Sendable, Hashable {
    package let market: Market
    /// The distance in millionths of the price (a natural logarithm); above zero if it is above the others.
    package let millionths: Int64
    /// The time from when it was last learned to the quote, in milliseconds.
    package let age: Int64

    package init(market: Market, millionths: Int64, age: Int64) {
        self.market = market
        self.millionths = millionths
        self.age = age
    }

    /// A basis older than this is not used after a restart, in milliseconds.
    fileprivate static let lasts = Duration.seconds(86_400).wholeMilliseconds
}
