/// Keeps the price: polls the sources if the selector needs it, records what they give, and publishes what the selector decides.
///
/// A tick and any number of clients share one round: a caller that comes while one is in progress joins it.
package actor PriceEngine<C: Clock>: TickTarget, CurrencyTickTarget, ObserverTarget where C.Duration == Duration {
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

    /// What is kept of one currency. A class, because it is large and is changed in place.
    private final class Lane {
        let currency: Currency
        var fetch: FetchWithFallback<C>
        var tracker: PriceTracker
        var shared: Shared?
        var skippedTicks: Int64 = 0
        /// When the last tick ended, `CLOCK_BOOTTIME` in milliseconds.
        var lastTick: Int64?
        var durations = DurationHistogram()
        /// When the freshness became what it is, `CLOCK_BOOTTIME` in milliseconds.
        var since: Int64
        var published = Freshness.none
        /// When a state was published last.
        var lastPublication: C.Instant?
        /// Waits to publish what the streams have brought since.
        var change: Task<Void, Never>?
        /// When the streams last had another market requested.
        var lastRequest: C.Instant?

        init(_ plan: CurrencyPlan<C>, since: Int64) {
            currency = plan.currency
            fetch = plan.fetch
            tracker = plan.tracker
            self.since = since
        }
    }

    /// The currencies in their order. The first one is meant if a caller names none.
    private var lanes: [Lane]
    private let clock: C
    private let executor: (any TaskExecutor)?
    private var budget: Duration
    private var subscribers: [any StateSubscriber]
    private let history: PriceHistory?
    private let report: Report
    private var lastID = 0
    private let now: TimeSource
    private var feedsRun = false
    private var streaming = Streaming.never
    private var isPaused = false
    /// The turn of the observer among the currencies after the first.
    private var observed = 0
    /// When the observer last requested the sources that have a stream.
    private var streamsChecked: C.Instant?

    /// - Parameters:
    ///   - plans: The currencies; at least one.
    ///   - clock: Measures the budget.
    ///   - budget: The longest time that a round may take.
    ///   - executor: Where rounds run; `nil` for anywhere.
    ///   - now: Reads the clocks.
    ///   - subscribers: Receive the states. The first one keeps the price.
    ///   - history: Takes in the states before they are published; `nil` for none.
    ///   - report: Reports to the operator.
    package init(
        _ plans: [CurrencyPlan<C>], clock: C, budget: Duration, executor: (any TaskExecutor)? = nil,
        now: @escaping TimeSource, subscribers: [any StateSubscriber], history: PriceHistory? = nil,
        report: @escaping Report
    ) {
        precondition(!plans.isEmpty, "there is a first currency")
        self.clock = clock
        self.budget = budget
        self.executor = executor
        self.now = now
        let since = now().boottime
        lanes = plans.map { Lane($0, since: since) }
        self.subscribers = subscribers
        self.history = history
        self.report = report
    }

    private func place(of currency: Currency) -> Int? { lanes.firstIndex { $0.currency == currency } }

    /// Sends every state from now on to one more subscriber, after the others. It receives the present ones at once.
    package func subscribe(_ subscriber: any StateSubscriber) {
        subscribers.append(subscriber)
        for (place, lane) in lanes.enumerated() {
            subscriber.receive(lane.tracker.state, isTick: false, isFirst: place == 0, kept: nil)
        }
    }

    /// Every round from now on has other currencies, sources and rules. One in progress ends as it began, and its price counts.
    /// - Parameter plans: At least one.
    package func apply(_ plans: [CurrencyPlan<C>], budget: Duration) {
        precondition(!plans.isEmpty, "there is a first currency")
        let areRunning = feedsRun
        stopFeeds()
        self.budget = budget
        var left = lanes
        let known = currencies
        lanes = plans.map { plan in
            guard let index = left.firstIndex(where: { $0.currency == plan.currency }) else {
                return Lane(plan, since: now().boottime)
            }
            let lane = left.remove(at: index)
            lane.fetch = plan.fetch
            lane.tracker.changed(interval: plan.interval, rules: plan.rules, markets: Set(plan.fetch.markets))
            return lane
        }
        for lane in left { giveUp(lane) }
        for (place, lane) in lanes.enumerated() where !known.contains(lane.currency) {
            if isPaused { _ = lane.tracker.paused() }
            // Before its first tick: clients may ask for it now.
            for subscriber in subscribers {
                subscriber.receive(lane.tracker.state, isTick: false, isFirst: place == 0, kept: nil)
            }
        }
        if areRunning { startFeeds() }
        skipTether()
    }

    /// The currency is not kept any more.
    private func giveUp(_ lane: Lane) {
        lane.shared?.task.cancel()
        for waiter in lane.shared?.waiters.values.map(\.self) ?? [] { waiter.resume(returning: .failure(.cancelled)) }
    }

    /// The sources that are requested, those of all currencies.
    package var sources: Sources { lanes[0].fetch.sources }

    /// The currencies in their order.
    package var currencies: [Currency] { lanes.map { $0.currency } }

    /// The present state of the first currency.
    package var state: PriceState { lanes[0].tracker.state }

    /// The present state of a currency; `nil` if it is not kept.
    package func state(of currency: Currency) -> PriceState? { place(of: currency).map { lanes[$0].tracker.state } }

    /// The markets of a currency's sources, in their order; none if it is not kept.
    package func markets(of currency: Currency) -> [Market] {
        place(of: currency).map { lanes[$0].fetch.markets } ?? []
    }

    /// The present state of a currency, and the counts since the start; `nil` if it is not kept.
    package func record(of currency: Currency) -> TickRecord? { place(of: currency).map { record(of: lanes[$0]) } }

    /// The same of the first currency.
    package var firstRecord: TickRecord { record(of: lanes[0]) }

    private func record(of lane: Lane) -> TickRecord {
        let present = now()
        let state = lane.tracker.state.aged(at: present.boottime)
        // One that has grown too old since it was published became stale when its time was over.
        let isAged = state.freshness != lane.tracker.state.freshness
        return TickRecord(
            state: state,
            since: present.wallTime(of: isAged ? lane.tracker.state.freshUntil ?? lane.since : lane.since),
            failed: lane.tracker.failedInAll, skipped: lane.skippedTicks,
            lastTick: lane.lastTick.map(present.wallTime), durations: lane.durations, validated: lane.tracker.validated,
            pegRate: lane.tracker.pegRate, lastPrices: lane.tracker.lastPrices, verdicts: lane.tracker.verdicts,
            ways: lane.tracker.ways,
            streamed: Dictionary(
                lane.fetch.streams.compactMap { source in source.stream?.current.map { (source.market, $0) } },
                uniquingKeysWith: { first, _ in first }))
    }

    /// The number of callers that wait for the round in progress of the first currency, including the tick; 0 if there is none.
    var callersWaiting: Int { lanes[0].shared?.waiters.count ?? 0 }

    /// The markets of the first currency with a valid observation.
    var observedMarkets: Set<Market> { Set(lanes[0].tracker.book.newest.keys) }

    /// Takes over the price that an earlier run kept. Has no effect if its currency is not kept.
    package func restore(_ cached: CachedPrice) {
        guard let currency = Currency(rawValue: cached.quote.currency), let place = place(of: currency) else { return }
        perform(lanes[place].tracker.restored(cached, at: now()), place)
    }

    // MARK: - Ticks, observations and clients

    package func tick(_ tick: Tick<C.Instant>) async {
        await self.tick(tick, of: lanes[0].currency)
    }

    /// One tick of a currency: a round, whose result is kept and shown. Has no effect if it is not kept.
    package func tick(_ tick: Tick<C.Instant>, of currency: Currency) async {
        // The budget counts from when the tick was due. One that comes much too late, after a suspend, has the whole of it.
        let begun = clock.now
        let start = tick.lateness > budget / 2 ? begun : tick.due
        let deadline = start.advanced(by: budget)
        var requester: Requester
        var result: Result<PriceState, FetchFailure>
        repeat {
            guard let place = place(of: currency) else { return }
            requester = lanes[place].shared?.requester ?? .tick
            result = await join(currency, deadline: deadline, isTick: true)
            // Once more if it joined a client's round in which the limits allowed no request: clients leave a part to the ticks.
        } while Self.requestedNone(requester, result)
        // A tick that was given up by a pause is none.
        if case .failure(let failure) = result, failure.isCancelled { return }
        guard let place = place(of: currency) else { return }
        lanes[place].skippedTicks += tick.skipped
        lanes[place].lastTick = now().boottime
        lanes[place].durations.add(begun.duration(to: clock.now))
        // The watchdog follows the first currency.
        if place == 0 {
            report(.ticked(lanes[0].tracker.state.tick, lateness: tick.lateness, skipped: tick.skipped))
        }
    }

    /// Requests the source whose turn it is, beside the ticks: one of the first currency, and one of another; and every 10 s all whose
    /// streams are open. Has no effect on a currency that has no current price: then its ticks need what the limits allow, and
    /// request all sources themselves.
    @discardableResult
    package func observe() async -> Bool {
        if streamsChecked.map({ $0.duration(to: clock.now) >= .seconds(10) }) ?? true {
            streamsChecked = clock.now
            for currency in currencies { await checkStreams(currency) }
        }
        await observe(lanes[0].currency)
        if lanes.count > 1 {
            observed = observed % (lanes.count - 1) + 1
            await observe(lanes[observed].currency)
        }
        return lanes[0].tracker.book.isRestless
    }

    /// The sources of a currency beside the one that is shown; `nil` if it has no current price.
    private func others(_ currency: Currency) -> (lane: Lane, markets: [Market])? {
        guard let place = place(of: currency), lanes[place].tracker.state.freshness == .fresh,
            let quote = lanes[place].tracker.state.quote
        else { return nil }
        return (lanes[place], lanes[place].fetch.markets.filter { $0.venue != quote.supplier })
    }

    /// Streams save requests. One in a while shows whether they are right, and is all that they get of a limit.
    private func checkStreams(_ currency: Currency) async {
        guard let (lane, others) = others(currency) else { return }
        for source in lane.fetch.streams where source.stream?.current != nil {
            guard let price = await look([source.market], currency), others.contains(price) else { continue }
            await takeIn(price, among: others, currency)
        }
    }

    private func observe(_ currency: Currency) async {
        guard let (_, others) = others(currency), let price = await look(others, currency) else { return }
        await takeIn(price, among: others, currency)
    }

    private func takeIn(_ price: Market, among others: [Market], _ currency: Currency) async {
        // A USDT price that does not fit is judged only after the value of USDT was requested.
        if self.place(of: currency).map({ lanes[$0].tracker.needsPegRate(for: price) }) == true,
            let stating = self.place(of: currency).map({ lanes[$0].fetch.marketsStatingPeg }),
            let rate = await look(others.filter(stating.contains), currency)
        {
            takeIn(.success(rate), currency)
        }
        takeIn(.success(price), currency)
    }

    private func takeIn(_ result: Result<Market, FetchFailure>, _ currency: Currency) {
        guard let place = place(of: currency) else { return }
        perform(lanes[place].tracker.observed(result), place)
    }

    /// Requests one of these sources for the observer, within a budget.
    /// - Returns: The market whose price was recorded; `nil` if there is none. Why there is none is taken in.
    private func look(_ markets: [Market], _ currency: Currency) async -> Market? {
        guard let place = place(of: currency) else { return nil }
        let fetch = lanes[place].fetch
        do throws(FetchFailure) {
            return try await fetch.execute(
                .observer, deadline: clock.now.advanced(by: budget), among: markets, record: recorder
            ).answered.first
        } catch {
            if !error.isCancelled { takeIn(.failure(error), currency) }
            return nil
        }
    }

    /// Ends the cooldowns that no exchange has asked for, of one source or of all.
    /// - Returns: The sources whose cooldown was ended, and the rate-limited ones that keep theirs; `nil` if no source has that name.
    package func retry(_ source: String?) -> (retried: [String], kept: [Skipped])? {
        defer { perform(PriceTracker.Actions(), 0) }
        return sources.retry(source)
    }

    /// The ticks stop.
    package func paused() {
        isPaused = true
        stopFeeds()
        for place in lanes.indices { perform(lanes[place].tracker.paused(), place) }
    }

    /// The ticks are about to begin, or to begin again.
    package func resumed() {
        isPaused = false
        startFeeds()
        for place in lanes.indices { perform(lanes[place].tracker.resumed(), place) }
    }

    /// Requests a price now, for a client.
    /// - Parameter currency: The currency; `nil` for the first one.
    /// - Returns: The state with the new price.
    /// - Throws: Why no source gave one.
    package func refresh(_ currency: Currency? = nil) async throws(FetchFailure) -> PriceState {
        guard let place = currency.map(place(of:)) ?? 0 else { throw .cancelled }
        let lane = lanes[place]
        if lane.shared == nil {
            let plan = sources.plan(.client, among: Set(lane.fetch.markets))
            // Known at once, and no round that a tick could join.
            if plan.order.isEmpty { throw FetchFailure(failures: [], skipped: plan.skipped) }
        }
        return try await join(lane.currency, deadline: clock.now.advanced(by: budget), isTick: false).get()
    }

    // MARK: - Feeds

    private var feeds: [FetchLatestPrice] { lanes.flatMap { $0.fetch.feeds } }

    /// Starts the sources that push their prices. A pause stops them, and the end of it starts them again.
    package func startFeeds() {
        guard !feedsRun else { return }
        feedsRun = true
        for source in feeds {
            source.feed?.start { [weak self, executor] in
                Task(executorPreference: executor) { await self?.arrived(source) }
            }
        }
        if streaming.isOpen { startStreams() }
    }

    /// Stops the sources that push their prices.
    package func stopFeeds() {
        feedsRun = false
        for source in feeds { source.feed?.stop() }
        stopStreams()
    }

    /// A source has pushed a price, or has lost it. That is no request: whether the source fails is judged when its price is needed.
    private func arrived(_ source: FetchLatestPrice) async {
        // As an exchange with a cooldown is not requested, its price counts for nothing.
        guard !sources.isCoolingDown(source.market) else { return lost(source.market) }
        do throws(PriceLoadingError) {
            try await source.execute(recorder)
        } catch {
            lost(source.market)
        }
    }

    private func lost(_ market: Market) {
        guard let place = place(of: market) else { return }
        lanes[place].tracker.lost(market)
    }

    // MARK: - Streams

    private var streams: [FetchLatestPrice] { lanes.flatMap { $0.fetch.streams } }

    /// Opens the streams or closes them, and publishes what they bring between the ticks or not.
    package func change(_ streaming: Streaming) {
        let wereOpen = self.streaming.isOpen
        self.streaming = streaming
        guard feedsRun, streaming.isOpen != wereOpen else { return }
        if streaming.isOpen { startStreams() } else { stopStreams() }
    }

    /// The machine was suspended: the connections of the streams are dead, which only a timeout would show.
    package func restartStreams() {
        guard feedsRun, streaming.isOpen else { return }
        stopStreams()
        startStreams()
    }

    private func startStreams() {
        for source in streams {
            source.stream?.start { [weak self, executor] news in
                Task(executorPreference: executor) { await self?.streamed(source, news) }
            }
        }
    }

    private func stopStreams() {
        for source in streams { source.stream?.stop() }
        for lane in lanes { lane.change.take()?.cancel() }
    }

    private func streamed(_ source: FetchLatestPrice, _ news: StreamNews) {
        if case .limited(let error) = news { return sources.limited(source.market, error) }
        guard feedsRun, streaming.isOpen, let place = place(of: source.market), recordStream(source) else { return }
        guard streaming.minimumInterval != nil else { return }
        publishChange(place)
    }

    /// - Returns: Whether it had a price that is valid.
    private func recordStream(_ source: FetchLatestPrice) -> Bool {
        guard !sources.isDisbelieved(source.market), let price = source.stream?.current else { return false }
        return record([price], source) == nil
    }

    /// Publishes the price that the streams have now, at once or as soon as the minimum interval is over.
    private func publishChange(_ place: Int) {
        let lane = lanes[place]
        guard lane.change == nil, lane.shared == nil, let interval = streaming.minimumInterval else { return }
        guard let last = lane.lastPublication, clock.now < last.advanced(by: interval) else {
            return selectChange(place)
        }
        let (due, currency) = (last.advanced(by: interval), lane.currency)
        lane.change = Task(executorPreference: executor) {
            do { try await self.clock.sleep(until: due, tolerance: .zero) } catch { return }
            await self.changeIsDue(currency)
        }
    }

    private func changeIsDue(_ currency: Currency) {
        guard let place = place(of: currency), lanes[place].change != nil else { return }
        lanes[place].change = nil
        // A tick that came in between has published everything.
        publishChange(place)
    }

    /// Selects among what the streams have. The tick alone changes the source, so that the price does not switch between sources with
    /// every message.
    private func selectChange(_ place: Int) {
        let lane = lanes[place]
        guard let quote = lane.tracker.state.quote, lane.tracker.state.freshness == .fresh else { return }
        let counted = lane.fetch.streams.filter { source in
            let isShown = source.market.venue == quote.supplier
            return (isShown || lane.tracker.rules.mode == .median) && recordStream(source)
        }
        guard !counted.isEmpty else { return }
        var round = round(of: lane, lane.fetch)
        round.answered = counted.map(\.market)
        switch lane.tracker.select(round) {
        case .decided(let decision):
            guard let selected = decision.quote, selected.value != quote.value else { return }
            perform(lane.tracker.decided(decision, in: round, isTick: false), place)
        case .needs:
            // Another market must confirm it. Once a second, as the ticks do.
            guard lane.lastRequest.map({ $0.advanced(by: .seconds(1)) <= clock.now }) ?? true else { return }
            lane.lastRequest = clock.now
            let (currency, deadline) = (lane.currency, clock.now.advanced(by: budget))
            Task(executorPreference: executor) { _ = await self.join(currency, deadline: deadline, isTick: false) }
        }
    }

    /// The place of the currency that has a market among its sources.
    private func place(of market: Market) -> Int? { lanes.firstIndex { $0.fetch.markets.contains(market) } }

    // MARK: - Recording and publishing

    /// The door by which every response enters the books.
    private var recorder: FetchLatestPrice.Record {
        { await self.record($0, $1) }
    }

    private func record(_ prices: [LoadedPrice], _ source: FetchLatestPrice) -> PriceLoadingError? {
        let present = now()
        // What came along for other currencies counts there.
        for price in prices where price.market != source.market {
            guard let place = place(of: price.market), !sources.isCoolingDown(price.market) else { continue }
            do throws(PriceLoadingError) {
                try lanes[place].tracker.record(
                    prices, of: price.market, from: source.venue, pace: source.pace, at: present)
            } catch {
                lanes[place].tracker.lost(price.market)
            }
        }
        guard let place = place(of: source.market) else { return nil }
        do {
            try lanes[place].tracker.record(
                prices, of: source.market, from: source.venue, pace: source.pace, at: present)
            return nil
        } catch {
            return error
        }
    }

    /// Has the sources in USDT skipped, or not.
    private func skipTether() {
        let boottime = now().boottime
        sources.skipTether(lanes.contains { $0.tracker.skipsTether(at: boottime) })
    }

    /// Keeping and publishing happen without a suspension in between: what a client has seen is never lost, and a newer state is never
    /// followed by an older one.
    private func perform(_ actions: PriceTracker.Actions, _ place: Int) {
        let markets = lanes[place].fetch.markets
        var events = actions.events
        for failure in actions.rejected {
            let cooldown = sources.reject(failure.source, of: markets, failure.error)
            events.append(
                .sourceFailed(SourceFailure(source: failure.source, error: failure.error, cooldown: cooldown)))
        }
        if let doubted = actions.doubted {
            sources.doubt(doubted.source, of: markets, doubted.error)
            events.append(.sourceFailed(doubted))
        }
        skipTether()
        // Read in any case, or it would be reported again at the next tick.
        let cooldownsChanged = sources.takeCooldownsChanged()
        let isNew = actions.publish?.freshness == .fresh && actions.failure == nil
        if let publish = actions.publish, let history {
            lanes[place].tracker.set(history.add(publish, isTick: actions.isTick, at: now().wall))
        }
        if actions.publish != nil || cooldownsChanged {
            let state = lanes[place].tracker.state
            let kept =
                isNew || cooldownsChanged
                ? KeptState(prices: lanes.compactMap { $0.tracker.kept }, cooldowns: sources.cooldowns) : nil
            if state.freshness != lanes[place].published { lanes[place].since = now().boottime }
            lanes[place].published = state.freshness
            lanes[place].lastPublication = clock.now
            for subscriber in subscribers {
                subscriber.receive(state, isTick: actions.isTick, isFirst: place == 0, kept: kept)
            }
        }
        for event in events { report(place == 0 ? event : event.named(after: lanes[place].currency)) }
    }

    // MARK: - Rounds

    /// Waits for the round in progress, or for a new one. A caller that is cancelled returns at once, and the round continues for the
    /// others.
    private func join(
        _ currency: Currency, deadline: C.Instant, isTick: Bool
    ) async -> Result<PriceState, FetchFailure> {
        guard !Task.isCancelled, let place = place(of: currency) else { return .failure(.cancelled) }
        let id = lanes[place].shared?.id ?? start(place, isTick ? .tick : .client, deadline: deadline)
        lastID += 1
        let waiter = lastID
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                lanes[place].shared?.waiters[waiter] = continuation
                if isTick { lanes[place].shared?.tick = waiter }
            }
        } onCancel: {
            Task { await self.leave(currency, id, waiter) }
        }
    }

    private func start(_ place: Int, _ requester: Requester, deadline: C.Instant) -> Int {
        lastID += 1
        let id = lastID
        let (currency, fetch) = (lanes[place].currency, lanes[place].fetch)
        let task = Task(executorPreference: executor) {
            await self.run(currency, id, requester, deadline: deadline, fetch)
        }
        lanes[place].shared = Shared(id: id, requester: requester, task: task)
        return id
    }

    private func round(of lane: Lane, _ fetch: FetchWithFallback<C>) -> Round {
        // Of the other currencies the first one's ticks are the most frequent.
        let other = lanes.first { $0.currency != lane.currency }?.tracker.shown
        return lane.tracker.round(
            at: now().boottime, markets: fetch.markets, statingPeg: fetch.marketsStatingPeg, beside: other)
    }

    /// One round: selects, polls what the selector needs, and selects again.
    private func run(
        _ currency: Currency, _ id: Int, _ requester: Requester, deadline: C.Instant, _ fetch: FetchWithFallback<C>
    ) async {
        guard let place = place(of: currency) else { return }
        var round = round(of: lanes[place], fetch)
        // The currency may be given up meanwhile, or the order may change.
        while let place = self.place(of: currency) {
            // A tick may have joined a client's round.
            round.isTick = lanes[place].shared?.id == id && lanes[place].shared?.tick != nil
            switch lanes[place].tracker.select(round) {
            case .decided(let decision):
                finish(currency, id, .success((decision, round)))
                return
            case .needs(let need):
                let longest = need.longest.map { min(deadline, clock.now.advanced(by: $0)) } ?? deadline
                let quorum = need.wantsAll ? lanes[place].tracker.rules.quorum : nil
                let result: PollResult
                do throws(FetchFailure) {
                    result = try await fetch.execute(
                        requester, deadline: longest, among: need.markets, quorum: quorum,
                        // The value of USDT comes along with a response only.
                        byStream: need.purpose != .pegRate, record: recorder)
                } catch {
                    if error.isCancelled || need.purpose == .price {
                        finish(currency, id, .failure(error))
                        return
                    }
                    result = PollResult(failures: error.failures, skipped: error.skipped)
                }
                if let place = self.place(of: currency) {
                    lanes[place].tracker.add(result, to: &round, for: need.purpose)
                }
                if clock.now >= deadline { round.end() }
            }
        }
    }

    /// A result is taken in once, however many callers waited for it.
    private func finish(_ currency: Currency, _ id: Int, _ result: Result<(Decision, Round), FetchFailure>) {
        // It may have been given up meanwhile, and another one begun.
        guard let place = place(of: currency), let finished = lanes[place].shared, finished.id == id else { return }
        lanes[place].shared = nil
        let isTick = finished.tick != nil && !Self.requestedNone(finished.requester, result)
        let actions =
            switch result {
            case .success(let (decision, round)):
                lanes[place].tracker.decided(decision, in: round, isTick: isTick)
            case .failure(let failure):
                lanes[place].tracker.failed(failure, isTick: isTick, at: now().boottime)
            }
        perform(actions, place)
        let answer =
            actions.failure.map { Result<PriceState, FetchFailure>.failure($0) }
            ?? .success(lanes[place].tracker.state)
        for waiter in finished.waiters.values { waiter.resume(returning: answer) }
    }

    /// Whether a client's round ended before any source was requested.
    private static func requestedNone<Value>(_ requester: Requester, _ result: Result<Value, FetchFailure>) -> Bool {
        guard requester == .client, case .failure(let failure) = result else { return false }
        return failure.failures.isEmpty && !failure.isCancelled
    }

    private func leave(_ currency: Currency, _ id: Int, _ waiter: Int) {
        guard let place = place(of: currency), lanes[place].shared?.id == id,
            let leaving = lanes[place].shared?.waiters.removeValue(forKey: waiter)
        else { return }
        if lanes[place].shared?.tick == waiter { lanes[place].shared?.tick = nil }
        leaving.resume(returning: .failure(.cancelled))
        guard lanes[place].shared?.waiters.isEmpty == true else { return }
        // A caller that comes next must not join a round that was given up.
        lanes[place].shared?.task.cancel()
        lanes[place].shared = nil
    }
}
