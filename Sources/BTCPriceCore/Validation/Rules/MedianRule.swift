/// Median mode: the middle of the prices that win a vote with a wider interval, if there are enough of them.
enum MedianRule {
    /// - Returns: The decision, and what is believed after it.
    static func decide(_ first: MarketObservation, _ claims: Claims, _ round: Round) -> (Decision, Belief) {
        let requested = round.answered.compactMap { claims.book.newest($0) }
        let earlier = claims.book.newest.filter { other in
            !round.answered.contains(other.market) && !claims.isDisowned(other.market)
                && PaceRule.supports(other, at: first.at, round.freshFor)
        }
        let all =
            (requested.filter { !claims.isDisowned($0.market) } + earlier.sorted { $0.market.venue < $1.market.venue })
            .oneOf(\.voter)
        var belief = claims.belief
        belief.imply(requested, beside: claims.book.stated)
        let claims = Claims(claims.book, belief, claims.rules)
        // A USDT price is comparable with dollar prices only after conversion to dollars.
        let isInDollars = claims.rules.peg == .convert || all.contains { !$0.isInTether }
        // A market that stands still supports others and counts against none, unless all do.
        let isMoving = all.contains { !claims.isStill($0, at: first.at) }
        var values: [Market: Price] = [:]
        let electorate = all.compactMap { price -> Claim? in
            let value =
                price.isInTether && isInDollars
                ? PegRule.converted(price, belief.peg, in: claims.book.currency)?.0 : price.value
            guard let value else { return nil }
            values[price.market] = value
            return Claim(
                price: price, middle: value.logarithm, halfWidth: Vote.Bounds.medianWidth,
                voter: price.voter, opposes: !isMoving || !claims.isStill(price, at: first.at))
        }
        let vote = Vote([], electorate, last: claims.last(at: first.at, isMedian: true))
        let used = round.markets.filter { market in vote.members.contains { $0.price.market == market } }
        let quorum = claims.rules.quorum
        var decision: Decision
        if vote.isDecided, vote.votes >= quorum, used.count > 1,
            let median = middle(of: used.compactMap { values[$0] }),
            !isSplit(vote.members, claims)
        {
            let isConfirmed = vote.members.filter { !$0.price.isUnconfirmed }.voters >= quorum
            (decision, belief) = show(
                median, isInDollars ? .median(of: claims.book.currency) : Market(Market.medianName, first.pair),
                isConfirmed ? .confirmed : .unconfirmed, vote, requested, claims, round)
        } else if electorate.voters >= quorum {
            // Fewer agree than have to.
            (decision, belief) = Ballot(first, claims, round, isDoubtful: quorum > 1).decide()
        } else {
            let said = all.map { "\($0.market.venue) (\($0.value) \($0.pair))" }.listed
            decision = Decision(
                withholding: .implausible(
                    "\(quorum) have to agree, and only \(said) \(all.count > 1 ? "have" : "has") a price"),
                of: Market.medianName, observed: first.arrival)
        }
        if decision.quote != nil { decision.standing.consensus = consensus(used, values) }
        for market in values.keys where decision.verdicts[market] == nil {
            decision.verdicts[market] = used.contains(market) ? .used : .outlier
        }
        return (decision, belief)
    }

    /// Whether the members are two halves of which none agrees with one of the other: their mean is the price of neither.
    private static func isSplit(_ members: [Claim], _ claims: Claims) -> Bool {
        guard members.count.isMultiple(of: 2), let now = members.map(\.price.at).max() else { return false }
        let sorted = members.sorted { $0.middle < $1.middle }
            .compactMap { claims.of($0.price, at: now).nearest(to: $0.middle) }
        let (lower, upper) = (sorted.prefix(sorted.count / 2), sorted.suffix(sorted.count / 2))
        return !lower.contains { one in upper.contains { $0.agrees(with: one) } }
    }

    private static func consensus(_ used: [Market], _ values: [Market: Price]) -> Consensus {
        let prices = used.compactMap { values[$0] }.sorted()
        let outliers = values.keys.filter { !used.contains($0) }.map(\.venue).sorted()
        return Consensus(
            sources: used.map(\.venue), outliers: outliers, spread: (prices.last ?? 0) - (prices.first ?? 0))
    }

    private static func middle(of values: [Price]) -> Price? {
        guard !values.isEmpty else { return nil }
        let sorted = values.sorted()
        let half = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]).divided(by: 2, places: 8)
    }

    private static func show(
        _ median: Price, _ market: Market, _ confirmation: Confirmation, _ vote: Vote,
        _ requested: [MarketObservation], _ claims: Claims, _ round: Round
    ) -> (Decision, Belief) {
        let counted = requested.filter { price in vote.members.contains { $0.price == price } }
        // Without a requested one, those of before.
        let dated = counted.isEmpty ? vote.members.map(\.price) : counted
        let newest = dated.map(\.arrival).max { $0.boottime < $1.boottime } ?? requested[0].arrival
        let ages = vote.members.map { Double(max(0, $0.price.at - $0.price.since)) }
        let price = MarketObservation(
            market, median, arrival: newest, age: Int64(ages.median ?? 0), pace: dated.map(\.pace).min() ?? .zero)
        let quote = PriceQuote(
            value: median, currency: claims.book.currency.rawValue, timestamp: price.arrival.wall,
            source: Market.medianName, market: market.pair,
            via: vote.members.first { $0.price.origin != nil }?.price.market.venue)
        let shown = ShownPrice(quote, observedBoottime: price.at, confirmation: confirmation)
        var belief = claims.belief
        let near = belief.agreed?.log ?? belief.reference?.log
        belief.accept(
            price, at: claims.level(of: price, near: near), confirmation, agreed: nil, isCompared: true, in: round)
        return (Decision(showing: shown, price), belief)
    }
}
