/// Takes what a fetch brought and decides what the machine is told: a pure value, without a clock and without I/O.
package struct PriceStateMachine: Sendable {
    /// What to do, in this order: what a client sees is kept before it is shown.
    package struct Actions: Sendable, Hashable {
        /// To keep, before anything is published.
        package var save: CachedPrice?
        /// To show from now on to whoever asks.
        package var publish: PriceState?
        /// Whether ``publish`` also goes to the watchers: they get one reply a tick.
        var isTick = false
        /// To tell the operator.
        package var events: [PriceEvent] = []
        /// Sources whose price is not believed, to be put to rest, and why.
        var distrusted: [SourceFailure] = []
        /// An answer that does not fit the price that is shown, while it is open which of the two is wrong.
        package var odd: SourceFailure?
        /// Why the fetch shows no price; `nil` where it does.
        package var failure: FetchFailure?
    }

    /// So old is a kept price taken for at the least, of which only the wall clock knows the age.
    private static let leastAge = Duration.seconds(60).wholeMilliseconds

    private var freshFor: Int64
    private var failedTicks: Int64 = 0
    /// The ticks that failed since the start.
    private(set) var failedInAll: Int64 = 0
    private var failing: Set<String> = []
    /// Why the price can't be kept; `nil` while it can.
    private(set) var saveFailure: PriceStoreError?
    private var isPaused = false
    private var judge: PriceJudge
    /// How the ticks ended that had to be judged by more than one source.
    private(set) var judged = JudgedTicks()

    /// What is told of the price now.
    package private(set) var state = PriceState.empty
    /// The last price that each source gave and that was not doubted.
    private(set) var lastPrices: [String: Price] = [:]
    /// The newest mark accepted from each source.
    package private(set) var marks: [String: VenueMark] = [:]
    /// The last valid price, as it is to be kept.
    package private(set) var kept: CachedPrice?

    /// - Parameters:
    ///   - interval: The ticks' interval: a price is fresh for two of them.
    ///   - rules: How prices are judged.
    package init(interval: Duration, rules: JudgementRules = JudgementRules()) {
        self.init(interval: interval, judge: PriceJudge(rules: rules))
    }

    /// - Parameter judge: May know prices already.
    init(interval: Duration, judge: PriceJudge) {
        freshFor = 2 * interval.wholeMilliseconds
        self.judge = judge
        self.judge.setGap(freshFor * 2)
    }

    /// The ticks have another interval, other sources are asked and prices are judged by other rules from now on.
    package mutating func changed(interval: Duration, rules: JudgementRules, sources: Set<String>) {
        freshFor = 2 * interval.wholeMilliseconds
        judge.changed(rules: rules, sources: sources)
        judge.setGap(freshFor * 2)
    }

    /// What is known of the sources' earlier answers.
    var known: KnownAnswers { KnownAnswers(marks: marks, frozen: judge.frozen) }
    /// What is known of their prices.
    var judgement: Judgement { judge.judgement }
    /// How prices are judged.
    var rules: JudgementRules { judge.rules }
    /// Whether markets that quote in USDT are to be passed over.
    func refusesTether(at boottime: Int64) -> Bool { judge.refusesTether(at: boottime) }
    /// What USDT is worth; `nil` before it was measured.
    var tetherRate: TetherRate? { judge.tetherRate }

    /// The price kept by an earlier run: shown as stale, until a tick has a newer one.
    mutating func restored(_ cached: CachedPrice, at now: ObservationTime) -> Actions {
        marks = cached.marks
        kept = cached
        // By the wall clock, which may be wrong at a boot: never taken for the price of this moment.
        let age = max(Self.leastAge, now.wall.milliseconds - cached.quote.timestamp.milliseconds)
        // What is compared is what the market says.
        let read = cached.conversion.map { cached.quote.with(value: $0.value) } ?? cached.quote
        judge.restored(read, at: cached.observedBoottime ?? now.boottime - age)
        state = PriceState(
            tick: 0, freshness: .stale, quote: cached.quote, observedBoottime: cached.observedBoottime,
            confirmation: .single, failure: "no tick since the start", conversion: cached.conversion)
        return Actions(publish: state)
    }

    /// A fetch has ended.
    /// - Parameters:
    ///   - result: What it brought.
    ///   - isTick: Whether a tick made it; otherwise a client asked for it in between.
    ///   - now: When it ended, `CLOCK_BOOTTIME` in milliseconds.
    package mutating func fetched(
        _ result: Result<PriceEvidence, FetchFailure>, isTick: Bool, at now: Int64
    ) -> Actions {
        var actions = Actions()
        if case .failure(let failure) = result {
            actions.failure = failure
            // A fetch that was given up is no tick and no failure: as if it had never begun.
            if failure.isCancelled { return actions }
        }
        if isTick {
            state.tick += 1
            actions.isTick = true
            isPaused = false
        }
        switch result {
        case .success(let evidence): answered(evidence, isTick: isTick, &actions)
        case .failure(let failure):
            note(failure.failures, &actions)
            if !isHeld(over: failure, at: now) { failed(failure, isTick: isTick, &actions) }
        }
        actions.publish = state
        return actions
    }

    /// Whether the price stays current although nobody was asked: its source's limits did not allow it yet.
    private func isHeld(over failure: FetchFailure, at now: Int64) -> Bool {
        guard state.freshness == .fresh, let freshUntil = state.freshUntil, now <= freshUntil else { return false }
        let shown = state.consensus?.sources ?? [state.quote?.source].compactMap(\.self)
        return failure.skipped.contains { $0.reason == .limit && shown.contains($0.source) }
    }

    private mutating func answered(_ evidence: PriceEvidence, isTick: Bool, _ actions: inout Actions) {
        note(evidence.failures, &actions)
        let wasOffPeg = tetherRate?.isOffPeg ?? false
        switch judge.rule(on: evidence, isTick: isTick, upTo: freshFor) {
        case .shown(let shown):
            for price in evidence.all { note(price, &actions) }
            actions.distrusted = shown.distrusted
            failing.formUnion(shown.distrusted.map(\.source))
            if isTick { count(shown.confirmation) }
            show(shown, &actions)
            if let consensus = shown.consensus, !consensus.outliers.isEmpty {
                actions.events.append(.outliers(consensus.outliers, value: shown.quote.value))
            }
        case .withheld(let reason, let distrusted):
            let names = Set(distrusted.map(\.source))
            for price in evidence.all where !names.contains(price.quote.source) { note(price, &actions) }
            failing.formUnion(names)
            actions.distrusted = distrusted
            if isTick { judged.withheld += 1 }
            let failure = FetchFailure(failures: evidence.failures + [reason])
            actions.failure = failure
            failed(failure, isTick: isTick, &actions)
        }
        warn(at: evidence.price.observed.boottime, wasOffPeg: wasOffPeg, &actions)
    }

    private mutating func count(_ confirmation: Confirmation) {
        switch confirmation {
        case .single: break
        case .confirmed: judged.confirmed += 1
        case .unconfirmed: judged.unconfirmed += 1
        }
    }

    private mutating func warn(at boottime: Int64, wasOffPeg: Bool, _ actions: inout Actions) {
        state.warning = judge.warning(for: state.quote, at: boottime)
        if let rate = tetherRate, rate.isOffPeg != wasOffPeg { actions.events.append(.tetherChanged(rate)) }
    }

    /// The observer's question to a source has ended. It shows no price: that is the tick's.
    package mutating func observed(_ result: Result<FetchedPrice, FetchFailure>) -> Actions {
        var actions = Actions()
        switch result {
        case .success(let price):
            let wasOffPeg = tetherRate?.isOffPeg ?? false
            (actions.distrusted, actions.odd) = judge.observed(price)
            let doubted = Set((actions.distrusted + [actions.odd].compactMap(\.self)).map(\.source))
            // One of those that are passed over now may be the one that was asked.
            if !doubted.contains(price.quote.source) { note(price, &actions) }
            failing.formUnion(doubted)
            // Seen by clients at the next tick.
            warn(at: price.observed.boottime, wasOffPeg: wasOffPeg, &actions)
        case .failure(let failure): note(failure.failures, &actions)
        }
        return actions
    }

    /// The ticks stand still.
    package mutating func paused() -> Actions {
        isPaused = true
        if state.quote != nil { state.freshness = .stale }
        state.freshUntil = nil
        state.failure = PriceState.pausedFailure
        return Actions(publish: state, isTick: true)
    }

    /// The ticks begin again: a price that comes before the first of them is a current one.
    package mutating func resumed() -> Actions {
        guard isPaused else { return Actions() }
        isPaused = false
        let reason = "no tick since the ticks were resumed"
        if state.freshness == .fresh { state.agedFailure = reason } else { state.failure = reason }
        return Actions(publish: state)
    }

    /// An attempt to keep the price has ended.
    package mutating func saved(_ error: PriceStoreError?) -> [PriceEvent] {
        defer { saveFailure = error }
        if let error { return [.saveFailed(error)] }
        return saveFailure != nil ? [.saveRecovered] : []
    }

    private mutating func show(_ price: PriceJudge.Shown, _ actions: inout Actions) {
        if state.freshness != .fresh, !isPaused {
            actions.events.append(.becameFresh(price.quote, failedTicks: failedTicks))
        }
        failedTicks = 0
        state.quote = price.quote
        state.observedBoottime = price.observed.boottime
        state.confirmation = price.confirmation
        state.consensus = price.consensus
        state.conversion = price.conversion
        state.freshness = .fresh
        let pace = price.pace.wholeMilliseconds
        state.freshUntil = price.observed.boottime + freshFor + (2 * pace > freshFor ? pace : 0)
        state.failure = nil
        state.agedFailure = isPaused ? PriceState.pausedFailure : nil
        kept = CachedPrice(
            quote: price.quote, observedBoottime: price.observed.boottime, conversion: price.conversion, marks: marks)
        actions.save = kept
    }

    private mutating func failed(_ failure: FetchFailure, isTick: Bool, _ actions: inout Actions) {
        // A client's fetch that fails takes nothing away from what the last tick left.
        guard isTick else { return }
        if failedTicks == 0 {
            actions.events.append(.becameStale(failure: failure.description, quote: state.quote))
        }
        failedTicks += 1
        failedInAll += 1
        state.freshness = state.quote == nil ? .none : .stale
        state.freshUntil = nil
        state.failure = failure.description
    }

    private mutating func note(_ price: FetchedPrice, _ actions: inout Actions) {
        lastPrices[price.quote.source] = price.quote.value
        if failing.remove(price.quote.source) != nil { actions.events.append(.sourceRecovered(price.quote.source)) }
        if let mark = price.mark { marks[price.quote.source] = mark }
    }

    private mutating func note(_ failures: [SourceFailure], _ actions: inout Actions) {
        for failure in failures {
            failing.insert(failure.source)
            actions.events.append(.sourceFailed(failure))
        }
    }
}
