/// Chooses the price: a pure function of the book, the rules and the round.
package enum PriceSelector {
    /// - Parameters:
    ///   - book: The observations, and what was learned from them.
    ///   - rules: The rules.
    ///   - round: What was requested so far.
    /// - Returns: The decision, or the markets that must be requested first.
    package static func select(_ book: ObservationBook, _ rules: SelectionRules, _ round: Round) -> Selection {
        // A market may have lost its price since it answered.
        guard let first = book.first(of: round.answered) else {
            return .needs(Need(purpose: .price, markets: round.remaining, wantsAll: rules.mode == .median))
        }
        switch rules.mode {
        case .median: return .decided(described(MedianRule.decide(first, book, rules, round), book, rules, round))
        case .primary:
            let selection = PrimaryRule.select(first, book, rules, round)
            guard case .decided(let decision) = selection else { return selection }
            return .decided(described(decision, book, rules, round))
        }
    }

    /// The decision, with verdicts on the markets that were not compared, and with its uncertainty.
    private static func described(
        _ decision: Decision, _ book: ObservationBook, _ rules: SelectionRules, _ round: Round
    ) -> Decision {
        var decision = decision
        decision.verdicts.reserveCapacity(round.markets.count)
        for market in round.markets where decision.verdicts[market] == nil {
            if round.hasFailed(market) {
                decision.verdicts[market] = .failed
            } else if round.skipped.contains(where: { $0.source == market.venue }) {
                decision.verdicts[market] = .skipped
            } else {
                decision.verdicts[market] = .notNeeded
            }
        }
        decision.uncertainty = UncertaintyRule.estimate(decision, book)
        return decision
    }
}
