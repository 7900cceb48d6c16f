/// Chooses the price: a pure function of what is seen, what is believed, the rules and the round.
package enum PriceSelector {
    /// - Parameters:
    ///   - book: What is seen.
    ///   - belief: What is believed before the decision.
    ///   - round: What was requested so far.
    /// - Returns: The decision and what is believed after it, or the markets that must be requested first.
    package static func select(
        _ book: ObservationBook, _ belief: Belief, _ rules: SelectionRules, _ round: Round
    ) -> Selection {
        // A market may have lost its price since it responded.
        guard let newest = book.first(of: round.answered) else {
            // In a split and during a jump, all are requested at once: one after the other, the slow ones would have no time left.
            let isOpen = round.isUrgent || belief.pending != nil || belief.split?.standing(at: round.began) != nil
            let quorum = rules.mode == .median ? rules.quorum : isOpen ? 1 : nil
            return .needs(Need(purpose: .price, markets: round.remaining, quorum: quorum))
        }
        let claims = Claims(book, belief.taking(book.stated), rules)
        let first =
            claims.disowned.isEmpty
            ? newest : book.first(of: round.answered.filter { !claims.isDisowned($0) }) ?? newest
        var (decision, next): (Decision, Belief)
        switch rules.mode {
        case .median: (decision, next) = MedianRule.decide(first, claims, round)
        case .primary:
            let ballot = Ballot(first, claims, round)
            if let need = ballot.need { return .needs(need) }
            (decision, next) = ballot.decide()
        }
        for price in claims.disowned {
            let market = price.market
            if decision.verdicts[market] != .used { decision.verdicts[market] = .disagrees }
            guard !belief.disowned.contains(market) else { continue }
            let reason = "\(claims.describe(price)), and \(price.exchange) itself contradicts it"
            decision.outvoted.append(SourceFailure(source: market.venue, error: .implausible(reason)))
        }
        next.disown(claims.disowned.map(\.market))
        for market in round.markets where decision.verdicts[market] == nil {
            decision.verdicts[market] = verdict(on: market, in: round)
        }
        decision.standing.uncertainty = UncertaintyRule.estimate(decision, claims, round)
        // A decision to show nothing leaves a split as it was, unless it is another one.
        next.end(with: decision.quote == nil ? decision.split ?? next.split : decision.split)
        if decision.quote != nil { compareOthers(decision, claims, round, &next) }
        return .decided(decision, next)
    }

    private static func verdict(on market: Market, in round: Round) -> MarketVerdict {
        if round.hasFailed(market) { return .failed }
        if round.skipped.contains(where: { $0.source == market.venue }) { return .skipped }
        return round.answered.contains(market) ? .old : .notNeeded
    }

    /// Compares the other prices of the round with the shown one.
    private static func compareOthers(
        _ decision: Decision, _ claims: Claims, _ round: Round, _ belief: inout Belief
    ) {
        // A median also includes the earlier prices that support it.
        let isMedian = belief.reference?.market.isMedian == true
        let from = isMedian ? decision.observed.boottime - Vote.Bounds.moment : round.began
        for market in round.markets where !decision.rejects(market) {
            guard let price = claims.book.newest(market), price.at >= from || round.answered.contains(market) else {
                continue
            }
            belief.compare(price, claims.book, claims.rules)
        }
    }
}
