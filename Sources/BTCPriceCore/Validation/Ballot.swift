/// The judgement of the preferred price of a round: the vote, what is needed before it counts, and what is shown. A pure value.
struct Ballot {
    let price: MarketObservation
    let book: ObservationBook
    let rules: SelectionRules
    let round: Round
    /// Whether there is no recent price to compare it with: it is the first one, or the first one after a gap.
    let isFirst: Bool
    /// Whether it is farther from the last price than it may move by itself.
    let isJump: Bool
    let vote: Vote
    /// The value that decides if the vote does not: what the shown side of a split said last, or what was agreed last.
    private let last: Double?

    init(_ price: MarketObservation, _ book: ObservationBook, _ rules: SelectionRules, _ round: Round) {
        (self.price, self.book, self.rules, self.round) = (price, book, rules, round)
        let reference = book.reference.flatMap { reference in
            book.isRestored || price.at - reference.at > book.gap ? nil : reference
        }
        isFirst = reference == nil
        isJump =
            reference.map { reference in
                let place = book.place(of: price, near: book.agreed ?? reference.log)
                return abs(place - reference.log) > Self.jump(after: price.at - reference.at)
            } ?? false
        let split = book.split?.standing(at: price.at)?.shown.map { book.place(of: $0, near: book.reference?.log) }
        last = split?.median ?? book.agreed ?? book.reference?.log
        vote = Vote(
            book.claims(of: price, isPreferred: true, at: price.at),
            book.claims(beside: price, answered: round.answered, isFirst: isFirst, isJump: isJump), last: last)
    }

    /// How far a price may move in some milliseconds without another exchange: 0.9 % in a second, 2.9 % in a minute.
    static func jump(after elapsed: Int64) -> Double {
        Vote.Bounds.jump.atOnce + Vote.Bounds.jump.inASecond * (Double(max(0, elapsed)) / 1000).squareRoot()
    }

    /// Whether the price is among those that win.
    private var isMember: Bool { vote.members.contains { $0.price.exchange == price.exchange } }

    /// Whether another exchange than the one whose price is shown agrees with it.
    private func isConfirmed(_ shown: MarketObservation) -> Bool {
        vote.votes > 1
            && vote.members.contains { $0.price.exchange != shown.exchange && !$0.price.isUnconfirmed }
    }

    /// What must be requested before it is decided; `nil` if nothing.
    var need: Need? {
        let remaining = round.remaining
        guard !remaining.isEmpty else { return nil }
        if round.canMeet(.witness), needsWitness(remaining) || needsDollars {
            return Need(purpose: .witness, markets: remaining)
        }
        let stating = remaining.filter(round.statingPeg.contains)
        // A USDT that has left its peg looks like a market that is wrong, until a USDT/USD market states which it is.
        if !vote.opponents.isEmpty, !isMember || !vote.isDecided, round.canMeet(.pegRate), !stating.isEmpty,
            PegRule.needsRate(price, book)
        {
            return Need(purpose: .pegRate, markets: stating)
        }
        return nil
    }

    private func needsWitness(_ remaining: [Market]) -> Bool {
        if shownMember == nil { return true }
        if !vote.opponents.isEmpty || isJump {
            // The exchanges that were not requested yet may decide otherwise.
            return vote.votes <= vote.rivals + remaining.count
        }
        if vote.votes > 1 { return false }
        return isFirst || book.falsetickers.contains(price.market) || !book.contradicting(price).isEmpty || !isSettled
    }

    /// Whether the price is where others agreed.
    private var isSettled: Bool {
        book.isSupported(price)
            || book.agreed.map { abs(book.place(of: price, near: $0) - $0) <= 2 * Vote.Bounds.width } ?? false
    }

    /// Whether a price in dollars is needed to convert this one: any such price implies the value of a USDT.
    private var needsDollars: Bool {
        rules.peg == .convert && price.isInTether && book.peg.conversionRate(at: price.at) == nil
            && vote.members.allSatisfy(\.price.isInTether)
    }

    func decide() -> Decision {
        if vote.opponents.isEmpty, !isConfirmed(price) { return alone() }
        return vote.isDecided ? decided() : undecided()
    }

    /// The current price to show among those that have won: the preferred one, otherwise the first in the configured order.
    private var shownMember: MarketObservation? {
        if isMember, isShowable(price) { return price }
        return firstShowable(vote.members)
    }

    private func firstShowable(_ claims: [Claim]) -> MarketObservation? {
        round.markets.lazy.compactMap { market in
            claims.first { $0.price.market == market && isShowable($0.price) }?.price
        }.first
    }

    /// Whether a price is current, and can be converted if that is wanted.
    private func isShowable(_ price: MarketObservation) -> Bool {
        book.newest[price.market] == price && isConvertible(price)
            && (round.answered.contains(price.market) || self.price.at - price.at <= round.freshFor)
    }

    private func isConvertible(_ price: MarketObservation) -> Bool {
        rules.peg != .convert || !price.isInTether || PegRule.converted(price, implied) != nil
    }

    /// The book with the value of USDT that the members imply.
    private var implied: ObservationBook {
        guard rules.peg == .convert else { return book }
        var book = book
        book.impliesPeg(vote.members.filter(\.opposes).map(\.price))
        return book
    }

    private func decided() -> Decision {
        guard let winner = shownMember else {
            let reason =
                isMember
                ? "what USDT is worth is not known, and its price can't be converted"
                : "\(describe(price, by: inOrder(vote.members))), and none of them responds"
            return withheld(reason)
        }
        let others = vote.members.filter { $0.price.exchange != winner.exchange }
        var decision = shown(
            winner, isConfirmed(winner) ? .confirmed : .unconfirmed, agreed: others.map(\.middle).median)
        for claim in vote.opponents {
            let market = claim.price.market
            guard decision.verdicts.updateValue(.disagrees, forKey: market) == nil else { continue }
            let isFar = !vote.members.contains { $0.agrees(with: claim) }
            let failure = SourceFailure(
                source: market.venue, error: .implausible(describe(claim.price, by: inOrder(vote.members))))
            if market == price.market {
                if isFar { decision.rejected.append(failure) }
            } else if !isFar {
                // In a crash, honest markets are apart.
                continue
            } else if !book.falsetickers.contains(market) {
                decision.outvoted.append(failure)
            }
            decision.lessons.append(.outvoted(market, at: price.at))
        }
        return decision
    }

    /// No majority: the price nearest to the middle of all is shown, and its side of the split stays.
    private func undecided() -> Decision {
        var claims: [Claim] = []
        for claim in vote.claims where claim.opposes || book.falsetickers.contains(claim.price.market) {
            // Of the possible places of a price in USDT, the one nearest to the last value.
            guard let index = claims.firstIndex(where: { $0.price == claim.price }) else {
                claims.append(claim)
                continue
            }
            if let last, abs(claim.middle - last) < abs(claims[index].middle - last) { claims[index] = claim }
        }
        let possible = claims.filter { refusal(of: $0.price) == nil && isConvertible($0.price) }
        let places = (possible.isEmpty ? claims : possible).map(\.middle)
        let middle = (places + (places.count.isMultiple(of: 2) ? [last].compactMap(\.self) : [])).median ?? 0
        // Not one that stands still or was outvoted before, if there is another.
        let candidates = possible.filter { $0.opposes && !book.isStill($0.price, at: price.at) }
        guard var nearest = [candidates, possible, claims].first(where: { !$0.isEmpty })?.nearest(to: middle) else {
            return withheld("there is no price")
        }
        var side = claims.filter { $0.agrees(with: nearest) }
        // A minority that does not respond gives way.
        if firstShowable(side) == nil, 2 * side.voters < claims.voters,
            let other = possible.filter({ isShowable($0.price) }).nearest(to: middle)
        {
            nearest = other
            side = claims.filter { $0.agrees(with: other) }
        }
        let others = claims.filter { !$0.agrees(with: nearest) }
        let split = Split(shown: inOrder(side), others: inOrder(others))
        let before = side.first { $0.price.market == book.reference?.market && isShowable($0.price) }?.price
        var decision: Decision
        if let winner = before ?? firstShowable(side) {
            decision = shown(winner, others.isEmpty ? .confirmed : .unconfirmed, among: side, agreed: nil)
        } else {
            decision = withheld("\(split.text(book.currency)), and only the former respond")
        }
        decision.split = others.isEmpty ? nil : split
        for claim in others { decision.verdicts[claim.price.market] = .disagrees }
        return decision
    }

    private func withheld(_ reason: String) -> Decision {
        var decision = Decision(
            withholding: .implausible(reason), of: price.market.venue, observed: price.arrival)
        decision.verdicts[price.market] = .disagrees
        return decision
    }

    /// The decision if no other exchange says anything about this moment.
    private func alone() -> Decision {
        guard isShowable(price) else { return decided() }
        if let refusal = refusal(of: price) {
            var decision = withheld(refusal)
            decision.contradictsRate = true
            decision.rejected = [SourceFailure(source: price.market.venue, error: .implausible(refusal))]
            return decision
        }
        if isFirst { return wasContradicted ? pending() : shown(price, .unconfirmed, agreed: nil) }
        if isJump { return isExplained ? shown(price, .single, agreed: nil) : pending() }
        let rate = round.expected.flatMap { $0.opposes(price, offset: book.offset?.log) ? $0 : nil }
        let others = book.contradicting(price)
        if rate != nil || !others.isEmpty {
            var decision = shown(price, .unconfirmed, agreed: nil)
            decision.split = Split(shown: [price], others: others, rate: rate, isOld: true)
            return decision
        }
        if book.isSupported(price) { return shown(price, .confirmed, agreed: nil) }
        let isDoubted =
            price.isUnconfirmed || book.falsetickers.contains(price.market)
            || book.unconfirmedSince.map { price.at - $0 < Vote.Bounds.memory } ?? false
        return shown(price, isDoubted ? .unconfirmed : .single, agreed: nil)
    }

    /// Why a first price or a jump is far from what another currency implies; `nil` if it is not.
    private func refusal(of price: MarketObservation) -> String? {
        isFirst || isJump ? round.expected?.refusal(of: price) : nil
    }

    private var wasContradicted: Bool {
        book.contradicted.map { $0.market == price.market && price.at - $0.at < Vote.Bounds.memory } ?? false
    }

    /// Whether the price in another currency moved as well: their quotient is an exchange rate, which moves slowly.
    private var isExplained: Bool {
        guard let other = round.other, let known = book.rate, known.currency == other.currency,
            abs(price.at - other.at) <= Vote.Bounds.moment
        else { return false }
        return abs(price.log - other.log - known.log) <= Self.jump(after: price.at - known.at)
    }

    /// A jump is shown after some ticks that agree.
    private func pending() -> Decision {
        var reason = "\(book.describe(price)), and no second source could confirm it"
        guard round.isTick else { return withheld(reason) }
        let jump = wasContradicted ? nil : pendingJump
        if let jump, jump.ticks >= Vote.Bounds.ticks { return shown(price, .unconfirmed, agreed: nil) }
        reason +=
            jump.map {
                "; it will be shown after \(Vote.Bounds.ticks) ticks in agreement (\($0.ticks) of \(Vote.Bounds.ticks))"
            } ?? "; another market contradicted it shortly before"
        var decision = withheld(reason)
        decision.lessons = [.pending(jump)]
        return decision
    }

    /// One more tick of the pending jump, or the first tick of a new one.
    private var pendingJump: PendingJump {
        let before = book.pending.flatMap { same -> PendingJump? in
            guard same.market == price.market else { return nil }
            // A sliding exchange rate goes on in one direction for minutes; a bad print comes back.
            let goesOn =
                round.other != nil
                && book.reference.map { (price.log - same.log) * (same.log - $0.readLog) > 0 } ?? false
            return goesOn || abs(price.log - same.log) <= Self.jump(after: price.at - same.at) ? same : nil
        }
        // The same observation says nothing new.
        let ticks = before.map { $0.at == price.at ? $0.ticks : $0.ticks + 1 } ?? 1
        return PendingJump(market: price.market, log: price.log, at: price.at, ticks: ticks)
    }

    /// The decision to show a price, converted if that is wanted.
    /// - Parameter side: The claims that agree with it; `nil` for those that have won.
    private func shown(
        _ price: MarketObservation, _ confirmation: Confirmation, among side: [Claim]? = nil, agreed: Double?
    ) -> Decision {
        let side = side ?? vote.members
        let source = price.market.venue
        var decision = Decision(observed: price.arrival, confirmation: confirmation)
        decision.pace = price.pace
        // Old prices imply nothing new about USDT.
        let new = side.filter(\.opposes).map(\.price)
        decision.lessons = [.peg(new), .accepted(price, confirmation, agreed: agreed)]
        decision.quote = PriceQuote(
            value: price.value, currency: book.currency.rawValue, timestamp: price.arrival.wall,
            source: price.origin?.source ?? source, market: price.pair, via: price.origin.map { _ in source })
        for claim in side { decision.verdicts[claim.price.market] = .agrees }
        decision.verdicts[price.market] = .used
        if rules.peg == .convert, price.isInTether, let (value, conversion) = PegRule.converted(price, implied) {
            decision.quote?.value = value
            decision.conversion = conversion
        }
        return decision
    }

    /// `<the move>, which coinbase (68850) contradicts`
    private func describe(_ price: MarketObservation, by others: [MarketObservation]) -> String {
        let names = others.map { "\($0.market.venue) (\($0.value))" }.listed
        let still = book.isStill(price, at: self.price.at) ? "it stands still at \(price.value): " : ""
        return "\(still)\(book.describe(price)), which \(names) contradict\(others.count > 1 ? "" : "s")"
    }

    /// The prices of claims, each once and in the configured order.
    private func inOrder(_ claims: [Claim]) -> [MarketObservation] {
        round.markets.compactMap { market in claims.first { $0.price.market == market }?.price }
    }
}
