/// What a price says: the price of bitcoin lies within an interval. Levels are natural logarithms in the common frame.
struct Claim: Sendable {
    let price: MarketObservation
    /// The middle of the interval.
    let middle: Double
    /// Half of its width.
    let halfWidth: Double
    /// Who says so. Each voter counts once.
    let voter: String
    /// Whether it counts against other prices. If not, it can only support the preferred one or, if none is preferred, any.
    var opposes: Bool

    var low: Double { middle - halfWidth }
    var high: Double { middle + halfWidth }

    func contains(_ level: Double) -> Bool { low <= level && level <= high }

    /// The same with the width of the median's vote.
    var inMedian: Claim {
        Claim(
            price: price, middle: middle, halfWidth: Vote.Bounds.medianWidth, voter: voter, opposes: opposes)
    }

    func agrees(with other: Claim) -> Bool { abs(middle - other.middle) <= halfWidth + other.halfWidth }
}

/// One vote: the value that most voters' intervals share wins, as in NTP (Marzullo's algorithm; RFC 5905, section 11.2.1). A pure value.
struct Vote: Sendable {
    /// All claims, the preferred ones first.
    let claims: [Claim]
    /// The claims whose intervals share the value that has won.
    let members: [Claim]
    /// The claims that count against it: those of other exchanges, also of the preferred price.
    let opponents: [Claim]
    /// The number of voters among ``members``.
    let votes: Int
    /// The largest number of voters among ``opponents`` that agree on a value.
    let rivals: Int

    var isDecided: Bool { votes > rivals }

    /// - Parameters:
    ///   - preferred: The claims of the price that is shown if it wins; none in median mode. A price in USDT has one for each possible
    ///     rate.
    ///   - others: The claims of other exchanges.
    ///   - last: The value of the last vote. It decides between groups of the same size, if the preferred price is in neither.
    init(_ preferred: [Claim], _ others: [Claim], last before: Double?) {
        let claims = preferred + others
        // The most votes, but none only of claims that may only support; then the preferred price, the last value, the smallest spread,
        // the lowest level.
        var best: (members: [Claim], votes: Int, rank: (Int, Int, Double, Double, Double))?
        for claim in claims {
            let isPreferred = preferred.isEmpty || preferred.contains { $0.contains(claim.low) }
            let group = claims.filter { $0.contains(claim.low) && ($0.opposes || isPreferred) }
            guard let first = group.map(\.middle).min(), let last = group.map(\.middle).max() else { continue }
            let votes = group.voters
            let distance = before.map { before in group.map { abs($0.middle - before) }.min() ?? 0 } ?? 0
            let counted = group.contains(where: \.opposes) ? votes : 0
            let rank = (counted, isPreferred ? 1 : 0, -distance, first - last, -claim.low)
            if best.map({ rank > $0.rank }) ?? true { best = (group, votes, rank) }
        }
        let members = best?.members ?? []
        let opponents = claims.filter { claim in
            claim.opposes && !members.contains { $0.price.exchange == claim.price.exchange }
        }
        (self.claims, self.members, self.opponents) = (claims, members, opponents)
        votes = best?.votes ?? 0
        rivals = opponents.map { one in opponents.filter { $0.contains(one.low) }.voters }.max() ?? 0
    }
}

extension [Claim] {
    /// The number of different voters. Of several claims of one price, the first counts.
    var voters: Int {
        var names: [String] = []
        for (index, claim) in enumerated()
        where !names.contains(claim.voter) && !self[..<index].contains(where: { $0.price.market == claim.price.market })
        {
            names.append(claim.voter)
        }
        return names.count
    }

    func nearest(to level: Double) -> Claim? { self.min { abs($0.middle - level) < abs($1.middle - level) } }
}

extension Vote {
    /// The constants of the vote, each with its reason. Shares are natural logarithms.
    enum Bounds {
        /// Half of an interval: markets lie within 0.1 % of each other in calm hours, and a little more when they move.
        static let width = 0.002
        /// The same while a split stands.
        static let nearer = 0.0019
        /// The same in median mode, in which the middle of several is shown: in a crash, markets are 1 to 3 % apart.
        static let medianWidth = 0.0075
        /// The most that a market's own quotes, or a peer's uncertainty, widen an interval: a spread is no reason to believe a price.
        static let widest = 0.0035
        /// An interval grows with the root of its price's age in seconds, as a random walk does: bitcoin moves by 0.015 % in a second at a
        /// volatility of 80 % a year; this is twice that.
        static let drift = 0.0003
        /// An interval grows by this at most, and by this if it is not known where its market usually is.
        static let slack = 0.0015
        /// The farthest that a market may usually be from the middle of all: more is a wrong price.
        static let basis = 0.002
        /// Prices that are at most this far apart in time are of one moment, milliseconds: the observer's longest time between requests.
        static let moment = Duration.seconds(5).wholeMilliseconds
        /// How long a price says something about the present, milliseconds; see also ``SelectionRules/memory``.
        static let memory = Duration.seconds(60).wholeMilliseconds
        /// How far a price may move without another exchange: 0.6 % for the spread, and 0.3 % in a second, 20 times the volatility above;
        /// and at most, from where others agreed last, while they are silent.
        static let jump = (atOnce: 0.006, inASecond: 0.003, whileSilent: 0.03)
        /// After this many ticks that agree, a jump is shown although none confirms it: bad prints are shorter.
        static let ticks = 3
        /// How slowly it is learned where a market usually is, milliseconds: a basis is a habit, not a moment.
        static let habit = Duration.seconds(300).wholeMilliseconds
        /// The largest share of a new difference in that habit.
        static let share = 0.5
    }
}
