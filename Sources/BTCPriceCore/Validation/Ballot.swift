/// The judgement of the preferred price of a round, from the top to the bottom: a pure value.
///
/// 1. The claims: what the newest price of each exchange says of this moment (``Claims``).
/// 2. The vote: the value that most of them share (``Vote``).
/// 3. The need: what must be requested before the vote counts.
/// 4. The price that is shown, and what is believed from then on.
struct Ballot {
    let price: MarketObservation
    let claims: Claims
    let round: Round
    /// Whether there is no recent price to compare it with: it is the first one, or the first one after a gap.
    let isFirst: Bool
    /// Whether it is farther from the last price than it may move by itself.
    let isJump: Bool
    let vote: Vote
    /// The value that decides if the vote does not: what the shown side of a split said last, what was agreed a moment ago, or what was
    /// shown last.
    private let last: Double?
    /// Whether the price is unconfirmed whatever the vote says.
    private let isDoubtful: Bool

    // MARK: - 1 and 2: the claims and the vote

    init(_ price: MarketObservation, _ claims: Claims, _ round: Round, isDoubtful: Bool = false) {
        (self.price, self.claims, self.round, self.isDoubtful) = (price, claims, round, isDoubtful)
        let reference = claims.belief.reference.flatMap { reference in
            claims.belief.isRestored || price.at - reference.at > claims.rules.gap ? nil : reference
        }
        isFirst = reference == nil
        isJump =
            reference.map { reference in
                let level = claims.level(of: price, near: claims.belief.agreed?.log ?? reference.log)
                return abs(level - reference.log) > Self.jump(after: price.at - reference.at)
            } ?? false
        last = claims.last(at: price.at)
        vote = Vote(
            claims.of(price, isPreferred: true, at: price.at),
            claims.beside(price, answered: round.answered, isFirst: isFirst, isJump: isJump), last: last)
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

    // MARK: - 3: the need

    /// What must be requested before it is decided; `nil` if nothing.
    var need: Need? {
        let remaining = round.remaining
        guard !remaining.isEmpty, !round.isOver, needsWitness(remaining) else { return nil }
        return Need(
            purpose: .witness, markets: remaining,
            keepsCooldowns: vote.opponents.isEmpty && !isFirst && !isJump && shownMember != nil)
    }

    private func needsWitness(_ remaining: [Market]) -> Bool {
        if shownMember == nil || claims.isDisowned(price.market) { return true }
        if !vote.opponents.isEmpty || isJump {
            // The exchanges that were not requested yet may decide otherwise.
            return vote.votes <= vote.rivals + remaining.count
        }
        if vote.votes > 1 { return false }
        return isFirst || claims.belief.falsetickers.contains(price.market) || !claims.contradicting(price).isEmpty
            || !isSettled
    }

    /// Whether the price is where others agreed.
    private var isSettled: Bool {
        claims.isSupported(price)
            || claims.belief.agreed.map { abs(claims.level(of: price, near: $0.log) - $0.log) <= 2 * Vote.Bounds.width }
                ?? false
    }

    // MARK: - 4: the price that is shown

    /// - Returns: The decision, and what is believed after it.
    func decide() -> (Decision, Belief) {
        var belief = claims.belief
        if vote.opponents.isEmpty, !isConfirmed(price) { return (alone(&belief), belief) }
        return (vote.isDecided ? decided(&belief) : undecided(&belief), belief)
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
        claims.book.newest(price.market) == price && isConvertible(price)
            && (round.answered.contains(price.market) || self.price.at - price.at <= round.freshFor)
    }

    private func isConvertible(_ price: MarketObservation) -> Bool {
        claims.rules.peg != .convert || !price.isInTether || converted(price) != nil
    }

    /// A price in dollars, at the value of USDT that the members imply; `nil` if that is not known.
    private func converted(_ price: MarketObservation) -> (Price, Conversion)? {
        var belief = claims.belief
        belief.imply(vote.members.filter(\.opposes).map(\.price), beside: claims.book.stated)
        return PegRule.converted(price, belief.peg, in: claims.book.currency)
    }

    /// The vote has decided.
    private func decided(_ belief: inout Belief) -> Decision {
        guard let winner = shownMember else {
            let reason =
                isMember
                ? "what USDT is worth is not known, and its price can't be converted"
                : "\(describe(price, by: inOrder(vote.members))), and none of them responds"
            return withheld(reason)
        }
        let others = vote.members.filter { $0.price.exchange != winner.exchange }
        var decision = show(
            winner, isConfirmed(winner) ? .confirmed : .unconfirmed, agreed: others.map(\.middle).median, &belief)
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
            } else if !claims.belief.falsetickers.contains(market) {
                decision.outvoted.append(failure)
            }
            belief.outvote(market, at: price.at)
        }
        return decision
    }

    /// No majority: the price nearest to the middle of all is shown, and its side of the split stays.
    private func undecided(_ belief: inout Belief) -> Decision {
        var parties: [Claim] = []
        for claim in vote.claims where claim.opposes || claims.belief.falsetickers.contains(claim.price.market) {
            // Of the possible levels of a price in USDT, the one nearest to the last value.
            guard let index = parties.firstIndex(where: { $0.price == claim.price }) else {
                parties.append(claim)
                continue
            }
            if let last, abs(claim.middle - last) < abs(parties[index].middle - last) { parties[index] = claim }
        }
        let possible = parties.filter { refusal(of: $0.price) == nil && isConvertible($0.price) }
        let levels = (possible.isEmpty ? parties : possible).map(\.middle)
        let middle = (levels + (levels.count.isMultiple(of: 2) ? [last].compactMap(\.self) : [])).median ?? 0
        // Not one that stands still or was outvoted before, if there is another.
        let candidates = possible.filter { $0.opposes && !claims.isStill($0.price, at: price.at) }
        guard var nearest = [candidates, possible, parties].first(where: { !$0.isEmpty })?.nearest(to: middle) else {
            return withheld("there is no price")
        }
        var side = parties.filter { $0.agrees(with: nearest) }
        // A minority that does not respond gives way.
        if firstShowable(side) == nil, 2 * side.voters < parties.voters,
            let other = possible.filter({ isShowable($0.price) }).nearest(to: middle)
        {
            nearest = other
            side = parties.filter { $0.agrees(with: other) }
        }
        let others = parties.filter { !$0.agrees(with: nearest) }
        let split = Split(shown: inOrder(side), others: inOrder(others))
        let before = side.first { $0.price.market == claims.belief.reference?.market && isShowable($0.price) }?.price
        var decision: Decision
        if let winner = before ?? firstShowable(side) {
            decision = show(winner, others.isEmpty ? .confirmed : .unconfirmed, among: side, &belief)
        } else {
            decision = withheld("\(split.text(claims.book.currency)), and only the former respond")
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

    /// No other exchange says anything about this moment.
    private func alone(_ belief: inout Belief) -> Decision {
        guard isShowable(price) else { return decided(&belief) }
        if let refusal = refusal(of: price) {
            var decision = withheld(refusal)
            decision.contradictsRate = true
            decision.rejected = [SourceFailure(source: price.market.venue, error: .implausible(refusal))]
            return decision
        }
        // The only source may be a peer, whose own vote has already confirmed it.
        let statement = isOnlySource ? price.origin?.confirmation : nil
        if isFirst {
            if wasContradicted { return wait(&belief) }
            return statement == .confirmed ? show(price, .confirmed, &belief) : doubted(&belief)
        }
        if isJump { return isExplained ? show(price, .single, &belief) : wait(&belief) }
        let others = claims.contradicting(price)
        if !others.isEmpty || opinion != nil { return doubted(by: others, &belief) }
        if claims.isSupported(price) { return show(price, .confirmed, &belief) }
        let wasDoubted =
            statement != .confirmed
            && claims.belief.unconfirmedSince.map { price.at - $0 < Vote.Bounds.memory } ?? false
        let isDoubted =
            wasDoubted || price.isUnconfirmed || isUncompared || isFalseticker || claims.isDisowned(price.market)
            || claims.book.isAhead(price.market)
        return show(price, isDoubted ? .unconfirmed : statement ?? .single, &belief)
    }

    /// Shows the price as unconfirmed, with what contradicts it.
    /// - Parameter others: Other markets that contradict it.
    private func doubted(by others: [MarketObservation] = [], _ belief: inout Belief) -> Decision {
        let opinion = others.isEmpty ? opinion : nil
        var decision = show(price, .unconfirmed, &belief)
        if opinion != nil || !others.isEmpty {
            decision.split = Split(shown: [price], others: others, opinion: opinion, isOld: true)
        }
        return decision
    }

    /// Whether the configuration has no other exchange.
    private var isOnlySource: Bool { !round.hasOthers(than: price.market) }

    /// Whether the only source was outvoted before others were removed, and has not come back to where they agreed.
    private var isFalseticker: Bool {
        guard claims.belief.falsetickers.contains(price.market) else { return false }
        guard let agreed = claims.belief.agreed, isOnlySource else { return true }
        let moved = Vote.Bounds.drift * (Double(max(0, price.at - agreed.at)) / 1000).squareRoot()
        return abs(claims.level(of: price, near: agreed.log) - agreed.log) > 2 * Vote.Bounds.width + moved
    }

    /// What contradicts the price although no other market does.
    private var opinion: Opinion? {
        if let opinion = round.expected?.opinion(on: price, usual: claims.belief.usual) { return opinion }
        // Those who are silent now have said something before.
        guard let agreed = claims.belief.agreed, !isOnlySource else { return nil }
        let farthest = min(Self.jump(after: price.at - agreed.at), Vote.Bounds.jump.whileSilent)
        return abs(claims.level(of: price, near: agreed.log) - agreed.log) > farthest ? .agreement(agreed.log) : nil
    }

    /// Why a first price or a jump is far from what another currency implies; `nil` if it is not.
    private func refusal(of price: MarketObservation) -> String? {
        guard let expected = round.expected, isFirst || isJump || isUncompared && expected.hasVoice(on: price) else {
            return nil
        }
        return expected.refusal(of: price)
    }

    /// Whether no price was compared with anything yet, although the configuration allows it.
    private var isUncompared: Bool { round.allowsClaim && !claims.belief.isCompared }

    private var wasContradicted: Bool {
        claims.belief.contradicted.map { $0.market == price.market && price.at - $0.at < Vote.Bounds.memory } ?? false
    }

    /// Whether the price in another currency moved as well: their quotient is an exchange rate, which moves slowly.
    private var isExplained: Bool {
        guard let other = round.other, let known = claims.belief.rate, known.currency == other.currency,
            abs(price.at - other.at) <= Vote.Bounds.moment
        else { return false }
        return abs(price.log - other.log - known.log) <= Self.jump(after: price.at - known.at)
    }

    /// A jump is shown after some ticks that agree.
    private func wait(_ belief: inout Belief) -> Decision {
        var reason = "\(claims.describe(price)), and no second source could confirm it"
        guard round.isTick else { return withheld(reason) }
        let jump = wasContradicted ? nil : pendingJump
        if let jump, jump.ticks >= Vote.Bounds.ticks { return doubted(&belief) }
        reason +=
            jump.map {
                "; it will be shown after \(Vote.Bounds.ticks) ticks in agreement (\($0.ticks) of \(Vote.Bounds.ticks))"
            } ?? "; another market contradicted it shortly before"
        belief.wait(for: jump)
        return withheld(reason)
    }

    /// One more tick of the pending jump, or the first tick of a new one.
    private var pendingJump: PendingJump {
        let before = claims.belief.pending.flatMap { same -> PendingJump? in
            guard same.market == price.market else { return nil }
            // A sliding exchange rate goes on in one direction for minutes; a bad print comes back. A market that slides away from what
            // another currency implies is not believed before it stops.
            let goesOn =
                round.other != nil && round.expected?.opinion(on: price, usual: claims.belief.usual) == nil
                && claims.belief.reference.map { (price.log - same.log) * (same.log - $0.readLog) > 0 } ?? false
            return goesOn || abs(price.log - same.log) <= Self.jump(after: price.at - same.at) ? same : nil
        }
        // The same observation says nothing new.
        let ticks = before.map { $0.at == price.at ? $0.ticks : $0.ticks + 1 } ?? 1
        return PendingJump(market: price.market, log: price.log, at: price.at, ticks: ticks)
    }

    /// Shows a price, converted if that is wanted, and believes it.
    /// - Parameters:
    ///   - side: The claims that agree with it; `nil` for those that have won.
    ///   - agreed: Where the other exchanges are that agree with it.
    private func show(
        _ price: MarketObservation, _ confirmation: Confirmation, among side: [Claim]? = nil, agreed: Double? = nil,
        _ belief: inout Belief
    ) -> Decision {
        let (side, source) = (side ?? vote.members, price.market.venue)
        let word = claims.rules.peg == .convert && price.isInTether ? belief.peg.onlyWord : nil
        let isOnlyWord = word.map { stater in
            !side.contains { ![price.exchange, stater].contains($0.price.exchange) && !$0.price.isUnconfirmed }
        }
        let confirmation = isDoubtful || isOnlyWord == true ? .unconfirmed : confirmation
        var shown = ShownPrice(
            PriceQuote(
                value: price.value, currency: claims.book.currency.rawValue, timestamp: price.arrival.wall,
                source: price.origin?.source ?? source, market: price.pair, via: price.origin.map { _ in source }),
            observedBoottime: price.at, confirmation: confirmation)
        if claims.rules.peg == .convert, price.isInTether, let (value, conversion) = converted(price) {
            shown.quote.value = value
            shown.conversion = conversion
        }
        var decision = Decision(showing: shown, price)
        for claim in side { decision.verdicts[claim.price.market] = .agrees }
        decision.verdicts[price.market] = .used
        // Old prices imply nothing new about USDT.
        belief.imply(side.filter(\.opposes).map(\.price), beside: claims.book.stated)
        let agreed = isDoubtful ? nil : agreed
        let near = agreed ?? belief.agreed?.log ?? belief.reference?.log
        let level = belief.level(of: price, near: near, beside: claims.book.stated)
        belief.accept(
            price, at: level, confirmation, agreed: agreed,
            isCompared: vote.claims.contains { $0.price.exchange != price.exchange }, in: round)
        return decision
    }

    /// `<the move>, which coinbase (68850) contradicts`
    private func describe(_ price: MarketObservation, by others: [MarketObservation]) -> String {
        let names = others.map { "\($0.market.venue) (\($0.value))" }.listed
        let still = claims.isStill(price, at: self.price.at) ? "it stands still at \(price.value): " : ""
        return "\(still)\(claims.describe(price)), which \(names) contradict\(others.count > 1 ? "" : "s")"
    }

    /// The prices of claims, each once and in the configured order.
    private func inOrder(_ claims: [Claim]) -> [MarketObservation] {
        round.markets.compactMap { market in claims.first { $0.price.market == market }?.price }
    }
}
