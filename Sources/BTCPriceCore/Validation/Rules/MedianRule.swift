/// Median mode: the median of the prices that win the vote, if there are enough of them.
enum MedianRule {
    static func decide(
        _ first: MarketObservation, _ book: ObservationBook, _ rules: SelectionRules, _ round: Round
    ) -> Decision {
        let requested = round.answered.compactMap { book.newest[$0] }
        let earlier = book.newest.values.filter { other in
            !round.answered.contains(other.market) && PaceRule.supports(other, at: first.at, round.freshFor)
        }
        let all = (requested + earlier.sorted { $0.market.venue < $1.market.venue }).oneOf(\.voter)
        var book = book
        book.impliesPeg(requested)
        // A USDT price is comparable with dollar prices only after conversion to dollars.
        let hasDollars = all.contains { !$0.isInTether }
        var values: [Market: Price] = [:]
        let claims = all.compactMap { price -> Claim? in
            let value = price.isInTether && hasDollars ? PegRule.converted(price, book)?.0 : price.value
            guard let value else { return nil }
            values[price.market] = value
            let width = max(Vote.Bounds.medianWidth, price.halfSpread)
            return Claim(
                price: price, middle: value.logarithm, halfWidth: width, voter: price.voter,
                opposes: !book.isStill(price, at: first.at))
        }
        // A market that stands still does not count, unless all do.
        let moving = claims.filter(\.opposes)
        let electorate = moving.isEmpty ? claims : moving
        let vote = Vote(electorate, [], last: book.agreed ?? book.reference?.log)
        let used = round.markets.filter { market in vote.members.contains { $0.price.market == market } }
        let current = used.filter(round.answered.contains).compactMap { values[$0] }
        var decision: Decision
        if vote.isDecided, vote.votes >= rules.quorum, used.count > 1, let median = middle(of: current),
            !isSplit(vote.members, book)
        {
            decision = shown(median, vote, requested, first, book, rules)
            if vote.members.filter({ !$0.price.isUnconfirmed }).voters < rules.quorum { decision.doubt() }
            decision.consensus = consensus(used, values)
        } else if electorate.voters >= rules.quorum {
            let ballot = Ballot(first, book, rules, round)
            decision = ballot.decide()
            // Fewer agree than have to.
            if rules.quorum > 1, decision.quote != nil { decision.doubt() }
            if decision.quote != nil { decision.consensus = consensus(used, values) }
        } else {
            let said = all.map { "\($0.market.venue) (\($0.value) \($0.pair))" }.joined(separator: ", ")
            decision = Decision(
                withholding: .implausible("\(electorate.voters) of the \(rules.quorum) that have to agree: \(said)"),
                of: Market.medianName, observed: first.arrival)
        }
        for market in values.keys where decision.verdicts[market] == nil {
            decision.verdicts[market] = used.contains(market) ? .used : .outlier
        }
        decision.lessons.insert(.peg(requested), at: 0)
        return decision
    }

    /// Whether the members are two halves of which none agrees with one of the other: their mean is the price of neither.
    private static func isSplit(_ members: [Claim], _ book: ObservationBook) -> Bool {
        guard members.count.isMultiple(of: 2), let now = members.map(\.price.at).max() else { return false }
        let sorted = members.sorted { $0.middle < $1.middle }
            .compactMap { book.claims(of: $0.price, at: now).nearest(to: $0.middle) }
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

    private static func shown(
        _ median: Price, _ vote: Vote, _ requested: [MarketObservation], _ first: MarketObservation,
        _ book: ObservationBook, _ rules: SelectionRules
    ) -> Decision {
        let counted = requested.filter { price in vote.members.contains { $0.price == price } }
        let newest = counted.map(\.arrival).max { $0.boottime < $1.boottime } ?? first.arrival
        let isDollar = counted.contains { !$0.isInTether } || rules.peg == .convert
        let market = isDollar ? .median(of: book.currency) : Market(Market.medianName, first.pair)
        var decision = Decision(observed: newest, confirmation: .confirmed)
        decision.pace = counted.map(\.pace).min() ?? .zero
        decision.lessons = [
            .accepted(MarketObservation(market, median, arrival: newest), .confirmed, agreed: nil)
        ]
        decision.quote = PriceQuote(
            value: median, currency: book.currency.rawValue, timestamp: newest.wall, source: Market.medianName,
            market: market.pair, via: vote.members.first { $0.price.origin != nil }?.price.market.venue)
        return decision
    }
}
