import Glibc

/// How certain a price is: how far the middle of the markets may be from it when it is read.
///
/// Three things add up: how far the shown market usually is from the middle; how far the markets differ now from where they are expected;
/// and how far the price may have moved since its trade until three quarters of the time to the next tick are over. In a doubt, it reaches
/// to what contradicts the price.
enum UncertaintyRule {
    /// Nobody knows where the price is now if the shown trade is older, milliseconds.
    static let oldestTrade = Duration.seconds(30).wholeMilliseconds
    /// The standard deviations within which 19 of 20 moves are, if the variance is that of a dozen moves (Student).
    static let deviations = 2.2
    /// When a streamed price is read, milliseconds after it has come.
    static let pushed: Int64 = 250
    /// The minimum noise, as a natural logarithm: the newest trade may be on either side of the spread.
    static let least = 0.00001
    /// The minimum time that a move takes, in milliseconds.
    static let shortestMove = Duration.milliseconds(500).wholeMilliseconds
    /// The share of the newest move in ``Belief/variance``.
    static let newest = 1.0 / 64
    /// The farthest doubt that counts, as a natural logarithm: a price times e^10 still fits.
    static let farthestDoubt = 10.0

    /// - Returns: `nil` if nothing else is known.
    static func estimate(_ decision: Decision, _ claims: Claims, _ round: Round) -> Uncertainty? {
        guard let quote = decision.quote, let price = decision.accepted else { return nil }
        let belief = claims.belief
        let own = claims.level(of: price, near: nil)
        let known = claims.book.newest.sorted { $0.at > $1.at || $0.at == $1.at && $0.market.venue < $1.market.venue }
            .filter {
                $0.exchange != price.exchange && price.at - $0.at <= claims.rules.memory
                    && !claims.isDisowned($0.market)
            }
            .oneOf(\.exchange)
        // Those that were not outvoted, and of which it is known where they usually are, or where they are now.
        let others = known.filter { other in
            !belief.falsetickers.contains(other.market) && !decision.rejects(other.market)
                && decision.verdicts[other.market] != .outlier
                && (belief.bases[other.market] != nil || price.at - other.at <= Vote.Bounds.moment)
        }
        // In a doubt, it extends to the farthest price that may be right.
        var doubts = decision.split?.others.map { abs(claims.level(of: $0, near: own) - own) } ?? []
        if let opinion = decision.split?.opinion { doubts.append(abs(opinion.level - own) + opinion.width(for: price)) }
        if let rate = decision.price?.conversion?.rate, belief.peg.onlyWord != nil {
            doubts.append(abs(rate.logarithm))
        }
        // A lone market is where another currency implies it to be.
        if known.isEmpty, doubts.isEmpty, let expected = round.expected, expected.hasVoice(on: price) {
            doubts.append(abs(price.log - expected.log - (belief.usual?.log ?? 0)) + expected.width(for: price))
        }
        guard !known.isEmpty || !doubts.isEmpty else {
            return round.hasOthers(than: price.market) ? nil : statement(of: price, quote.value, claims)
        }
        let basis = belief.bases[price.market]?.log ?? 0
        if doubts.isEmpty, price.at - price.since > oldestTrade { return nil }
        // Each is where it usually is, or where it is now, if the price can't have moved that far since.
        var (placed, bases, noise) = (Set<Market>(), [Double](), 0.0)
        for other in known {
            let isOther = others.contains { $0.market == other.market }
            guard isOther || price.at - other.at <= Vote.Bounds.moment else { continue }
            placed.insert(other.market)
            let usual = isOther ? belief.bases[other.market]?.log ?? 0 : 0
            let apart = claims.level(of: other, near: own) - own
            let moved = belief.variance * Double(max(0, price.at - other.at)) / 1000
            bases.append(apart * apart > deviations * deviations * moved ? usual + apart : usual)
            // A single one may have drifted away more slowly than its usual distance is learned.
            if isOther { noise += others.count == 1 ? apart * apart : max(0, apart * apart - moved) }
        }
        if !price.market.isMedian || bases.isEmpty { bases.append(basis) }
        bases.sort()
        // In a crash, honest markets are apart. Those that were outvoted and not seen since may be anywhere; if they may be the middle
        // themselves, nothing is known of it.
        let unknown = belief.falsetickers.count { market in
            market != price.market && !placed.contains(market)
        }
        let total = bases.count + unknown
        let (first, last) = ((total - 1) / 2 - unknown, total / 2)
        if doubts.isEmpty, first < 0 || last >= bases.count { return nil }
        let middles = bases[max(first, 0)...min(last, bases.count - 1)]
        // Of two markets, either may be right.
        let isEven = unknown == 0 && total > 2
        let offset = isEven ? abs((bases.median ?? basis) - basis) : middles.map { abs($0 - basis) }.max() ?? 0
        noise = noise / Double(max(1, others.count)) + least * least + price.halfSpread * price.halfSpread
        let share =
            offset + (noise + moved(since: price, claims)).squareRoot() + exp(min(doubts.max() ?? 0, farthestDoubt))
            - 1
        return Uncertainty(
            plusMinus: amount(share, of: quote.value),
            markets: Int64(max(others.count, decision.split?.others.count ?? 0) + (price.market.isMedian ? 0 : 1)))
    }

    /// What the only source says of its own price if that is a peer, and how far the price may have moved since.
    private static func statement(of price: MarketObservation, _ value: Price, _ claims: Claims) -> Uncertainty? {
        guard var stated = price.origin?.uncertainty else { return nil }
        let share = stated.plusMinus.double / value.double
        stated.plusMinus = amount((share * share + moved(since: price, claims)).squareRoot(), of: value)
        return stated
    }

    /// The square of how far the price may move until it is read: the shown trade is old already, and older then.
    private static func moved(since price: MarketObservation, _ claims: Claims) -> Double {
        let age =
            max(0, price.at - price.since) + (price.way == .stream ? pushed : max(1000, claims.rules.interval * 3 / 4))
        return deviations * deviations * claims.belief.variance * Double(age) / 1000
    }

    /// A share of a price, rounded up to a millionth of it.
    static func amount(_ share: Double, of value: Price) -> Price {
        let bounded = min(share, exp(farthestDoubt))
        return (value * Price(Int64((bounded * 1_000_000).rounded(.up)), scale: 6)).rounded(toPlaces: 2)
    }
}
