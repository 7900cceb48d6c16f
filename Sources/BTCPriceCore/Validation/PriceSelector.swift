/// Chooses the price: a pure function of the book, the rules and the round.
package enum PriceSelector {
    /// - Parameters:
    ///   - book: The observations, and what was learned from them.
    ///   - round: What was requested so far.
    /// - Returns: The decision, or the markets that must be requested first.
    package static func select(_ book: ObservationBook, _ rules: SelectionRules, _ round: Round) -> Selection {
        // A market may have lost its price since it answered.
        guard let first = book.first(of: round.answered) else {
            return .needs(Need(purpose: .price, markets: round.remaining, wantsAll: rules.mode == .median))
        }
        var decision: Decision
        switch rules.mode {
        case .median: decision = MedianRule.decide(first, book, rules, round)
        case .primary:
            let ballot = Ballot(first, book, rules, round)
            if let need = ballot.need { return .needs(need) }
            decision = ballot.decide()
        }
        for market in round.markets where decision.verdicts[market] == nil {
            if round.hasFailed(market) {
                decision.verdicts[market] = .failed
            } else if round.skipped.contains(where: { $0.source == market.venue }) {
                decision.verdicts[market] = .skipped
            } else if round.answered.contains(market) {
                decision.verdicts[market] = .old
            } else {
                decision.verdicts[market] = .notNeeded
            }
        }
        decision.uncertainty = UncertaintyRule.estimate(decision, book)
        return .decided(decision)
    }
}
