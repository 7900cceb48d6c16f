/// Keeps the price: polls the sources if the selector needs it, records their responses, and publishes what the selector decides.
///
/// A tick and any number of clients share one round: a caller that comes while one is in progress joins it.
package actor PriceEngine: TickTarget, ObserverTarget {
    /// Reports to the operator. Called on any thread; must not block.
    package typealias Report = @Sendable (PriceEvent) -> Void

    /// The currencies in their order. The first one is the default if a caller names none.
    private var tracked: [TrackedCurrency]
    private let clock: any BoottimeClock
    private let executor: (any TaskExecutor)?
    private var budget: Duration
    private var subscribers: [any StateSubscriber]
    private let history: PriceHistory?
    private let report: Report
    private var rates = ReferenceRates()
    private var lastID = 0
    private let now: TimeSource
    private var feedsRun = false
    /// The minimum time between two changes of the price that are published between the ticks; `nil` while nobody watches them, and the
    /// streams are closed.
    private var changeInterval: Duration?
    /// Who has stopped the ticks; `nil` while they run.
    private var pause: Ticking?
    private var isPaused: Bool { pause != nil }
    /// The index of the currency that the observer requested last, among those after the first.
    private var observed = 0

    /// - Parameters:
    ///   - plans: The currencies; at least one.
    ///   - clock: Measures the budget.
    ///   - budget: The longest time that a round may take.
    ///   - executor: Where rounds run; `nil` for anywhere.
    ///   - now: Reads the clocks.
    ///   - subscribers: Receive the states. The first one stores the price.
    ///   - history: Receives the states before they are published; `nil` for none.
    ///   - report: Reports to the operator.
    package init(
        _ plans: [CurrencyPlan], clock: any BoottimeClock, budget: Duration, executor: (any TaskExecutor)? = nil,
        now: @escaping TimeSource, subscribers: [any StateSubscriber], history: PriceHistory? = nil,
        report: @escaping Report
    ) {
        precondition(!plans.isEmpty, "there is a first currency")
        self.clock = clock
        self.budget = budget
        self.executor = executor
        self.now = now
        let since = now().boottime
        tracked = plans.map { TrackedCurrency($0, since: since) }
        self.subscribers = subscribers
        self.history = history
        self.report = report
    }

    private func tracked(_ currency: Currency) -> TrackedCurrency? { tracked.first { $0.currency == currency } }

    /// The first currency, the default if a caller names none. There is always one.
    private var first: TrackedCurrency { tracked[0] }

    /// Sends every state from now on to one more subscriber, after the others. It receives the current ones at once.
    package func subscribe(_ subscriber: any StateSubscriber) {
        subscribers.append(subscriber)
        for each in tracked {
            subscriber.receive(each.tracker.state, isTick: false, isFirst: each === first, kept: nil)
        }
    }

    /// Changes the currencies, sources and rules of every round from now on. A round in progress ends with
    /// the sources that it began with; the price of one that is gone does not count.
    /// - Parameter plans: At least one.
    package func apply(_ plans: [CurrencyPlan], budget: Duration) {
        precondition(!plans.isEmpty, "there is a first currency")
        let areRunning = feedsRun
        stopFeeds()
        self.budget = budget
        let before = tracked
        tracked = plans.map { plan in
            guard let known = before.first(where: { $0.currency == plan.currency }) else {
                return TrackedCurrency(plan, since: now().boottime)
            }
            known.fetch = plan.fetch
            known.derivation = plan.derivation
            known.interval = plan.interval
            known.tracker.changed(
                interval: plan.interval, rules: plan.rules, memory: plan.memory, markets: Set(plan.fetch.markets))
            return known
        }
        for old in before where tracked(old.currency) == nil { old.giveUp() }
        for new in tracked where !before.contains(where: { $0 === new }) {
            if let pause { _ = new.tracker.paused(pause) }
            // Before its first tick: clients may ask for it now.
            for subscriber in subscribers {
                subscriber.receive(new.tracker.state, isTick: false, isFirst: new === first, kept: nil)
            }
        }
        if areRunning { startFeeds() }
    }

    /// The sources of all currencies.
    package var sources: Sources { first.fetch.sources }

    /// The currencies in their order.
    package var currencies: [Currency] { tracked.map { $0.currency } }

    /// The current state of the first currency.
    package var state: PriceState { first.tracker.state }

    /// The current state of a currency; `nil` if it is not kept.
    package func state(of currency: Currency) -> PriceState? { tracked(currency)?.tracker.state }

    /// The markets of a currency's sources, in their order; none if it is not kept.
    package func markets(of currency: Currency) -> [Market] { tracked(currency)?.fetch.markets ?? [] }

    /// The current state of a currency, and the counts since the start; `nil` if it is not kept.
    package func record(of currency: Currency) -> TickRecord? { tracked(currency)?.record(at: now()) }

    /// The same for the first currency.
    package var firstRecord: TickRecord { first.record(at: now()) }

    /// The number of callers that wait for the round in progress of the first currency, including the tick; 0 if there is none.
    var callersWaiting: Int { first.shared?.waiters.count ?? 0 }

    /// The markets of the first currency with a valid observation.
    var observedMarkets: Set<Market> { Set(first.tracker.book.newest.keys) }

    /// Restores the price that an earlier run stored. Has no effect if its currency is not kept.
    package func restore(_ cached: CachedPrice) {
        guard let currency = Currency(rawValue: cached.quote.currency), let tracked = tracked(currency) else { return }
        perform(tracked.tracker.restored(cached, at: now()), tracked)
    }

    // MARK: - Reference rates

    /// Takes rates that were received, all of them before one is used.
    /// - Returns: For each table, the currencies whose rate is not believed.
    package func take(_ tables: [ReferenceRateTable]) -> [[Currency]] {
        defer { startRounds(derivedFrom: nil) }
        return tables.map { rates.take($0) }
    }

    /// The rates of all sources, to be kept over a restart.
    package var rateTables: [ReferenceRateTable] { rates.tables }

    /// Keeps the rates of these sources only, which are in their order.
    package func keepRates(of sources: [String]) { rates.keep(only: sources) }

    /// Starts a round of each currency that has no current price and may have a derived one now.
    /// - Parameter nearest: The currency that has a price again; `nil` for all, because rates were received.
    private func startRounds(derivedFrom nearest: Currency?) {
        for tracked in tracked
        where tracked.derivation != .never && tracked.tracker.state.freshness != .fresh && !isPaused
            && (nearest == nil || base(of: tracked)?.currency == nearest)
        {
            let currency = tracked.currency
            Task(executorPreference: executor) { await self.confirm(currency) }
        }
    }

    /// The currency that another one is derived from: the nearest, or if that is not kept, the other one that has reference rates.
    private func base(of tracked: TrackedCurrency) -> TrackedCurrency? {
        guard tracked.derivation != .never, let nearest = tracked.currency.nearest else { return nil }
        return self.tracked(nearest) ?? self.tracked(nearest == .eur ? .usd : .eur)
    }

    /// The price that is shown instead of a market's, or why there is none; neither if none is derived.
    private func derived(_ tracked: TrackedCurrency, isConfirmedOnly: Bool) -> (price: DerivedPrice?, failure: String?)
    {
        guard let other = base(of: tracked) else { return (nil, nil) }
        let present = now()
        do throws(DerivationError) {
            let rate = try rates.rate(of: tracked.currency, per: other.currency, at: present.wall)
            // The market or the rate is wrong: a rate that only one source has is not believed more than the market.
            if isConfirmedOnly, !rate.isConfirmed { return (nil, nil) }
            var price = try DerivationRule.derive(
                tracked.currency, from: other.tracker.state, rate, tracked.tracker.book, at: present)
            price.isInstead = tracked.derivation == .fallback
            return (price, nil)
        } catch {
            return (nil, error.description)
        }
    }

    /// What the price in another currency and a reference rate imply.
    private func expected(_ tracked: TrackedCurrency, beside other: OtherCurrency?, at wall: Timestamp)
        -> ExpectedPrice?
    {
        guard !rates.tables.isEmpty, let other else { return nil }
        do throws(DerivationError) {
            let rate = try rates.rate(of: tracked.currency, per: other.currency, at: wall)
            return ExpectedPrice(other, rate, in: tracked.currency, at: wall)
        } catch {
            // Nothing is known to compare the price with.
            return nil
        }
    }

    // MARK: - Ticks, observations and clients

    /// Runs one tick of a currency: a round, whose result is stored and shown. Has no effect if the currency is not kept.
    package func tick(_ tick: Tick, of currency: Currency) async {
        guard let tracked = tracked(currency) else { return }
        // The budget counts from when the tick was due. A tick that comes much too late, after a suspend, has the whole budget.
        let begun = clock.now
        let start = tick.lateness > budget / 2 ? begun : tick.due
        let deadline = start.advanced(by: budget)
        var requester: Requester
        var result: Result<PriceState, FetchFailure>
        repeat {
            requester = tracked.shared?.requester ?? .tick
            result = await join(tracked, .tick, deadline: deadline)
            // Repeats if it joined a client's round in which the limits allowed no request: clients leave a part of them to the ticks.
        } while Self.requestedNone(requester, result)
        // A tick that a pause gave up does not count.
        if case .failure(let failure) = result, failure.isCancelled { return }
        guard tracked.isKept else { return }
        tracked.skippedTicks += tick.skipped
        tracked.lastTick = now().boottime
        tracked.durations.add(begun.duration(to: clock.now))
        // The watchdog follows the first currency.
        if tracked === first {
            report(.ticked(tracked.tracker.state.tick, lateness: tick.lateness, skipped: tick.skipped))
        }
    }

    /// Requests the source whose turn it is, in addition to the ticks: one of the first currency, and one of another. Has no effect on a
    /// currency without a current price: its ticks then need what the limits allow, and request all sources themselves.
    @discardableResult
    package func observe() async -> Bool {
        await observe(first)
        if tracked.count > 1 {
            observed = observed % (tracked.count - 1) + 1
            await observe(tracked[observed])
        }
        return first.tracker.book.isRestless
    }

    private func observe(_ tracked: TrackedCurrency) async {
        guard let others = tracked.others, let price = await look(others, tracked) else { return }
        // A USDT price that does not agree is judged only after the value of USDT was requested.
        if tracked.tracker.needsPegRate(for: price),
            let rate = await look(others.filter(tracked.fetch.marketsStatingPeg.contains), tracked)
        {
            takeIn(.success(rate), tracked)
        }
        takeIn(.success(price), tracked)
    }

    private func takeIn(_ result: Result<Market, FetchFailure>, _ tracked: TrackedCurrency) {
        guard tracked.isKept else { return }
        perform(tracked.tracker.observed(result), tracked)
    }

    /// Requests one of these sources for the observer, within a budget.
    /// - Returns: The market whose price was recorded; `nil` if there is none. The reason is recorded.
    private func look(_ markets: [Market], _ tracked: TrackedCurrency) async -> Market? {
        do throws(FetchFailure) {
            return try await tracked.fetch.execute(
                .observer, deadline: clock.now.advanced(by: budget), among: markets, record: recorder
            ).answered.first
        } catch {
            if !error.isCancelled { takeIn(.failure(error), tracked) }
            return nil
        }
    }

    /// Ends all cooldowns except rate limits, for one source or for all. Their next requests use new connections.
    /// - Returns: The sources whose cooldown was ended, and the rate-limited ones that keep theirs; `nil` if no source has that name.
    package func retry(_ source: String?) -> (retried: [String], kept: [Skipped])? {
        defer { perform(PriceTracker.Actions(), first) }
        for each in tracked { each.fetch.discardConnections(of: source) }
        return sources.retry(source)
    }

    package func paused(_ ticking: Ticking) {
        pause = ticking
        stopFeeds()
        for each in tracked { perform(each.tracker.paused(ticking), each) }
    }

    /// Called when the ticks are about to start, or to start again.
    package func resumed() {
        pause = nil
        startFeeds()
        for each in tracked { perform(each.tracker.resumed(), each) }
    }

    /// Requests a price now, for a client.
    /// - Parameter currency: The currency; `nil` for the first one.
    /// - Returns: The state with the new price.
    /// - Throws: Why no source gave one. While the ticks are stopped, nothing is requested.
    package func refresh(_ currency: Currency? = nil) async throws(FetchFailure) -> PriceState {
        guard !isPaused else { throw .paused }
        guard let tracked = currency.map(tracked) ?? first else { throw .cancelled }
        if tracked.derivation == .always, let nearest = base(of: tracked)?.currency {
            // If it fails, the round gives the reason.
            do { _ = try await refresh(nearest) } catch {}
        } else if tracked.derivation == .never, tracked.shared == nil {
            let plan = sources.plan(.client, among: Set(tracked.fetch.markets))
            // Fails at once, without a round that a tick could join.
            if plan.order.isEmpty { throw FetchFailure(failures: [], skipped: plan.skipped) }
        }
        return try await join(tracked, .client, deadline: clock.now.advanced(by: budget)).get()
    }

    // MARK: - Feeds

    private var feeds: [FetchLatestPrice] { tracked.flatMap { $0.fetch.feeds } }

    /// Starts the sources that push their prices. A pause stops them, and its end starts them again.
    package func startFeeds() {
        guard !feedsRun else { return }
        feedsRun = true
        for source in feeds {
            source.feed?.start { [weak self, executor] in
                Task(executorPreference: executor) { await self?.arrived(source) }
            }
        }
        startStreams()
    }

    /// Stops the sources that push their prices.
    package func stopFeeds() {
        feedsRun = false
        for source in feeds { source.feed?.stop() }
        stopStreams()
    }

    /// Records that a source has pushed a price, or has lost it. This is not a request: whether the source fails is judged when its
    /// price is needed.
    private func arrived(_ source: FetchLatestPrice) async {
        // An exchange with a cooldown is not requested; likewise, its pushed price does not count.
        guard !sources.isCoolingDown(source.market) else { return lost(source.market) }
        let loaded: [LoadedPrice]
        do throws(PriceLoadingError) {
            loaded = try await source.load()
        } catch {
            return lost(source.market)
        }
        if record(loaded, source) != nil { lost(source.market) }
    }

    private func lost(_ market: Market) { tracked(market)?.tracker.lost(market) }

    // MARK: - Streams

    private var streams: [FetchLatestPrice] { tracked.flatMap { $0.fetch.streams } }

    /// Opens or closes the streams.
    /// - Parameter interval: The minimum time between two changes of the price that are published between the ticks; `nil` for none, which
    ///   closes the streams.
    package func publishChanges(every interval: Duration?) {
        guard interval != changeInterval else { return }
        stopStreams()
        changeInterval = interval
        startStreams()
    }

    /// Restarts the streams after a suspend: their connections are dead, which only a timeout would show.
    package func restartStreams() {
        stopStreams()
        startStreams()
    }

    private func startStreams() {
        guard feedsRun, let changeInterval else { return }
        for source in streams {
            source.stream?.start(every: changeInterval) { [weak self, executor] news in
                Task(executorPreference: executor) { await self?.received(news, from: source) }
            }
        }
    }

    private func stopStreams() {
        for source in streams { source.stream?.stop() }
        for each in tracked { each.stopStreams() }
    }

    private func received(_ news: StreamNews, from source: FetchLatestPrice) {
        switch news {
        case .limited(let error): sources.limited(source.market, error)
        case .price(let price):
            // As for a feed, the price of an exchange with a cooldown does not count.
            guard feedsRun, changeInterval != nil, let tracked = tracked(source.market),
                !sources.isCoolingDown(source.market)
            else { return }
            // A round in progress decides on the responses to its requests.
            guard tracked.shared == nil else {
                tracked.waiting[source.market] = (price, source)
                return
            }
            let present = now()
            do throws(PriceLoadingError) {
                guard try tracked.tracker.record(streamed: price, from: source.venue, at: present) else {
                    return request(tracked)
                }
                tracked.streamed[source.market] = present.boottime
                publishChange(tracked)
            } catch {
                // The response to the last request is newer.
            }
        }
    }

    /// Publishes the current price of the streams, at once or as soon as the minimum interval is over.
    private func publishChange(_ tracked: TrackedCurrency) {
        // A round in progress publishes its result.
        guard tracked.change == nil, tracked.shared == nil, let changeInterval else { return }
        guard let last = tracked.lastPublication, clock.now < last.advanced(by: changeInterval) else {
            return selectChange(tracked)
        }
        let (due, currency) = (last.advanced(by: changeInterval), tracked.currency)
        tracked.change = Task(executorPreference: executor) {
            do { try await self.clock.sleep(until: due) } catch { return }
            await self.changeIsDue(currency)
        }
    }

    private func changeIsDue(_ currency: Currency) {
        guard let tracked = tracked(currency), tracked.change.take() != nil else { return }
        // A tick that came in between has published everything.
        publishChange(tracked)
    }

    /// Selects among the prices of the streams. If that is another source's, a request must decide, so that the price does not switch between
    /// sources with every message.
    private func selectChange(_ tracked: TrackedCurrency) {
        let state = tracked.tracker.state
        guard let quote = state.quote, state.freshness == .fresh, state.derivation == nil else { return }
        var round = round(of: tracked)
        round.answered = tracked.tracker.current(round.markets, at: round.began).filter {
            $0.venue == quote.supplier || tracked.tracker.rules.mode == .median
        }
        guard !round.answered.isEmpty else { return }
        guard case .decided(let decision) = tracked.tracker.select(round), let selected = decision.quote,
            selected.source == quote.source
        else { return request(tracked) }
        if selected.value == quote.value { return }
        perform(tracked.tracker.decided(decision, in: round, isTick: false), tracked)
    }

    /// Starts a round, at most once a second: only a request shows which price is right.
    private func request(_ tracked: TrackedCurrency) {
        guard tracked.lastRequest.map({ $0.advanced(by: .seconds(1)) <= clock.now }) ?? true else { return }
        tracked.lastRequest = clock.now
        let currency = tracked.currency
        Task(executorPreference: executor) { await self.confirm(currency) }
    }

    /// A round between the ticks: for a change that another market must confirm, or for a derived price.
    private func confirm(_ currency: Currency) async {
        guard let tracked = tracked(currency) else { return }
        _ = await join(tracked, .confirmation, deadline: clock.now.advanced(by: budget))
    }

    /// The currency that has a market among its sources.
    private func tracked(_ market: Market) -> TrackedCurrency? { tracked.first { $0.fetch.markets.contains(market) } }

    // MARK: - Recording and publishing

    /// ``record(_:_:)`` for a fetch, which does not run on the actor.
    private var recorder: FetchWithFallback.Record {
        { await self.record($0, $1) }
    }

    /// Records a response. Every response enters the books here.
    private func record(_ prices: [LoadedPrice], _ source: FetchLatestPrice) -> PriceLoadingError? {
        let present = now()
        // Prices of other currencies in the same response count there.
        for price in prices where price.market != source.market {
            guard let tracked = tracked(price.market), !sources.isCoolingDown(price.market) else { continue }
            do throws(PriceLoadingError) {
                try tracked.tracker.record(
                    prices, of: price.market, from: source.venue, pace: source.pace, at: present)
            } catch {
                tracked.tracker.lost(price.market)
            }
        }
        do throws(PriceLoadingError) {
            try tracked(source.market)?.tracker.record(
                prices, of: source.market, from: source.venue, pace: source.pace, at: present)
            return nil
        } catch {
            return error
        }
    }

    /// Storing and publishing happen without a suspension in between: a price that a client has seen is never lost, and a newer state is
    /// never followed by an older one.
    private func perform(_ actions: PriceTracker.Actions, _ tracked: TrackedCurrency) {
        let markets = tracked.fetch.markets
        var events = actions.events
        for failure in actions.rejected {
            let cooldown = sources.reject(failure.source, of: markets, failure.error)
            tracked.fetch.discardConnections(of: failure.source)
            events.append(
                .sourceFailed(SourceFailure(source: failure.source, error: failure.error, cooldown: cooldown)))
        }
        for doubted in actions.doubted {
            sources.doubt(doubted.source, of: markets, doubted.error)
            events.append(.sourceFailed(doubted))
        }
        // Read in any case, or it would be reported again at the next tick.
        let cooldownsChanged = sources.takeCooldownsChanged()
        let isNew = actions.publish?.freshness == .fresh && actions.failure == nil
        if let publish = actions.publish, let history {
            tracked.tracker.set(history.add(publish, isTick: actions.isTick, at: now().wall))
        }
        if actions.publish != nil || cooldownsChanged {
            let state = tracked.tracker.state
            let kept =
                isNew || cooldownsChanged
                ? KeptState(prices: self.tracked.compactMap { $0.tracker.kept }, cooldowns: sources.cooldowns) : nil
            let isChange = state.freshness != tracked.published
            if isChange { tracked.since = now().boottime }
            tracked.published = state.freshness
            tracked.lastPublication = clock.now
            for subscriber in subscribers {
                subscriber.receive(state, isTick: actions.isTick, isFirst: tracked === first, kept: kept)
            }
            if isChange, state.freshness == .fresh { startRounds(derivedFrom: tracked.currency) }
        }
        for event in events { report(tracked === first ? event : event.named(after: tracked.currency)) }
    }

    // MARK: - Rounds

    /// Waits for the round in progress, or for a new one. A caller that is cancelled returns at once, and the round continues for the
    /// others.
    private func join(
        _ tracked: TrackedCurrency, _ requester: Requester, deadline: ContinuousClock.Instant
    ) async -> Result<PriceState, FetchFailure> {
        guard !Task.isCancelled, tracked.isKept else { return .failure(.cancelled) }
        let id = tracked.shared?.id ?? start(tracked, requester, deadline: deadline)
        lastID += 1
        let waiter = lastID
        return await withTaskCancellationHandler {
            // A closure is on the actor only if it uses `self`.
            await withCheckedContinuation { self.enter($0, waiter, tracked, isTick: requester == .tick) }
        } onCancel: {
            Task { await self.leave(id, waiter) }
        }
    }

    private func enter(
        _ waiting: TrackedCurrency.SharedRound.Waiter, _ id: Int, _ tracked: TrackedCurrency, isTick: Bool
    ) {
        tracked.shared?.waiters[id] = waiting
        if isTick { tracked.shared?.tick = id }
    }

    private func start(_ tracked: TrackedCurrency, _ requester: Requester, deadline: ContinuousClock.Instant) -> Int {
        lastID += 1
        let (id, currency) = (lastID, tracked.currency)
        let task = Task(executorPreference: executor) { await self.run(currency, id, requester, deadline: deadline) }
        tracked.shared = TrackedCurrency.SharedRound(id: id, requester: requester, task: task)
        return id
    }

    private func round(of tracked: TrackedCurrency) -> Round {
        // Of the other currencies, the first one has the most frequent ticks.
        let other = self.tracked.first { $0 !== tracked }?.tracker.shown
        let present = now()
        var round = tracked.tracker.round(
            at: present.boottime, markets: tracked.fetch.markets, statingPeg: tracked.fetch.marketsStatingPeg,
            beside: other)
        round.expected = expected(tracked, beside: other, at: present.wall)
        return round
    }

    /// One round: selects, polls what the selector needs, and selects again.
    private func run(_ currency: Currency, _ id: Int, _ requester: Requester, deadline: ContinuousClock.Instant) async {
        guard let tracked = tracked(currency), tracked.shared?.id == id else { return }
        // A round ends with the sources that it began with.
        let fetch = tracked.fetch
        // A first price is compared with the first currency's, whose first round may be in progress. A derived price is made of the
        // other currency's, whose first round may also come later.
        let isDerived = tracked.derivation == .always
        if let other = isDerived ? base(of: tracked) : first, other !== tracked,
            isDerived || other.derivation != .always, other.tracker.state.freshness != .fresh, !rates.tables.isEmpty,
            other.shared != nil || (isDerived && other.tracker.state.awaitsTick && !isPaused)
        {
            _ = await join(other, requester, deadline: deadline)
        }
        var round = round(of: tracked)
        while tracked.isKept {
            // A tick may have joined a client's round.
            round.isTick = tracked.shared?.id == id && tracked.shared?.tick != nil
            switch tracked.tracker.select(round) {
            case .decided(let decision):
                return finish(tracked, id, .success((decision, round)))
            case .needs(let need):
                let quorum = need.wantsAll ? tracked.tracker.rules.quorum : nil
                let result: PollResult
                do throws(FetchFailure) {
                    result = try await fetch.execute(
                        requester, deadline: deadline, among: need.markets, quorum: quorum,
                        record: recorder)
                } catch {
                    if error.isCancelled || need.purpose == .price { return finish(tracked, id, .failure(error)) }
                    result = PollResult(failures: error.failures, skipped: error.skipped)
                }
                tracked.tracker.add(result, to: &round, for: need.purpose)
                if clock.now >= deadline { round.end() }
            }
        }
    }

    /// Applies a result once, however many callers waited for it.
    private func finish(_ tracked: TrackedCurrency, _ id: Int, _ result: Result<(Decision, Round), FetchFailure>) {
        // The round may have been given up meanwhile, and another one begun.
        guard let finished = tracked.shared, finished.id == id else { return }
        tracked.shared = nil
        let isTick =
            finished.tick != nil
            && (tracked.derivation == .always || !Self.requestedNone(finished.requester, result))
        let actions: PriceTracker.Actions
        switch result {
        case .success(let (decision, round)):
            let derived =
                decision.quote == nil
                ? derived(tracked, isConfirmedOnly: decision.contradictsRate).price : nil
            actions = tracked.tracker.decided(decision, in: round, isTick: isTick, derived: derived)
            tracked.tracker.requested(hasPrice: decision.quote != nil)
        case .failure(var failure):
            let derived = derived(tracked, isConfirmedOnly: false)
            failure.notDerived = derived.failure
            actions = tracked.tracker.failed(failure, isTick: isTick, derived: derived.price, at: now().boottime)
            tracked.tracker.requested(hasPrice: false)
        }
        perform(actions, tracked)
        let answer =
            actions.failure.map { Result<PriceState, FetchFailure>.failure($0) } ?? .success(tracked.tracker.state)
        for waiter in finished.waiters.values { waiter.resume(returning: answer) }
        let waiting = tracked.waiting
        tracked.waiting = [:]
        for (price, source) in waiting.values { received(.price(price), from: source) }
    }

    /// Whether a round of another requester than the ticks ended before any source was requested.
    private static func requestedNone<Value>(_ requester: Requester, _ result: Result<Value, FetchFailure>) -> Bool {
        guard requester != .tick, case .failure(let failure) = result else { return false }
        return failure.failures.isEmpty && !failure.isCancelled
    }

    private func leave(_ id: Int, _ waiter: Int) {
        guard let tracked = tracked.first(where: { $0.shared?.id == id }),
            let leaving = tracked.shared?.waiters.removeValue(forKey: waiter)
        else { return }
        if tracked.shared?.tick == waiter { tracked.shared?.tick = nil }
        leaving.resume(returning: .failure(.cancelled))
        guard tracked.shared?.waiters.isEmpty == true else { return }
        // The next caller must not join a round that was given up.
        tracked.shared?.task.cancel()
        tracked.shared = nil
    }
}
