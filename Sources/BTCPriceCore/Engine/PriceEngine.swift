/// Keeps the price: polls the sources if the selector needs it, records their responses, and publishes what the selector decides.
///
/// A tick and any number of clients share one round: a caller that comes while one is in progress joins it.
package actor PriceEngine: TickTarget {
    /// Reports to the operator. Called on any thread; must not block.
    package typealias Report = @Sendable (PriceEvent) -> Void

    /// The currencies in their order. The first one is the default if a caller names none.
    private(set) var tracked: [TrackedCurrency]
    /// The sources of all currencies, with their health and their limits.
    package private(set) var registry: SourceRegistry
    let clock: any BoottimeClock
    let executor: (any TaskExecutor)?
    private(set) var budget: Duration
    private var subscribers: [any StateSubscriber]
    /// The venues' clocks.
    private var clocks = VenueClocks()
    /// Whether it was reported that this machine's clock is wrong.
    private var isClockReported = false
    private let history: PriceHistory?
    private let report: Report
    var rates = ReferenceRates()
    let now: TimeSource
    private let jitter: @Sendable () -> Double
    var feedsRun = false
    /// The changes between the ticks that are published; `nil` while nobody watches them and the streams are closed.
    var watched: WatchedChanges?
    /// Who has stopped the ticks; `nil` while they run.
    private var pause: Ticking?
    var isPaused: Bool { pause != nil }
    /// Whether the cooldowns that a restart must not shorten may have changed since they were stored.
    private var cooldownsChanged = false
    /// The last prices of currencies that are not kept, as a reload has dropped them: the next one may add them again.
    private var dropped: [Currency: CachedPrice] = [:]
    /// The index of the currency that the observer requested last, among those after the first.
    private var observed = 0

    /// - Parameters:
    ///   - plans: The currencies; at least one.
    ///   - budget: The longest time that a round may take.
    ///   - observes: The minimum time between two requests of the observer.
    ///   - executor: Where rounds run; `nil` for anywhere.
    ///   - jitter: Returns a random number from 0 to 1 at each call; it spreads cooldowns.
    ///   - subscribers: Receive the states. The first one stores the price.
    ///   - history: Receives the states before they are published; `nil` for none.
    package init(
        _ plans: [CurrencyPlan], clock: any BoottimeClock, budget: Duration, observes: Duration = .seconds(3),
        executor: (any TaskExecutor)? = nil, now: @escaping TimeSource,
        jitter: @escaping @Sendable () -> Double = { .random(in: 0...1) }, subscribers: [any StateSubscriber],
        history: PriceHistory? = nil, report: @escaping Report
    ) {
        precondition(!plans.isEmpty, "there is a first currency")
        self.clock = clock
        self.budget = budget
        self.executor = executor
        self.now = now
        self.jitter = jitter
        let since = now().boottime
        registry = SourceRegistry(plans, at: since)
        tracked = plans.enumerated().map { rank, plan in
            TrackedCurrency(
                plan, memory: Observer.turn(every: observes, isFirst: rank == 0, of: plans.count), since: since)
        }
        self.subscribers = subscribers
        self.history = history
        self.report = report
    }

    /// How long after its begin a round's result is also that of a client that wants a new price, if its price is as new.
    private static let shareable = Duration.seconds(1)

    func tracked(_ currency: Currency) -> TrackedCurrency? { tracked.first { $0.currency == currency } }

    /// The first currency, the default if a caller names none. There is always one.
    var first: TrackedCurrency { tracked[0] }

    /// Sends every state from now on to one more subscriber, after the others. It receives the current ones at once.
    package func subscribe(_ subscriber: any StateSubscriber) {
        subscribers.append(subscriber)
        for each in tracked {
            subscriber.receive(each.tracker.state, .change, isFirst: each === first, kept: nil)
        }
    }

    /// Changes the currencies, sources and rules of every round from now on. A source with the same address keeps its health. A round in
    /// progress goes on with those of its sources that are kept, and if none of them has a price, with the new ones.
    /// - Parameters:
    ///   - plans: At least one.
    ///   - observes: The minimum time between two requests of the observer.
    package func apply(_ plans: [CurrencyPlan], budget: Duration, observes: Duration = .seconds(3)) {
        precondition(!plans.isEmpty, "there is a first currency")
        let areRunning = feedsRun
        stopFeeds()
        self.budget = budget
        let present = now()
        var registry = SourceRegistry(plans, at: present.boottime)
        registry.inherit(self.registry, at: present)
        let same = registry.entries.map(\.source).filter { new in
            self.registry.source(of: new.market).map { $0.address == new.address } ?? false
        }
        clocks.keep(only: Set(same.map(\.venue.name)))
        self.registry = registry
        let before = tracked
        tracked = plans.enumerated().map { rank, plan in
            let memory = Observer.turn(every: observes, isFirst: rank == 0, of: plans.count)
            guard let known = before.first(where: { $0.currency == plan.currency }) else {
                return TrackedCurrency(plan, memory: memory, since: present.boottime)
            }
            known.change(to: plan, memory: memory)
            return known
        }
        for old in before where tracked(old.currency) == nil {
            dropped[old.currency] = old.tracker.kept
            old.giveUp()
        }
        for new in tracked where !before.contains(where: { $0 === new }) {
            if let last = dropped.removeValue(forKey: new.currency) { _ = new.tracker.restored(last, at: present) }
            if let pause { _ = new.tracker.paused(pause) }
            // Before its first tick: clients may ask for it now.
            for subscriber in subscribers {
                subscriber.receive(new.tracker.state, .change, isFirst: new === first, kept: nil)
            }
        }
        let markets = registry.entries.map(\.source.market)
        let sources = tracked.map { each in
            (each.currency, Set(markets.filter { $0.currency == each.currency }.map(\.venue)))
        }
        tell(.kept(Dictionary(sources) { $1 }))
        if areRunning { startFeeds() }
    }

    package var currencies: [Currency] { tracked.map { $0.currency } }

    /// The current state of the first currency.
    package var state: PriceState { first.tracker.state }

    /// The current state of a currency; `nil` if it is not kept.
    package func state(of currency: Currency) -> PriceState? { tracked(currency)?.tracker.state }

    /// The markets of a currency's sources, in their order; none if it is not kept.
    package func markets(of currency: Currency) -> [Market] { tracked(currency)?.plan.markets ?? [] }

    /// The current state of a currency, and the counts since the start; `nil` if it is not kept.
    package func record(of currency: Currency) -> TickRecord? { tracked(currency)?.record(at: now()) }

    /// The same for the first currency.
    package var firstRecord: TickRecord { first.record(at: now()) }

    /// Continues the cooldowns of an earlier run.
    package func resume(_ cooldowns: [String: KeptCooldown]) { registry.resume(cooldowns, at: now()) }

    /// Restores the price that an earlier run stored. If its currency is not kept, it waits until a reload adds it.
    package func restore(_ cached: CachedPrice) {
        guard let currency = Currency(rawValue: cached.quote.currency) else { return }
        guard let tracked = tracked(currency) else {
            dropped[currency] = cached
            return
        }
        perform(tracked.tracker.restored(cached, at: now()), tracked)
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
        } while !counts(result, requester, tracked)
        // A tick that a pause gave up does not count.
        if case .failure(let failure) = result, failure.isCancelled { return }
        guard tracked.isKept else { return }
        tracked.skippedTicks += tick.skipped
        tracked.lastTick = now().boottime
        tracked.durations.add(begun.duration(to: clock.now))
        // The watchdog follows the first currency.
        if tracked === first {
            report(.ticked(tracked.tracker.state.ticks.number, lateness: tick.lateness, skipped: tick.skipped))
        }
    }

    /// Requests the source whose turn it is, in addition to the ticks: one of the first currency, and one of another. Has no effect on a
    /// currency without a current price: its ticks then need what the limits allow, and request all sources themselves.
    /// - Returns: Whether the prices of the first currency have moved apart.
    @discardableResult
    package func observe() async -> Bool {
        await observe(first)
        if tracked.count > 1 {
            observed = observed % (tracked.count - 1) + 1
            await observe(tracked[observed])
        }
        return first.tracker.belief.isRestless
    }

    private func observe(_ tracked: TrackedCurrency) async {
        guard let others = tracked.others, let price = await look(others, tracked) else { return }
        // A USDT price that does not agree is judged only after the value of USDT was requested.
        if tracked.tracker.needsPegRate(for: price),
            let rate = await look(others.filter(tracked.plan.marketsStatingPeg.contains), tracked)
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
            let deadline = clock.now.advanced(by: budget)
            return try await fetch(
                .observer, tracked.plan, among: markets, mayWake: tracked.tracker.isUnwitnessed,
                deadline: deadline
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
        for each in tracked {
            each.plan.discardConnections(of: source)
            each.last = nil
        }
        guard source == nil || registry.entries.contains(where: { $0.source.name == source }) else { return nil }
        cooldownsChanged = true
        return registry.retry(source, at: now().boottime)
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

    /// Requests a price now, for a client, unless a round began less than a second ago: its result is the client's then.
    /// - Parameter currency: The currency; `nil` for the first one.
    /// - Returns: The state with the new price.
    /// - Throws: Why no source gave one. While the ticks are stopped, nothing is requested.
    package func refresh(_ currency: Currency? = nil) async throws(FetchFailure) -> PriceState {
        guard !isPaused else { throw .paused }
        guard let tracked = tracked(currency ?? first.currency) else { throw .notKept }
        if tracked.shared == nil, let last = tracked.last, last.began.duration(to: clock.now) < Self.shareable {
            if let failure = last.failure { throw failure }
            // A pause may have followed, or an exchange or a peer have given an older price.
            let state = tracked.tracker.state
            let age = state.observedBoottime.map { now().boottime - $0 } ?? .max
            if state.freshness == .fresh, age < Self.shareable.wholeMilliseconds { return state }
        }
        if tracked.plan.derivation == .always, let nearest = base(of: tracked)?.currency {
            // If it fails, the round gives the reason.
            do { _ = try await refresh(nearest) } catch {}
        } else if tracked.plan.derivation == .never, tracked.shared == nil {
            let plan = requestable(by: .client, among: tracked.plan.markets)
            // Fails at once, without a round that a tick could join.
            if plan.order.isEmpty { throw FetchFailure(failures: [], skipped: plan.skipped) }
        }
        return try await join(tracked, .client, deadline: clock.now.advanced(by: budget)).get()
    }

    // MARK: - Records, publications and requests

    /// Records a response. Every response enters the books here.
    /// - Returns: Why it is not a valid price; `nil` if it is one.
    func record(_ prices: [LoadedPrice], _ source: FetchLatestPrice) -> PriceLoadingError? {
        let present = now()
        if let price = prices.first, let time = price.venueClock {
            clocks.record(time, of: source.venue.name, cacheTime: source.venue.cacheTime, at: price.observed ?? present)
            compareClocks(at: present)
        }
        // Prices of other currencies in the same response count there.
        for price in prices where price.market != source.market {
            guard let tracked = tracked(price.market), !registry.isCoolingDown(price.market, at: present.boottime)
            else { continue }
            do throws(PriceLoadingError) {
                try tracked.tracker.record(
                    prices, of: price.market, from: source.venue, pace: source.pace, clocks: clocks, at: present)
            } catch {
                tracked.tracker.lost(price.market)
            }
        }
        do throws(PriceLoadingError) {
            guard let tracked = tracked(source.market) else { return nil }
            try tracked.tracker.record(
                prices, of: source.market, from: source.venue, pace: source.pace, clocks: clocks, at: present)
            if tracked.tracker.isNewlyAhead(source.market, at: present.boottime) {
                report(.timeAhead(source.venue.name))
            }
            return nil
        } catch {
            return error
        }
    }

    /// Compares this machine's clock with the venues', for the history and for the operator.
    private func compareClocks(at present: ObservationTime) {
        let comparison = clocks.comparison(at: present)
        history?.clock.check(comparison, at: present)
        switch comparison {
        case .differs(let difference) where !isClockReported:
            isClockReported = true
            tell(.clockDiffers(difference))
        case .agrees where isClockReported:
            isClockReported = false
            tell(.clockAgrees)
        default: break
        }
    }

    /// How this machine's clock compares with the venues' now, also while none responds.
    package var clockComparison: ClockComparison { clocks.comparison(at: now()) }

    /// A source's time minus this machine's, milliseconds; `nil` if they agree within a minute, or if it is not known.
    package func clockDifference(of venue: String) -> Int64? {
        clocks.difference(of: venue, at: now()).flatMap { abs($0) > VenueClocks.tolerance ? $0 : nil }
    }

    /// Stores and publishes without a suspension, so that no price that a client has seen is lost, and no older state follows a newer one.
    func perform(_ actions: PriceTracker.Actions, _ tracked: TrackedCurrency) {
        let (markets, present) = (tracked.plan.markets, now())
        var events = actions.events
        for failure in actions.rejected {
            let cooldown = registry.reject(
                failure.source, of: markets, failure.error, at: present, jitter: jitter())
            tracked.plan.discardConnections(of: failure.source)
            events.append(
                .sourceFailed(SourceFailure(source: failure.source, error: failure.error, cooldown: cooldown)))
        }
        for doubted in actions.doubted {
            registry.doubt(doubted.source, of: markets, doubted.error, at: present)
            events.append(.sourceFailed(doubted))
        }
        let cooldownsChanged = cooldownsChanged
        self.cooldownsChanged = false
        let isNew = actions.publish?.freshness == .fresh && actions.failure == nil
        if let since = actions.doubtedSince {
            history?.doubt(tracked.currency, since: since, at: present)
        }
        if let publish = actions.publish, let history {
            tracked.tracker.set(
                history.add(
                    publish, isTick: actions.publication == .tick, every: tracked.plan.interval,
                    ofSeveral: markets.count > 1, at: present))
        }
        if actions.publish != nil || cooldownsChanged {
            let state = tracked.tracker.state
            let kept =
                isNew || cooldownsChanged
                ? KeptState(
                    prices: self.tracked.compactMap { $0.tracker.kept }
                        + dropped.values.sorted { $0.quote.currency < $1.quote.currency },
                    cooldowns: registry.cooldowns(at: present))
                : nil
            let isChange = state.freshness != tracked.published
            if isChange { tracked.since = present.boottime }
            tracked.published = state.freshness
            tracked.lastPublication = clock.now
            for subscriber in subscribers {
                subscriber.receive(state, actions.publication, isFirst: tracked === first, kept: kept)
            }
            if isChange, state.freshness == .fresh { startRounds(derivedFrom: tracked.currency) }
        }
        for event in events { tell(event, of: tracked) }
    }

    /// Reports an event to the history and to the operator.
    private func tell(_ event: PriceEvent, of tracked: TrackedCurrency? = nil) {
        history?.episodes.report(event, of: tracked?.currency)
        report(tracked.map { $0 === first ? event : event.named(after: $0.currency) } ?? event)
    }

    /// The sources that may be requested now. A requester that the limits refuse is served in its turn.
    func requestable(
        by requester: Requester, among markets: [Market], atHand: Set<Market> = [], keepsCooldowns: Bool = false,
        mayWake: Bool = false
    ) -> SourceRegistry.Plan {
        let boottime = now().boottime
        registry.looked(at: boottime)
        let plan = registry.plan(
            requester, among: Set(markets), atHand: atHand, keepsCooldowns: keepsCooldowns, mayWake: mayWake,
            at: boottime)
        registry.wait(for: plan.waiting, requester, at: boottime)
        return plan
    }

    /// Counts a request for a price if the limits still allow it. A tick may wait for them.
    func take(_ source: FetchLatestPrice, _ requester: Requester) async -> Bool {
        guard isCurrent(source) else { return false }
        let boottime = now().boottime
        if registry.take(source.market, requester, at: boottime) { return true }
        guard requester == .tick, case let wait = registry.wait(for: source.market, at: boottime), wait > .zero else {
            return false
        }
        do { try await clock.sleep(for: wait) } catch { return false }
        return isCurrent(source) && registry.take(source.market, requester, at: now().boottime)
    }

    /// Whether the sources have not been replaced meanwhile. One with another address is another one.
    func isCurrent(_ source: FetchLatestPrice) -> Bool {
        let known = registry.source(of: source.market)
        return known?.address == source.address && known?.path == source.path
    }

    func received(_ source: FetchLatestPrice, bytes: Int) {
        if isCurrent(source) { registry.received(source.market, bytes: bytes) }
    }

    /// Records the end of a request.
    /// - Returns: The cooldown that it started, if any.
    func ended(_ source: FetchLatestPrice, _ outcome: MarketHealth.Outcome, latency: Duration) -> SourceCooldown? {
        guard isCurrent(source) else { return nil }
        return ended(source.market, outcome, latency: latency)
    }

    /// Records the requests of a fetch that it gave up at its end.
    func gaveUp(_ sources: [FetchLatestPrice]) { for source in sources { registry.gaveUp(source.market) } }

    private func ended(_ market: Market, _ outcome: MarketHealth.Outcome, latency: Duration) -> SourceCooldown? {
        let cooldown = registry.ended(market, outcome, latency: latency, at: now(), jitter: jitter())
        if cooldown?.isBinding == true { cooldownsChanged = true }
        return cooldown
    }

    /// See ``SourceRegistry/grant(_:_:within:at:)``.
    func grant(_ market: Market, _ requester: Requester, within longest: Duration) -> Int64? {
        registry.grant(market, requester, within: longest.wholeMilliseconds, at: now().boottime)
    }

    /// Records that a market's venue refused a request for something other than a price because of its rate limit.
    func limited(_ market: Market, _ error: PriceLoadingError) {
        guard case .rateLimited = error else { return }
        _ = ended(market, .failure(error), latency: .zero)
    }
}
