/// Keeps the price: polls the sources if the selector needs it, records what they give, and publishes what the selector decides.
///
/// A tick and any number of clients share one round: a caller that comes while one is in progress joins it.
package actor PriceEngine<C: Clock>: TickTarget, ObserverTarget where C.Duration == Duration {
    /// Reports to the operator. Called on no particular thread; must not block.
    package typealias Report = @Sendable (PriceEvent) -> Void

    private typealias Waiter = CheckedContinuation<Result<PriceState, FetchFailure>, Never>

    /// A round in progress, and its callers.
    private struct Shared {
        let id: Int
        let requester: Requester
        let task: Task<Void, Never>
        var waiters: [Int: Waiter] = [:]
        /// The waiter that is the tick, if it is among them.
        var tick: Int?
    }

    private var fetch: FetchWithFallback<C>
    private let clock: C
    private let executor: (any TaskExecutor)?
    private var budget: Duration
    private var subscribers: [any StateSubscriber]
    private let report: Report
    private var tracker: PriceTracker
    private var shared: Shared?
    private var lastID = 0
    private let now: TimeSource
    private var skippedTicks: Int64 = 0
    /// When the freshness became what it is, `CLOCK_BOOTTIME` in milliseconds.
    private var since: Int64
    private var published = Freshness.none
    private var feedsRun = false

    /// - Parameters:
    ///   - fetch: Polls the sources.
    ///   - clock: Measures the budget.
    ///   - budget: The longest time that a round may take.
    ///   - tracker: Keeps the state. It may know prices already.
    ///   - executor: Where rounds run; `nil` for anywhere.
    ///   - now: Reads the clocks.
    ///   - subscribers: Receive the states. The first one keeps the price.
    ///   - report: Reports to the operator.
    package init(
        fetch: FetchWithFallback<C>, clock: C, budget: Duration, tracker: PriceTracker,
        executor: (any TaskExecutor)? = nil, now: @escaping TimeSource, subscribers: [any StateSubscriber],
        report: @escaping Report
    ) {
        self.fetch = fetch
        self.clock = clock
        self.budget = budget
        self.executor = executor
        self.now = now
        self.since = now().boottime
        self.subscribers = subscribers
        self.report = report
        self.tracker = tracker
    }

    /// Sends every state from now on to one more subscriber, after the others. It receives the present one at once.
    package func subscribe(_ subscriber: any StateSubscriber) {
        subscribers.append(subscriber)
        subscriber.receive(tracker.state, isTick: false, kept: nil)
    }

    /// Every round from now on has other sources and rules. One in progress ends as it began, and its price counts.
    package func apply(
        _ fetch: FetchWithFallback<C>, interval: Duration, budget: Duration, rules: SelectionRules = SelectionRules()
    ) {
        let areRunning = feedsRun
        stopFeeds()
        self.fetch = fetch
        self.budget = budget
        if areRunning { startFeeds() }
        tracker.changed(interval: interval, rules: rules, markets: Set(fetch.markets))
        fetch.sources.skipTether(tracker.skipsTether(at: now().boottime))
    }

    /// The sources that are requested.
    package var sources: Sources { fetch.sources }

    /// The present state.
    package var state: PriceState { tracker.state }

    /// The present state, and the counts since the start.
    package var record: TickRecord {
        let present = now()
        let state = tracker.state.aged(at: present.boottime)
        // One that has grown too old since it was published became stale when its time was over.
        let isAged = state.freshness != tracker.state.freshness
        return TickRecord(
            state: state, since: present.wallTime(of: isAged ? tracker.state.freshUntil ?? since : since),
            failed: tracker.failedInAll, skipped: skippedTicks, validated: tracker.validated,
            pegRate: tracker.pegRate, lastPrices: tracker.lastPrices, verdicts: tracker.verdicts)
    }

    /// The number of callers that wait for the round in progress, including the tick; 0 if there is none.
    var callersWaiting: Int { shared?.waiters.count ?? 0 }

    /// The markets with a valid observation.
    var observedMarkets: Set<Market> { Set(tracker.book.newest.keys) }

    /// Takes over the price that an earlier run kept.
    package func restore(_ cached: CachedPrice) {
        perform(tracker.restored(cached, at: now()))
    }

    // MARK: - Ticks, observations and clients

    /// One tick: a round, whose result is kept and shown.
    package func tick(_ tick: Tick<C.Instant>) async {
        // The budget counts from when the tick was due. One that comes much too late, after a suspend, has the whole of it.
        let start = tick.lateness > budget / 2 ? clock.now : tick.due
        let deadline = start.advanced(by: budget)
        var requester: Requester
        var result: Result<PriceState, FetchFailure>
        repeat {
            requester = shared?.requester ?? .tick
            result = await join(deadline: deadline, isTick: true)
            // Once more if it joined a client's round in which the limits allowed no request: clients leave a part to the ticks.
        } while Self.requestedNone(requester, result)
        // A tick that was given up by a pause is none.
        if case .failure(let failure) = result, failure.isCancelled { return }
        skippedTicks += tick.skipped
        report(.ticked(tracker.state.tick, lateness: tick.lateness, skipped: tick.skipped))
    }

    /// Requests the source whose turn it is, beside the ticks. Has no effect if there is none, or if the ticks have no current price:
    /// then they need what the limits allow, and request all sources themselves.
    package func observe() async {
        guard let quote = tracker.state.quote, tracker.state.freshness == .fresh else { return }
        let others = fetch.markets.filter { $0.venue != quote.supplier }
        guard let price = await look(others) else { return }
        // A USDT price that does not fit is judged only after the value of USDT was requested.
        if tracker.needsPegRate(for: price), let rate = await look(others.filter(fetch.marketsStatingPeg.contains)) {
            perform(tracker.observed(.success(rate)))
        }
        perform(tracker.observed(.success(price)))
    }

    /// Requests one of these sources for the observer, within a budget.
    /// - Returns: The market whose price was recorded; `nil` if there is none. Why there is none is taken in.
    private func look(_ markets: [Market]) async -> Market? {
        do throws(FetchFailure) {
            return try await fetch.execute(
                .observer, deadline: clock.now.advanced(by: budget), among: markets, record: recorder
            ).answered.first
        } catch {
            if !error.isCancelled { perform(tracker.observed(.failure(error))) }
            return nil
        }
    }

    /// Ends the cooldowns that no exchange has asked for, of one source or of all.
    /// - Returns: The sources whose cooldown was ended, and the rate-limited ones that keep theirs; `nil` if no source has that name.
    package func retry(_ source: String?) -> (retried: [String], kept: [Skipped])? {
        defer { perform(PriceTracker.Actions()) }
        return fetch.sources.retry(source)
    }

    /// The ticks stop.
    package func paused() {
        stopFeeds()
        perform(tracker.paused())
    }

    /// The ticks are about to begin, or to begin again.
    package func resumed() {
        startFeeds()
        perform(tracker.resumed())
    }

    /// Requests a price now, for a client.
    /// - Returns: The state with the new price.
    /// - Throws: Why no source gave one.
    package func refresh() async throws(FetchFailure) -> PriceState {
        if shared == nil {
            let plan = fetch.sources.plan(.client)
            // Known at once, and no round that a tick could join.
            if plan.order.isEmpty { throw FetchFailure(failures: [], skipped: plan.skipped) }
        }
        return try await join(deadline: clock.now.advanced(by: budget), isTick: false).get()
    }

    // MARK: - Feeds

    /// Starts the sources that push their prices. A pause stops them, and the end of it starts them again.
    package func startFeeds() {
        guard !feedsRun else { return }
        feedsRun = true
        for source in fetch.feeds {
            source.feed?.start { [weak self, executor] in
                Task(executorPreference: executor) { await self?.arrived(source) }
            }
        }
    }

    /// Stops the sources that push their prices.
    package func stopFeeds() {
        feedsRun = false
        for source in fetch.feeds { source.feed?.stop() }
    }

    /// A source has pushed a price, or has lost it. That is no request: whether the source fails is judged when its price is needed.
    private func arrived(_ source: FetchLatestPrice) async {
        // As an exchange with a cooldown is not requested, its price counts for nothing.
        guard !fetch.sources.isCoolingDown(source.market) else { return tracker.lost(source.market) }
        do throws(PriceLoadingError) {
            try await source.execute(recorder)
        } catch {
            tracker.lost(source.market)
        }
    }

    // MARK: - Recording and publishing

    /// The door by which every response enters the book.
    private var recorder: FetchLatestPrice.Record {
        { await self.record($0, $1) }
    }

    private func record(_ prices: [LoadedPrice], _ source: FetchLatestPrice) -> PriceLoadingError? {
        do {
            try tracker.record(prices, of: source.market, pace: source.pace, at: now())
            return nil
        } catch {
            return error
        }
    }

    /// Keeping and publishing happen without a suspension in between: what a client has seen is never lost, and a newer state is never
    /// followed by an older one.
    private func perform(_ actions: PriceTracker.Actions) {
        var events = actions.events
        for failure in actions.rejected {
            let cooldown = fetch.sources.reject(failure.source, failure.error)
            events.append(
                .sourceFailed(SourceFailure(source: failure.source, error: failure.error, cooldown: cooldown)))
        }
        if let doubted = actions.doubted {
            fetch.sources.doubt(doubted.source, doubted.error)
            events.append(.sourceFailed(doubted))
        }
        fetch.sources.skipTether(tracker.skipsTether(at: now().boottime))
        // Read in any case, or it would be reported again at the next tick.
        let cooldownsChanged = fetch.sources.takeCooldownsChanged()
        let isNew = actions.publish?.freshness == .fresh && actions.failure == nil
        if actions.publish != nil || cooldownsChanged {
            let state = actions.publish ?? tracker.state
            let kept =
                isNew || cooldownsChanged
                ? KeptState(price: tracker.kept, cooldowns: fetch.sources.cooldowns) : nil
            if state.freshness != published { since = now().boottime }
            published = state.freshness
            for subscriber in subscribers { subscriber.receive(state, isTick: actions.isTick, kept: kept) }
        }
        for event in events { report(event) }
    }

    // MARK: - Rounds

    /// Waits for the round in progress, or for a new one. A caller that is cancelled returns at once, and the round continues for the
    /// others.
    private func join(deadline: C.Instant, isTick: Bool) async -> Result<PriceState, FetchFailure> {
        if Task.isCancelled { return .failure(.cancelled) }
        let id = shared?.id ?? start(isTick ? .tick : .client, deadline: deadline)
        lastID += 1
        let waiter = lastID
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                shared?.waiters[waiter] = continuation
                if isTick { shared?.tick = waiter }
            }
        } onCancel: {
            Task { await self.leave(id, waiter) }
        }
    }

    private func start(_ requester: Requester, deadline: C.Instant) -> Int {
        lastID += 1
        let id = lastID
        let task = Task(executorPreference: executor) {
            await self.run(id, requester, deadline: deadline, self.fetch)
        }
        shared = Shared(id: id, requester: requester, task: task)
        return id
    }

    /// One round: selects, polls what the selector needs, and selects again.
    private func run(_ id: Int, _ requester: Requester, deadline: C.Instant, _ fetch: FetchWithFallback<C>) async {
        var round = tracker.round(
            at: now().boottime, markets: fetch.markets, statingPeg: fetch.marketsStatingPeg)
        while true {
            // A tick may have joined a client's round.
            round.isTick = shared?.id == id && shared?.tick != nil
            switch tracker.select(round) {
            case .decided(let decision):
                finish(id, .success((decision, round)))
                return
            case .needs(let need):
                let longest = need.longest.map { min(deadline, clock.now.advanced(by: $0)) } ?? deadline
                do throws(FetchFailure) {
                    let result = try await fetch.execute(
                        requester, deadline: longest, among: need.markets,
                        quorum: need.wantsAll ? tracker.rules.quorum : nil, record: recorder)
                    tracker.add(result, to: &round, for: need.purpose)
                } catch {
                    if error.isCancelled || need.purpose == .price {
                        finish(id, .failure(error))
                        return
                    }
                    tracker.add(
                        PollResult(failures: error.failures, skipped: error.skipped), to: &round, for: need.purpose)
                }
                if clock.now >= deadline { round.end() }
            }
        }
    }

    /// A result is taken in once, however many callers waited for it.
    private func finish(_ id: Int, _ result: Result<(Decision, Round), FetchFailure>) {
        // It may have been given up meanwhile, and another one begun.
        guard let finished = shared, finished.id == id else { return }
        shared = nil
        let isTick = finished.tick != nil && !Self.requestedNone(finished.requester, result)
        let actions =
            switch result {
            case .success(let (decision, round)): tracker.decided(decision, in: round, isTick: isTick)
            case .failure(let failure): tracker.failed(failure, isTick: isTick, at: now().boottime)
            }
        perform(actions)
        let answer = actions.failure.map { Result<PriceState, FetchFailure>.failure($0) } ?? .success(tracker.state)
        for waiter in finished.waiters.values { waiter.resume(returning: answer) }
    }

    /// Whether a client's round ended before any source was requested.
    private static func requestedNone<Value>(_ requester: Requester, _ result: Result<Value, FetchFailure>) -> Bool {
        guard requester == .client, case .failure(let failure) = result else { return false }
        return failure.failures.isEmpty && !failure.isCancelled
    }

    private func leave(_ id: Int, _ waiter: Int) {
        guard shared?.id == id, let leaving = shared?.waiters.removeValue(forKey: waiter) else { return }
        if shared?.tick == waiter { shared?.tick = nil }
        leaving.resume(returning: .failure(.cancelled))
        guard shared?.waiters.isEmpty == true else { return }
        // A caller that comes next must not join a round that was given up.
        shared?.task.cancel()
        shared = nil
    }
}
