import Glibc

/// Keeps the price of one currency: records observations and decisions, and returns what to publish and to report. A pure value
/// without a clock and without I/O, changed in place. It is large, so it can't be copied by accident.
package struct PriceTracker: ~Copyable, Sendable {
    /// What to do, in this order.
    package struct Actions: Sendable {
        package var publish: PriceState?
        package var publication = Publication.change
        package var events: [PriceEvent] = []
        /// Sources whose price is not believed, and why. They get a cooldown.
        var rejected: [SourceFailure] = []
        /// Sources that were outvoted, and why. They are requested as usual.
        package var doubted: [SourceFailure] = []
        /// Why the round shows no price; `nil` if it does.
        package var failure: FetchFailure?
        /// Since when the shown prices are in doubt, because another market's is shown now that is far from them.
        var doubtedSince: BootTime?
    }

    /// The minimum age of a stored price whose age is known only from the wall clock.
    private static let leastAge = Duration.seconds(60).wholeMilliseconds

    private(set) var freshFor: Int64
    private var failedTicks: Int64 = 0
    /// The number of ticks that failed since the start.
    private(set) var failedInAll: Int64 = 0
    private var failing: Set<String> = []
    /// The markets whose times are in the future, as was reported.
    private var ahead: Set<Market> = []
    private var isPaused = false
    private var wasOffPeg = false
    /// Whether USDT is known to be off its peg.
    private var isOffPeg = false
    /// Where the last round that requested a source found the price, in the common frame.
    private var requestedLevel: Double?
    private var contradictedSince: BootTime?
    private var hasOutvoted = false
    /// Whether the last round had no time left for the response of another exchange.
    private(set) var lacksTime = false
    /// The only source that gave a price, if several are configured.
    private var lone: String?
    /// While only one source gives a price, the warning without that: it says nothing once none does.
    private var lastingWarning: String?
    private(set) var rules: SelectionRules
    /// What is seen.
    private(set) var book: ObservationBook
    /// What is believed.
    private(set) var belief: Belief
    /// The results of the ticks that needed more than one market.
    private(set) var validated = ValidatedTicks()
    private(set) var verdicts: [Market: MarketVerdict] = [:]

    package private(set) var state: PriceState
    /// The last valid price, as it is to be stored.
    package private(set) var kept: CachedPrice?

    /// - Parameters:
    ///   - interval: The interval of the ticks: a price is fresh for two of them.
    ///   - memory: See ``SelectionRules/memory``.
    ///   - belief: What is believed before the first price.
    package init(
        _ currency: Currency, interval: Duration, rules: SelectionRules = SelectionRules(), memory: Int64 = 0,
        belief: Belief = Belief()
    ) {
        freshFor = 2 * interval.wholeMilliseconds
        self.rules = rules.with(interval: interval.wholeMilliseconds, memory: memory)
        self.belief = belief
        book = ObservationBook(currency: currency)
        state = .empty(of: currency)
        (state.ticks.ticking, state.ticks.awaitsTick) = (.running, true)
    }

    /// - Parameter addresses: The address of each market that is kept.
    package mutating func changed(
        interval: Duration, rules: SelectionRules, memory: Int64 = 0, addresses: [Market: MarketAddress]
    ) {
        freshFor = 2 * interval.wholeMilliseconds
        self.rules = rules.with(interval: interval.wholeMilliseconds, memory: memory)
        let moved = book.keep(only: addresses, interval: interval.wholeMilliseconds)
        belief.keep(only: Set(addresses.keys), moved: moved)
    }

    /// The value of USDT; `nil` before it was measured.
    var pegRate: PegRate? { belief.peg.rate }

    /// The last valid price of each source, requested or pushed, by its name.
    var lastPrices: [String: MarketObservation] {
        Dictionary(book.last.map { ($0.market.venue, $0) }) { first, _ in first }
    }

    /// How the newest price of each market arrived.
    var ways: [Market: PriceWay] { Dictionary(book.newest.map { ($0.market, $0.way) }) { first, _ in first } }

    private var reading: Claims { Claims(book, belief, rules) }

    /// What each market's price says, and its part in the last vote.
    var claims: [Market: MarketClaim] {
        guard let reference = belief.reference, state.freshness == .fresh else { return [:] }
        let reading = reading
        let members = verdicts.filter { $0.value == .used || $0.value == .agrees }.keys.map(\.venue).sorted()
        var claims: [Market: MarketClaim] = [:]
        for price in book.last
        where verdicts[price.market] == .used || reference.at - price.since <= rules.memory {
            let market = price.market
            let all = reading.of(price, isPreferred: verdicts[market] == .used, at: reference.at)
            guard var claim = all.nearest(to: reference.log) else { continue }
            if reference.market.isMedian { claim = claim.inMedian }
            let isOut = [.disagrees, .outlier].contains(verdicts[market])
            let isMember =
                members.contains(market.venue)
                || !isOut && !belief.falsetickers.contains(market) && claim.contains(reference.log)
            claims[market] = MarketClaim(
                low: book.currency.price(logarithm: claim.low), high: book.currency.price(logarithm: claim.high),
                isMember: isMember, contradictedBy: isMember ? [] : members)
        }
        return claims
    }

    /// The price that was shown last, for comparison with another currency's; `nil` if it is too old for that.
    func shown(at boottime: BootTime) -> OtherCurrency? {
        guard state.derivation == nil, !belief.isRestored, let reference = belief.reference,
            boottime - reference.at <= ExpectedPrice.lasts
        else { return nil }
        return OtherCurrency(
            currency: book.currency, log: reference.readLog, at: reference.at,
            exchange: reference.market.isMedian ? nil : reference.exchange,
            isUnconfirmed: state.confirmation == .unconfirmed, isFresh: state.freshness == .fresh)
    }

    mutating func add(_ result: PollResult, to round: inout Round) {
        round.add(result)
        forgetNewest(result.failures)
    }

    func select(_ round: Round) -> Selection { PriceSelector.select(book, belief, rules, round) }

    /// Restores the last price of an earlier run. It is shown as stale until a tick has a newer one.
    package mutating func restored(_ cached: CachedPrice, at now: ObservationTime) -> Actions {
        kept = cached
        // The age is from the wall clock, which may be wrong at a boot: the price must never count as a current one.
        let age = max(Self.leastAge, now.wall.milliseconds - cached.quote.timestamp.milliseconds)
        let boottime = cached.price.observedBoottime ?? now.boottime - age
        // A position in the future would make every later one look old.
        book.restore(cached.positions.filter { $0.position.time.map { $0 <= now.wall } ?? true }, at: boottime)
        let moved = cached.positions.filter(book.isElsewhere).map(\.market)
        let learned = (cached.learned ?? []).filter { !moved.contains($0.market) }
        // The price is compared as it was read. A derived one is compared with nothing.
        let reference = cached.price.derivation == nil ? reference(cached, at: boottime) : nil
        belief.restore(reference, learned, at: boottime, now: now.boottime)
        state = PriceState(
            cached.price, TickState(freshness: .stale, failure: "no tick since the start"),
            currency: book.currency.rawValue)
        (state.ticks.ticking, state.ticks.awaitsTick) = (.running, true)
        return Actions(publish: state)
    }

    private func reference(_ cached: CachedPrice, at boottime: BootTime) -> ReferencePrice {
        let quote = cached.quote
        let market = Market(quote.supplier, quote.via == nil ? quote.market : book.currency.pair)
        let log = (cached.price.conversion?.value ?? quote.value).logarithm
        return ReferencePrice(
            market: market, exchange: quote.source, log: log, at: boottime, readLog: log, since: boottime)
    }

    /// Sets the movement of the price in the last 24 hours, as far as it is known.
    mutating func set(_ day: PriceDay?) { state.day = day }

    // MARK: - Observations

    /// Records a response of a source, or a price that it pushed.
    /// - Throws: Why it is not a valid price.
    package mutating func record(
        _ loaded: [LoadedPrice], of market: Market, from venue: Venue? = nil, pace: Duration,
        clocks: VenueClocks = VenueClocks(), at now: ObservationTime
    ) throws(PriceLoadingError) {
        if let price = loaded.first(where: { $0.market == market }), let push = price.push,
            let observed = price.observed
        {
            let age = now.boottime - observed.boottime
            guard age <= PaceRule.lasts(freshFor, push.interval) else {
                throw .staleData("its newest price is \(age / 1000) s old")
            }
        }
        try book.record(loaded, of: market, from: venue, pace: pace, clocks: clocks, at: now)
    }

    /// Whether a market's times are in the future, which was not reported yet.
    mutating func isNewlyAhead(_ market: Market, at boottime: BootTime) -> Bool {
        guard book.isAheadForLong(market, at: boottime) else {
            ahead.remove(market)
            return false
        }
        return ahead.insert(market).inserted
    }

    /// What follows from a streamed price.
    enum StreamEffect {
        /// It is evidence for the next vote, as an observed price is.
        case evidence
        /// It may be shown.
        case agrees
        /// It is too far from the last requested price: a request must show which one is right.
        case contradicts
    }

    /// Records a price of a stream.
    ///
    /// That of a market that is shown must agree with the last round that requested a source. So a stream that is late, stands still or
    /// lies is wrong by no more than markets may differ, and no longer than until the next response.
    /// - Throws: Why it does not count.
    mutating func record(
        streamed price: LoadedPrice, from venue: Venue, at now: ObservationTime
    ) throws(PriceLoadingError) -> StreamEffect {
        guard !book.isBefore(price.position, of: price.market, at: now.boottime) else {
            throw .staleData("a request has shown a newer one")
        }
        guard let requestedLevel else { throw .staleData("no request has shown the price yet") }
        let isShown = shows(price.market)
        if isShown {
            let observation = MarketObservation(price.market, price.value, arrival: now)
            let level = belief.level(of: observation, near: requestedLevel, beside: book.stated)
            guard abs(level - requestedLevel) <= Vote.Bounds.width else { return .contradicts }
        }
        // Without its position: a later response may be from a cache, and must not count as a step back.
        var recorded = LoadedPrice(price.market, price.value)
        recorded.push = price.push
        try book.record([recorded], of: price.market, from: venue, at: now)
        return isShown ? .agrees : .evidence
    }

    /// Whether a market's price is shown now, alone or in a median.
    func shows(_ market: Market) -> Bool {
        state.freshness == .fresh && state.derivation == nil && shownSources.contains(market.venue)
    }

    /// The sources of the price that was shown last: one, or the members of a median.
    private var shownSources: [String] {
        state.standing.consensus?.sources ?? [state.quote?.supplier].compactMap(\.self)
    }

    /// Records the end of a round that requested a source. Without a price the level stays: the reference price may be a stream's.
    mutating func requested(hasPrice: Bool) {
        let isShown = state.freshness == .fresh && state.derivation == nil
        if hasPrice || !isShown { requestedLevel = isShown ? belief.reference?.log : nil }
    }

    /// Those of some markets that have a fresh price.
    func current(_ markets: [Market], at boottime: BootTime) -> [Market] {
        markets.filter { market in
            book.newest(market).map { boottime - $0.at <= PaceRule.lasts(freshFor, $0.pace) } ?? false
        }
    }

    mutating func lost(_ market: Market) { book.failed(market) }

    /// Records the result of the observer's request. It shows no price: only the tick does.
    package mutating func observed(_ result: Result<Market, FetchFailure>) -> Actions {
        var actions = Actions()
        switch result {
        case .success(let market):
            guard let price = book.newest(market) else { return actions }
            if let failure = belief.learn(price, from: book, rules) {
                actions.rejected = [failure]
                failing.insert(failure.source)
            } else {
                note(price, &actions)
            }
            // Clients see it at the next tick.
            warn(at: price.at, &actions)
        case .failure(let failure):
            forgetNewest(failure.failures)
            note(failure.failures, &actions)
        }
        return actions
    }

    /// Whether the shown price has gone so far while the other exchanges were silent that it is in doubt.
    var isUnwitnessed: Bool {
        if case .agreement = belief.split?.opinion { state.freshness == .fresh } else { false }
    }

    /// Whether the rate of USDT must be requested before this observed price can be compared.
    func needsPegRate(for market: Market) -> Bool {
        book.newest(market).map { PegRule.needsRate($0, reading) } ?? false
    }

    // MARK: - Decisions

    /// Records that a round has ended without a price.
    /// - Parameters:
    ///   - derived: The price that is derived instead; `nil` if there is none.
    ///   - isTick: Whether a tick waited for it; otherwise only clients did.
    mutating func failed(
        _ failure: FetchFailure, isTick: Bool, derived: DerivedPrice? = nil, at now: BootTime
    ) -> Actions {
        var actions = Actions(failure: failure)
        // A round that was given up is neither a tick nor a failure: as if it had never begun.
        if failure.isCancelled { return actions }
        begin(isTick, &actions)
        note(failure.failures, &actions)
        if !isHeld(over: failure, at: now) {
            fallBack(to: derived, failure, isTick: isTick, &actions)
        } else if isTick {
            count(state.confirmation)
        }
        warn(at: now, &actions)
        actions.publish = state
        return actions
    }

    /// Records that a round has ended with a decision.
    /// - Parameters:
    ///   - belief: What is believed after it.
    ///   - derived: The price that is derived if the decision is to show none.
    mutating func decided(
        _ decision: Decision, _ belief: Belief, in round: Round, isTick: Bool, derived: DerivedPrice? = nil
    ) -> Actions {
        var actions = Actions()
        begin(isTick, &actions)
        note(round.failures, &actions)
        lacksTime = round.lacksTime
        actions.doubtedSince = doubtedSince(belief)
        if let jump = jump(to: belief) { actions.events.append(.jumped(jump, book.currency)) }
        self.belief = belief
        verdicts = decision.verdicts
        (actions.rejected, actions.doubted) = (decision.rejected, decision.outvoted)
        for market in round.answered where !decision.rejects(market) && !belief.falsetickers.contains(market) {
            if let price = book.newest(market) { note(price, &actions) }
        }
        failing.formUnion((actions.rejected + actions.doubted).map(\.source))
        if let price = decision.price {
            lone = decision.lone(in: round)
            if isTick { count(price.confirmation) }
            show(price, decision, &actions)
            if let outliers = decision.standing.consensus?.outliers, !outliers.isEmpty {
                actions.events.append(.outliers(outliers, value: price.quote.value))
            }
        } else {
            if isTick, derived == nil { validated.withheld += 1 }
            let failure = FetchFailure(failures: round.failures + [decision.withheld].compactMap(\.self))
            actions.failure = failure
            fallBack(to: derived, failure, isTick: isTick, &actions)
        }
        if isTick { tellOutvoted(&actions) }
        warn(at: decision.observed.boottime, &actions)
        actions.publish = state
        return actions
    }

    /// Reports the sources that most others contradict.
    private mutating func tellOutvoted(_ actions: inout Actions) {
        let outvoted = Set(verdicts.filter { $0.value == .outlier }.keys).union(belief.falsetickers)
        guard !outvoted.isEmpty || hasOutvoted, let reference = belief.reference else { return }
        hasOutvoted = !outvoted.isEmpty
        var distances: [String: Int64] = [:]
        for price in book.last where outvoted.contains(price.market) {
            let level = belief.level(of: price, near: reference.log, beside: book.stated)
            distances[price.market.venue] = Int64(min(abs(exp(level - reference.log) - 1) * 1e6, 1e9))
        }
        actions.events.append(.outvoted(distances, book.currency))
    }

    /// How far the shown price moves, in millionths of it, if that is further than a price may without another exchange.
    /// - Parameter next: What is believed after the decision.
    private func jump(to next: Belief) -> Int64? {
        guard let shown = belief.reference, let new = next.reference, !belief.isRestored else { return nil }
        let (elapsed, distance) = (new.at - shown.at, new.log - shown.log)
        guard elapsed <= rules.gap, abs(distance) > Ballot.jump(after: elapsed) else { return nil }
        return Int64(min(abs(expm1(distance)) * 1e6, 1e9))
    }

    /// Since when the shown prices are in doubt, because a decision shows another market's that is far from them: since another exchange
    /// agreed last.
    /// - Parameter next: What is believed after the decision.
    private func doubtedSince(_ next: Belief) -> BootTime? {
        guard state.freshness == .fresh, let shown = belief.reference, let winner = next.reference,
            winner.market != shown.market, abs(winner.log - shown.log) > 2 * Vote.Bounds.width
        else { return nil }
        return belief.agreed?.at ?? BootTime(milliseconds: 0)
    }

    package mutating func paused(_ ticking: Ticking = .paused) -> Actions {
        isPaused = true
        (state.ticks.ticking, state.ticks.awaitsTick) = (ticking, true)
        state.becomeStale(because: PriceState.pausedFailure)
        return Actions(publish: state, publication: .pause)
    }

    /// Records that the ticks start again: a price that arrives before the first tick is a current one.
    package mutating func resumed() -> Actions {
        guard isPaused else { return Actions() }
        isPaused = false
        state.ticks.ticking = .running
        let reason = "no tick since the ticks were resumed"
        if state.freshness == .fresh { state.ticks.agedFailure = reason } else { state.ticks.failure = reason }
        return Actions(publish: state)
    }

    // MARK: - The state

    private mutating func begin(_ isTick: Bool, _ actions: inout Actions) {
        guard isTick else { return }
        state.ticks.number += 1
        actions.publication = .tick
        isPaused = false
        (state.ticks.ticking, state.ticks.awaitsTick) = (.running, false)
    }

    /// Whether the price stays current although no source was requested: the limits of its source did not allow it yet.
    private func isHeld(over failure: FetchFailure, at now: BootTime) -> Bool {
        guard state.freshness == .fresh, let freshUntil = state.ticks.freshUntil, now <= freshUntil else {
            return false
        }
        return failure.skipped.contains { $0.reason == .limit && shownSources.contains($0.source) }
    }

    private mutating func count(_ confirmation: Confirmation?) {
        switch confirmation {
        case .single, nil: break
        case .confirmed: validated.confirmed += 1
        case .unconfirmed: validated.unconfirmed += 1
        }
    }

    private mutating func warn(at boottime: BootTime, _ actions: inout Actions) {
        let isFresh = state.freshness == .fresh
        let split = isFresh ? belief.split?.current(at: boottime)?.text(book.currency) : nil
        if isFresh {
            let alone = lone.map { "only \($0) gives a price" }
            let peg = PegRule.warning(for: state.quote, belief.peg, rules.peg, at: boottime)
            func text(_ warnings: [String?]) -> String? {
                let warnings = warnings.compactMap(\.self)
                return warnings.isEmpty ? nil : warnings.joined(separator: "; ")
            }
            if state.derivation == nil {
                state.standing.warning = text([split, alone, peg])
                if alone != nil { lastingWarning = text([split, peg]) }
            }
            state.standing.isInDoubt =
                state.confirmation == .unconfirmed || split != nil
                || PegRule.isOffPeg(state.quote, state.price?.conversion, belief.peg, at: boottime)
        } else if lone.take() != nil, state.derivation == nil {
            state.standing.warning = lastingWarning
        }
        if let quote = state.quote, state.derivation == nil, (split != nil) != (contradictedSince != nil) {
            if let split {
                contradictedSince = boottime
                actions.events.append(.contradicted(warning: split, quote))
            } else if isFresh, let since = contradictedSince.take() {
                actions.events.append(.contradictionEnded(quote, after: .milliseconds(boottime - since)))
            }
        }
        let current = belief.peg.usableRate(at: boottime).flatMap { $0.isOffPeg ? $0 : nil }
        if current != nil || isOffPeg { actions.events.append(.offPeg(current)) }
        isOffPeg = current != nil
        guard let rate = pegRate else { return }
        if rate.isOffPeg != wasOffPeg { actions.events.append(.pegChanged(rate)) }
        wasOffPeg = rate.isOffPeg
    }

    private mutating func show(_ price: ShownPrice, _ decision: Decision, _ actions: inout Actions) {
        if state.freshness != .fresh, !isPaused {
            actions.events.append(.becameFresh(price.quote, failedTicks: failedTicksAfterPrice))
        }
        if state.derivation != nil, state.freshness == .fresh { actions.events.append(.marketAgain(price.quote)) }
        let until = decision.observed.boottime + PaceRule.lasts(freshFor, decision.pace)
        setFresh(price, decision.standing, until: until)
    }

    /// The ticks that failed since the last price; 0 before the first one.
    private var failedTicksAfterPrice: Int64 { state.price == nil ? 0 : failedTicks }

    /// Makes a price the current one, and keeps it.
    private mutating func setFresh(_ price: ShownPrice, _ standing: Standing, until freshUntil: BootTime) {
        failedTicks = 0
        (state.price, state.standing) = (price, standing)
        state.ticks.freshness = .fresh
        state.ticks.freshUntil = freshUntil
        state.ticks.failure = nil
        state.ticks.agedFailure = isPaused ? PriceState.pausedFailure : nil
        let learned = price.observedBoottime.map { belief.learned(at: $0) }
        kept = CachedPrice(price, positions: book.positions, learned: learned)
    }

    /// Shows the derived price if there is one; otherwise the last price is stale.
    private mutating func fallBack(
        to derived: DerivedPrice?, _ failure: FetchFailure, isTick: Bool, _ actions: inout Actions
    ) {
        guard let derived else { return becomeStale(failure, isTick: isTick, &actions) }
        // A client's failed fetch does not replace a market's price either.
        guard isTick || state.freshness != .fresh || state.derivation != nil else { return }
        if isTick { count(derived.price.confirmation) }
        actions.failure = nil
        let isNew = state.derivation == nil || state.freshness != .fresh
        if isNew, !isPaused {
            actions.events.append(
                derived.isInstead
                    ? .derivedInstead(failure: failure.description, derived.price.quote, derived.derivation)
                    : .becameFresh(derived.price.quote, failedTicks: failedTicksAfterPrice))
        }
        setFresh(derived.price, derived.standing, until: derived.freshUntil + freshFor / 2)
    }

    private mutating func becomeStale(_ failure: FetchFailure, isTick: Bool, _ actions: inout Actions) {
        // A client's failed fetch does not affect the last tick's price.
        guard isTick else { return }
        if failedTicks == 0 {
            actions.events.append(
                .becameStale(failure: failure.description, quote: state.quote, currency: book.currency))
        }
        failedTicks += 1
        failedInAll += 1
        state.becomeStale(because: failure.description)
    }

    private mutating func forgetNewest(_ failures: [SourceFailure]) {
        for failure in failures { book.failed(source: failure.source) }
    }

    private mutating func note(_ price: MarketObservation, _ actions: inout Actions) {
        let source = price.market.venue
        if failing.remove(source) != nil { actions.events.append(.sourceRecovered(source)) }
    }

    private mutating func note(_ failures: [SourceFailure], _ actions: inout Actions) {
        for failure in failures {
            failing.insert(failure.source)
            actions.events.append(.sourceFailed(failure))
        }
    }
}
