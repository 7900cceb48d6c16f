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
    static let lasts = Duration.seconds(86_400).wholeMilliseconds
}

extension ObservationBook {
    /// What to store with a quote that was observed at `boottime`.
    func learned(at boottime: BootTime) -> [LearnedBasis] {
        bases.known.filter { !$0.key.isMedian }
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
            bases.known[basis.market] = BasisTable.Basis(log: log, at: boottime - basis.age)
        }
    }
}
