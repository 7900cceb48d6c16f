/// Primary mode: the price of the first source that has one, if the other markets don't contradict it.
enum PrimaryRule {
    /// What the other markets say about a price.
    private struct Comparison {
        var standing: ConfirmationRule.Standing
        /// The markets whose place is known and that agree, with their place.
        var agreeing: [(price: MarketObservation, log: Double)] = []
        /// The markets that agree, but whose usual place is not known.
        var vague: [(price: MarketObservation, log: Double)] = []
        var contradicting: [MarketObservation] = []
        var witnesses: [MarketObservation] = []
        var verdicts: [Market: MarketVerdict] = [:]

        init(_ price: MarketObservation, _ book: ObservationBook, _ round: Round) {
            standing = ConfirmationRule.standing(of: price, book)
            let began = ConfirmationRule.began(standing, book)
            witnesses = ConfirmationRule.witnesses(beside: price, book, in: round, since: began)
            for witness in witnesses {
                let market = witness.market
                if !book.staleFeeds.isCurrent(witness) {
                    verdicts[market] = .unchanged
                } else if !ConfirmationRule.isOfNow(witness, beside: price, since: began) {
                    verdicts[market] = .old
                } else if let log = ConfirmationRule.agreement(of: price, with: witness, book) {
                    verdicts[market] = .agrees
                    // The same exchange's price, received in another way, is not a second opinion.
                    guard witness.exchange != price.exchange else { continue }
                    if book.bases[market] != nil {
                        agreeing.append((witness, log))
                    } else {
                        vague.append((witness, log))
                    }
                } else {
                    verdicts[market] = .disagrees
                    contradicting.append(witness)
                }
            }
        }
    }

    /// What to do with a price.
    private enum Outcome {
        /// It is shown. `level` is the place of the market that agrees with it.
        case believed(Confirmation, level: Double?)
        /// Other markets contradict it: it is not shown.
        case contradicted([MarketObservation])
        /// It is far from what a reference rate implies, and no other market confirms it.
        case implausible(String)
        /// No two markets agree. This one is shown instead.
        case scattered(nearest: Market)
        /// As many exchanges contradict it as agree with it. The side that was shown last stays; `nil` if none of its exchanges responds.
        case split(Dispute, shows: MarketObservation?)
        /// It has jumped, and no other market can confirm or contradict it.
        case undecided
    }

    /// The decision on a price, or what must be requested first.
    static func select(
        _ price: MarketObservation, _ book: ObservationBook, _ rules: SelectionRules, _ round: Round
    ) -> Selection {
        let comparison = Comparison(price, book, round)
        if let need = need(for: price, comparison, book, rules, round) { return .needs(need) }
        return .decided(decide(price, comparison, book, rules, round))
    }

    // MARK: - What is needed

    private static func need(
        for price: MarketObservation, _ comparison: Comparison, _ book: ObservationBook, _ rules: SelectionRules,
        _ round: Round
    ) -> Need? {
        let remaining = round.remaining
        guard !remaining.isEmpty else { return nil }
        if round.canMeet(.staleFeed), book.staleFeeds.wantsWitness(on: price) {
            // The tick does not wait long for it: the price is the same as before.
            return Need(
                purpose: .staleFeed, markets: remaining.filter { $0 != book.staleFeeds.lastWitness },
                longest: StaleFeeds.Bounds.longestLook)
        }
        // In the ordinary case no other market is needed.
        if comparison.standing == .settled, comparison.witnesses.isEmpty, !needsDollars(price, comparison, book, rules)
        {
            return nil
        }
        let outcome = outcome(of: price, comparison, book, round)
        if round.canMeet(.witness),
            needsWitness(outcome, comparison, remaining.count, isDisputed: book.dispute(at: price.at) != nil)
                || needsDollars(price, comparison, book, rules)
        {
            return Need(purpose: .witness, markets: remaining)
        }
        let stating = remaining.filter(round.statingPeg.contains)
        if case .contradicted = outcome, round.canMeet(.pegRate),
            PegRule.needsRate(price, book), !stating.isEmpty
        {
            return Need(purpose: .pegRate, markets: stating)
        }
        return nil
    }

    private static func needsWitness(
        _ outcome: Outcome, _ comparison: Comparison, _ remaining: Int, isDisputed: Bool
    ) -> Bool {
        switch outcome {
        // Two markets may be wrong in the same way: after a jump or a contradiction, all are requested.
        case .believed(.confirmed, _):
            comparison.standing == .jumped || !comparison.contradicting.isEmpty || isDisputed
        case .believed: comparison.standing != .settled
        // While the markets that were not requested yet could make it even.
        case .contradicted(let others): others.count <= 1 + comparison.agreeing.count + remaining
        case .implausible, .scattered, .undecided, .split: true
        }
    }

    /// Whether a price in dollars is needed to convert this one: any such price implies the value of a USDT.
    private static func needsDollars(
        _ price: MarketObservation, _ comparison: Comparison, _ book: ObservationBook, _ rules: SelectionRules
    ) -> Bool {
        rules.peg == .convert && price.isInTether
            && book.peg.conversionRate(at: price.at) == nil && comparison.witnesses.allSatisfy(\.isInTether)
    }

    // MARK: - The decision

    private static func outcome(
        of price: MarketObservation, _ comparison: Comparison, _ book: ObservationBook, _ round: Round
    ) -> Outcome {
        let standing = comparison.standing
        let calm = Outcome.believed(JumpRule.isUnconfirmed(book, at: price.at) ? .unconfirmed : .single, level: nil)
        let agreeing = comparison.agreeing.map(\.price)
        switch DisputeRule.judge(
            price, comparison.witnesses, agreeing: agreeing, contradicting: comparison.contradicting, book)
        {
        case .undisputed: break
        case .outvoted(let others): return .contradicted(others)
        case .split(let dispute, let shown): return .split(dispute, shows: shown)
        }
        if let agreeing = comparison.agreeing.first { return .believed(.confirmed, level: agreeing.log) }
        // A market whose usual place is not known counts only if no other contradicts.
        if let vague = comparison.vague.first, comparison.contradicting.isEmpty {
            return .believed(.confirmed, level: vague.log)
        }
        let isUnknown = standing == .first || standing == .jumped
        if isUnknown, let reason = PlausibilityRule.refusal(of: price, book, round) { return .implausible(reason) }
        let contradicting = ContradictionRule.counted(comparison.contradicting, book).filter {
            !isUnknown || PlausibilityRule.refusal(of: $0, book, round) == nil
        }
        let heard = [price] + contradicting
        // A third market that was shown a moment ago counts when deciding whether two agree.
        let shown = book.reference.flatMap { book.newest[$0.market] }.flatMap { shown in
            let isThird = !heard.map(\.exchange).contains(shown.exchange)
            return standing != .first && isThird && price.at - shown.at <= ConfirmationRule.sameMoment ? shown : nil
        }
        switch contradicting.count {
        case 0:
            switch standing {
            case .settled, .moved: return calm
            // A price that was contradicted a moment ago is not believed just because the others don't respond now.
            case .first where !JumpRule.wasContradicted(book, at: price.at): return .believed(.unconfirmed, level: nil)
            case .jumped where ParallelRule.explains(price, book, round):
                return .believed(.single, level: nil)
            case .first, .jumped: return .undecided
            }
        case 1:
            // One against one: after a gap the one nearer to the last price is shown, otherwise the one that has not moved is right.
            if standing == .first, let reference = book.reference {
                return .scattered(nearest: ScatterRule.nearest(to: reference.log, of: heard, book))
            }
            if let shown, !ContradictionRule.hasPair(heard + [shown], book) {
                return .scattered(nearest: ScatterRule.nearestToMedian(heard, book))
            }
            if standing != .first, ConfirmationRule.isAtLevel(price, book) { return calm }
            if ConfirmationRule.standing(of: contradicting[0], book) == .jumped {
                return standing == .moved ? calm : .undecided
            }
            return .contradicted(contradicting)
        default:
            let others = contradicting + [shown].compactMap(\.self)
            if !ContradictionRule.hasPair(others, book) {
                return .scattered(nearest: ScatterRule.nearestToMedian(heard, book))
            }
            return .contradicted(contradicting)
        }
    }

    static func decide(
        _ price: MarketObservation, _ book: ObservationBook, _ rules: SelectionRules, _ round: Round
    ) -> Decision {
        decide(price, Comparison(price, book, round), book, rules, round)
    }

    private static func decide(
        _ price: MarketObservation, _ comparison: Comparison, _ book: ObservationBook, _ rules: SelectionRules,
        _ round: Round
    ) -> Decision {
        let outcome = outcome(of: price, comparison, book, round)
        var decision: Decision
        switch outcome {
        case .believed(let confirmation, let level):
            decision = shown(price, confirmation, level: level, book, rules, round)
        case .implausible(let reason):
            let failure = SourceFailure(source: price.market.venue, error: .implausible(reason))
            decision = Decision(withholding: failure.error, of: failure.source, observed: price.arrival)
            decision.contradictsRate = true
            if let next = next(after: price, book, rules, round) { decision = next }
            decision.rejected.append(failure)
            decision.verdicts[price.market] = .disagrees
        case .scattered(let nearest):
            if let other = ([price] + comparison.witnesses).first(where: { $0.market == nearest }) {
                decision = shown(other, .unconfirmed, level: nil, book, rules, round)
            } else {
                let reason = "no two markets agree, and \(nearest.venue) is nearer to the median"
                decision = Decision(
                    withholding: .implausible(reason), of: price.market.venue, observed: price.arrival)
            }
        case .split(let dispute, let shown):
            decision =
                shown.map { self.shown($0, .unconfirmed, level: nil, book, rules, round) }
                ?? Decision(
                    withholding: .implausible("\(dispute.text), and only these respond"), of: price.market.venue,
                    observed: price.arrival)
            decision.dispute = dispute
        case .contradicted(let others):
            decision = rejected(price, by: others, book, rules, round)
        case .undecided:
            decision = undecided(price, book, rules, round)
        }
        decision.verdicts.merge(comparison.verdicts) { known, _ in known }
        if decision.verdicts[price.market] == nil {
            decision.verdicts[price.market] = decision.quote?.supplier == price.market.venue ? .used : .disagrees
        }
        return decision
    }

    /// The decision to reject a price. The next source's price of this round is shown instead, if it stands; or that of a market that
    /// was not requested, because its current price arrived in another way.
    private static func rejected(
        _ price: MarketObservation, by witnesses: [MarketObservation], _ book: ObservationBook,
        _ rules: SelectionRules, _ round: Round
    ) -> Decision {
        let reason = ContradictionRule.describe(price, by: witnesses, book)
        let failure = SourceFailure(source: price.market.venue, error: .implausible(reason))
        var decision = Decision(withholding: failure.error, of: failure.source, observed: price.arrival)
        if let next = next(after: price, book, rules, round, among: witnesses) { decision = next }
        decision.rejected.append(failure)
        decision.lessons.insert(.contradicted(price.market, by: witnesses.count, at: price.at), at: 0)
        decision.verdicts[price.market] = .disagrees
        return decision
    }

    /// The decision on the next source's price of this round, or on a current one of `others`, if it stands without `price`.
    private static func next(
        after price: MarketObservation, _ book: ObservationBook, _ rules: SelectionRules, _ round: Round,
        among others: [MarketObservation] = []
    ) -> Decision? {
        var rest = round
        rest.answered.removeAll { $0 == price.market }
        // The rejected price no longer counts against the others.
        var without = book
        without.failed(price.market)
        let current = round.markets.lazy.compactMap { market in
            others.first { $0.market == market && price.at - $0.at <= round.freshFor }
        }
        guard let next = without.first(of: rest.answered) ?? current.first else { return nil }
        let decision = decide(next, without, rules, rest)
        // One against one is not enough if nothing is known yet.
        guard let accepted = decision.accepted, decision.quote != nil else { return nil }
        let stands = ConfirmationRule.standing(of: accepted, without) == .settled
        return decision.confirmation == .confirmed || stands ? decision : nil
    }

    private static func undecided(
        _ price: MarketObservation, _ book: ObservationBook, _ rules: SelectionRules, _ round: Round
    ) -> Decision {
        var reason = "\(JumpRule.describe(price, book)), and no second source could confirm it"
        var lessons: [Decision.Lesson] = []
        if round.isTick {
            let pending = JumpRule.pending(price, book, round)
            let enough = JumpRule.ticksToBelieve(book, round)
            if let pending, pending.ticks >= enough {
                return shown(price, .unconfirmed, level: nil, book, rules, round)
            }
            reason +=
                pending.map { "; it will be shown after \(enough) ticks in agreement (\($0.ticks) of \(enough))" }
                ?? "; another market contradicted it shortly before"
            lessons = [.pending(pending)]
            // Its price was not believed a moment ago. The next source's price is, while it is current.
            if pending == nil, let next = next(after: price, book, rules, round) { return next }
        }
        var decision = Decision(withholding: .implausible(reason), of: price.market.venue, observed: price.arrival)
        decision.lessons = lessons
        return decision
    }

    /// The decision to show a price, after applying ``PegRule``.
    static func shown(
        _ price: MarketObservation, _ confirmation: Confirmation, level: Double?, _ book: ObservationBook,
        _ rules: SelectionRules, _ round: Round
    ) -> Decision {
        let source = price.market.venue
        var decision = Decision(observed: price.arrival, confirmation: confirmation)
        decision.pace = price.pace
        decision.lessons = [.accepted(price, confirmation, level: level)]
        decision.quote = PriceQuote(
            value: price.value, currency: book.currency.rawValue, timestamp: price.arrival.wall,
            source: price.origin?.source ?? source, market: price.pair, via: price.origin.map { _ in source })
        decision.verdicts[price.market] = .used
        guard price.isInTether, rules.peg != .warn else { return decision }
        // The witnesses of this round may imply the rate.
        var learned = book
        _ = learned.adopt(decision, in: round)
        switch rules.peg {
        case .warn: return decision
        case .refuse:
            guard PegRule.skipsTether(learned, rules, at: price.at), let rate = learned.peg.rate else {
                return decision
            }
            decision.quote = nil
            decision.withheld = SourceFailure(source: source, error: .implausible(rate.text))
        case .convert:
            if let (value, conversion) = PegRule.converted(price, learned) {
                decision.quote = decision.quote?.with(value: value)
                decision.conversion = conversion
                return decision
            }
            // A price in USDT is not comparable with dollars while it can't be converted, so it is not a witness either.
            learned.failed(price.market)
            var dollars = round
            dollars.answered = round.answered.filter { learned.newest[$0]?.isInTether == false }
            if let first = dollars.answered.first.flatMap({ learned.newest[$0] }) {
                var other = decide(first, learned, rules, dollars)
                other.lessons = decision.lessons + other.lessons
                return other
            }
            decision.quote = nil
            let reason = "what USDT is worth is not known, and its price can't be converted"
            decision.withheld = SourceFailure(source: source, error: .implausible(reason))
        }
        decision.verdicts[price.market] = .skipped
        return decision
    }
}
