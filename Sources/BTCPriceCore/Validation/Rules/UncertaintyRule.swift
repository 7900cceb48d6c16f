import Glibc

/// How certain a price is: how far the median of the markets may be from it.
///
/// As squares, two things add up: how far the shown market usually is from the median of the markets, and noise, which is how far the
/// markets differ from where they are expected, how far the price may have moved since, and half of the shown market's spread.
enum UncertaintyRule {
    /// A market that was observed longer ago does not count, milliseconds.
    static let oldest = Vote.Bounds.memory
    /// Chosen so that the median was within the estimate in rehearsals; `docs/validation.md` says in how many of their ticks.
    static let factor = 1.17
    /// The minimum noise, as a natural logarithm: the newest trade may be on either side of the spread.
    static let least = 0.00001
    /// The minimum time that a move takes, in milliseconds.
    static let shortestMove = Duration.milliseconds(500).wholeMilliseconds
    /// The share of the newest move in ``Belief/variance``.
    static let newest = 1.0 / 64
    /// The farthest distance in a split that counts, as a natural logarithm: a price times e^10 still fits.
    static let farthestSplit = 10.0

    /// - Returns: `nil` if no other market is known.
    static func estimate(_ decision: Decision, _ claims: Claims) -> Uncertainty? {
        guard let quote = decision.quote, let price = decision.accepted else { return nil }
        let belief = claims.belief
        let own = claims.place(of: price, near: nil)
        let others = claims.book.newest.sorted { $0.at > $1.at || $0.at == $1.at && $0.market.venue < $1.market.venue }
            .filter { other in
                other.exchange != price.exchange && price.at - other.at <= oldest && belief.bases[other.market] != nil
                    && !belief.falsetickers.contains(other.market) && !decision.rejects(other.market)
                    && decision.verdicts[other.market] != .outlier
            }.oneOf(\.exchange)
        // In a split, it extends to the farthest price of the other sides.
        let apart =
            (decision.split?.others.map { claims.place(of: $0, near: own) } ?? [])
            + [decision.split?.rate.map { $0.log + (belief.offset?.log ?? 0) }].compactMap(\.self)
        guard !others.isEmpty || !apart.isEmpty else { return nil }
        let basis = belief.bases[price.market]?.log ?? 0
        let bases = [basis] + others.compactMap { belief.bases[$0.market]?.log }
        let offset = abs((bases.median ?? basis) - basis)
        var noise = 0.0
        for other in others {
            let apart = claims.place(of: other, near: own) - own
            let moved = belief.variance * Double(max(0, price.at - other.at)) / 1000
            noise += max(0, apart * apart - moved)
        }
        noise =
            noise / Double(max(1, others.count)) + belief.variance + least * least + price.halfSpread * price.halfSpread
        let farthest = apart.map { abs($0 - own) }.max() ?? 0
        let share = max(factor * (offset * offset + noise).squareRoot(), exp(min(farthest, farthestSplit)) - 1)
        let millionths = Price(Int64((share * 1_000_000).rounded(.up)), scale: 6)
        return Uncertainty(
            plusMinus: (quote.value * millionths).rounded(toPlaces: 2),
            markets: Int64(max(others.count, decision.split?.others.count ?? 0) + (price.market.isMedian ? 0 : 1)))
    }
}
