/// Holds the price: runs the fetches, feeds the state machine, and does what it says.
///
/// A tick and any number of clients share one fetch: whoever comes while one is under way joins it.
package actor PriceKeeper<C: Clock>: TickTarget, ObserverTarget where C.Duration == Duration {
    /// Shows a state. `toWatchers` is true once a tick.
    package typealias Publish = @Sendable (_ state: PriceState, _ toWatchers: Bool) -> Void
    /// Tells the operator.
    package typealias Report = @Sendable (PriceEvent) -> Void

    private typealias Waiter = CheckedContinuation<Result<PriceState, FetchFailure>, Never>

    /// A fetch that is under way, and who waits for it.
    private struct Shared {
        let id: Int
        let requester: Requester
        let task: Task<Void, Never>
        var waiters: [Int: Waiter] = [:]
        /// The waiter that is the tick, if it is among them.
        var tick: Int?
    }

    private var fetch: FetchWithFallback<C>
    private let persist: PersistLastValidPrice
    private let clock: C
    private let executor: (any TaskExecutor)?
    private var budget: Duration
    private let publish: Publish
    private let report: Report
    private var machine: PriceStateMachine
    private var shared: Shared?
    private var lastID = 0
    private let now: TimeSource
    private var skippedTicks: Int64 = 0
    /// When the freshness became what it is, `CLOCK_BOOTTIME` in milliseconds.
    private var since: Int64
    private var published = Freshness.none

    /// - Parameters:
    ///   - fetch: Fetches a price.
    ///   - persist: Keeps it.
    ///   - clock: What the budget is measured on.
    ///   - interval: The ticks' interval: a price is fresh for two of them.
    ///   - budget: The longest that a fetch may take.
    ///   - rules: How prices are judged.
    ///   - executor: Where fetches run; `nil` for anywhere.
    ///   - now: Reads the clocks.
    ///   - publish: Shows a state; called in order, on no particular thread, and must not block.
    ///   - report: Tells the operator; as `publish`.
    package init(
        fetch: FetchWithFallback<C>, persist: PersistLastValidPrice, clock: C, interval: Duration, budget: Duration,
        rules: JudgementRules = JudgementRules(), executor: (any TaskExecutor)? = nil, now: @escaping TimeSource,
        publish: @escaping Publish, report: @escaping Report
    ) {
        self.init(
            fetch: fetch, persist: persist, clock: clock, budget: budget,
            machine: PriceStateMachine(interval: interval, rules: rules), executor: executor, now: now,
            publish: publish, report: report)
    }

    /// - Parameter machine: Decides. It may know prices already.
    init(
        fetch: FetchWithFallback<C>, persist: PersistLastValidPrice, clock: C, budget: Duration,
        machine: PriceStateMachine, executor: (any TaskExecutor)? = nil, now: @escaping TimeSource,
        publish: @escaping Publish, report: @escaping Report
    ) {
        self.fetch = fetch
        self.persist = persist
        self.clock = clock
        self.budget = budget
        self.executor = executor
        self.now = now
        self.since = now().boottime
        self.publish = publish
        self.report = report
        self.machine = machine
    }

    /// Has every fetch from now on made in another way. One that is under way ends as it began, and its price counts.
    package func apply(
        _ fetch: FetchWithFallback<C>, interval: Duration, budget: Duration, rules: JudgementRules = JudgementRules()
    ) {
        self.fetch = fetch
        self.budget = budget
        machine.changed(
            interval: interval, rules: rules, sources: Set(fetch.sources.registry.entries.map(\.source.name)))
        fetch.sources.passOverTether(machine.refusesTether(at: now().boottime))
    }

    /// The sources that are asked.
    package var sources: Sources { fetch.sources }

    /// What is told of the price now.
    package var state: PriceState { machine.state }

    /// What the ticks have come to so far.
    package var record: TickRecord {
        let present = now()
        let told = machine.state.told(at: present.boottime)
        // One that has grown too old since it was published became stale when its time was over.
        let isAged = told.freshness != machine.state.freshness
        return TickRecord(
            state: told, since: present.wallTime(of: isAged ? machine.state.freshUntil ?? since : since),
            failed: machine.failedInAll, skipped: skippedTicks, judged: machine.judged, tetherRate: machine.tetherRate,
            lastPrices: machine.lastPrices, saveFailure: machine.saveFailure)
    }

    /// How many wait for the fetch that is under way, the tick among them; 0 where none is.
    var callersWaiting: Int { shared?.waiters.count ?? 0 }

    /// Takes over the price that an earlier run kept.
    package func restore(_ cached: CachedPrice) {
        perform(machine.restored(cached, at: now()))
    }

    /// One tick: fetches, keeps, shows.
    package func tick(_ tick: Tick<C.Instant>) async {
        // The budget counts from when the tick was due. One that comes much too late, after a suspend, has the whole of it.
        let start = tick.lateness > budget / 2 ? clock.now : tick.due
        let deadline = start.advanced(by: budget)
        var requester: Requester
        var result: Result<PriceState, FetchFailure>
        repeat {
            requester = shared?.requester ?? .tick
            result = await join(deadline: deadline, isTick: true)
            // Once more where it joined a client's fetch that the limits let nobody be asked for: they leave the ticks more.
        } while Self.askedNobody(requester, result)
        // A tick that was given up by a pause is none.
        if case .failure(let failure) = result, failure.isCancelled { return }
        skippedTicks += tick.skipped
        report(.ticked(machine.state.tick, lateness: tick.lateness, skipped: tick.skipped))
    }

    /// Has the observer's source asked, within a budget. Without effect if there is none to ask, or if the ticks have no current price:
    /// then they need what the limits allow, and ask everybody themselves.
    package func observe() async {
        guard let quote = machine.state.quote, machine.state.freshness == .fresh else { return }
        guard let price = await look(excluding: [quote.source]) else { return }
        // A USDT price that does not fit is judged only after a source was asked what a USDT is worth.
        if machine.judgement.needsTetherRate(forObserved: price),
            let rate = await look(excluding: fetch.sources.withoutTetherRate.union([quote.source]))
        {
            perform(machine.observed(.success(rate)))
        }
        perform(machine.observed(.success(price)))
    }

    /// Asks one source for the observer, within a budget.
    /// - Returns: Its price, not yet taken in; `nil` if none came. Why none came is taken in.
    private func look(excluding excluded: Set<String>) async -> FetchedPrice? {
        do throws(FetchFailure) {
            return try await fetch.execute(
                .observer, deadline: clock.now.advanced(by: budget), after: machine.known, excluding: excluded)
        } catch {
            if !error.isCancelled { perform(machine.observed(.failure(error))) }
            return nil
        }
    }

    /// Forgets the rests that no exchange has asked for, of one source or of all.
    /// - Returns: The sources whose rest is over now, and those that an exchange has told to stay away; `nil` if none is named so.
    package func retry(_ source: String?) -> (retried: [String], kept: [Skipped])? {
        defer { perform(PriceStateMachine.Actions()) }
        return fetch.sources.retry(source)
    }

    /// The ticks stand still.
    package func paused() {
        perform(machine.paused())
    }

    /// The ticks are about to begin again.
    package func resumed() {
        perform(machine.resumed())
    }

    /// Fetches now, for a client.
    /// - Returns: The state with the new price in it.
    /// - Throws: Why no source gave one.
    package func refresh() async throws(FetchFailure) -> PriceState {
        if shared == nil {
            let plan = fetch.sources.plan(.client)
            // Known at once, and no fetch that a tick could join.
            if plan.order.isEmpty { throw FetchFailure(failures: [], skipped: plan.skipped) }
        }
        return try await join(deadline: clock.now.advanced(by: budget), isTick: false).get()
    }

    /// Saving and publishing happen without a suspension in between: what a client has seen is never lost, and a newer
    /// state is never followed by an older one.
    private func perform(_ actions: PriceStateMachine.Actions) {
        var events = actions.events
        for failure in actions.distrusted {
            let cooldown = fetch.sources.distrust(failure.source, failure.error)
            events.append(
                .sourceFailed(SourceFailure(source: failure.source, error: failure.error, cooldown: cooldown)))
        }
        if let odd = actions.odd {
            fetch.sources.doubt(odd.source, odd.error)
            events.append(.sourceFailed(odd))
        }
        fetch.sources.passOverTether(machine.refusesTether(at: now().boottime))
        // Asked in any case, or it would be asked again at the next tick.
        let cooldownsChanged = fetch.sources.takeCooldownsChanged()
        if actions.save != nil || cooldownsChanged {
            do {
                try persist.execute(machine.kept, cooldowns: fetch.sources.cooldowns)
                events += machine.saved(nil)
            } catch {
                events += machine.saved(error)
            }
        }
        if let state = actions.publish {
            if state.freshness != published { since = now().boottime }
            published = state.freshness
            publish(state, actions.isTick)
        }
        for event in events { report(event) }
    }

    /// Waits for the fetch that is under way, or for a new one. A caller that is cancelled returns at once, and the fetch goes
    /// on for the others.
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
        let gather = GatherEvidence(fetch: fetch, rules: machine.rules)
        let task = Task(executorPreference: executor) { [known = machine.known, judgement = machine.judgement] in
            let result: Result<PriceEvidence, FetchFailure>
            do throws(FetchFailure) {
                result = .success(
                    try await gather.execute(requester, deadline: deadline, after: known, judgement: judgement))
            } catch {
                result = .failure(error)
            }
            await self.finish(id, result)
        }
        shared = Shared(id: id, requester: requester, task: task)
        return id
    }

    /// One answer is taken in once, however many waited for it.
    private func finish(_ id: Int, _ result: Result<PriceEvidence, FetchFailure>) {
        // It may have been given up meanwhile, and another one begun.
        guard let finished = shared, finished.id == id else { return }
        shared = nil
        let isTick = finished.tick != nil && !Self.askedNobody(finished.requester, result)
        let actions = machine.fetched(result, isTick: isTick, at: now().boottime)
        perform(actions)
        let told = actions.failure.map { Result<PriceState, FetchFailure>.failure($0) } ?? .success(machine.state)
        for waiter in finished.waiters.values { waiter.resume(returning: told) }
    }

    /// Whether a client's fetch ended before any source was asked.
    private static func askedNobody<Value>(_ requester: Requester, _ result: Result<Value, FetchFailure>) -> Bool {
        guard requester == .client, case .failure(let failure) = result else { return false }
        return failure.failures.isEmpty && !failure.isCancelled
    }

    private func leave(_ id: Int, _ waiter: Int) {
        guard shared?.id == id, let leaving = shared?.waiters.removeValue(forKey: waiter) else { return }
        if shared?.tick == waiter { shared?.tick = nil }
        leaving.resume(returning: .failure(.cancelled))
        guard shared?.waiters.isEmpty == true else { return }
        // Whoever comes next must not join a fetch that was given up.
        shared?.task.cancel()
        shared = nil
    }
}
