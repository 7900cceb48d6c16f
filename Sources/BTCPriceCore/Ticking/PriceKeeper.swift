/// Holds the price: runs the fetches, feeds the state machine, and does what it says.
///
/// A tick and any number of clients share one fetch: whoever comes while one is under way joins it.
public actor PriceKeeper<C: Clock>: TickTarget where C.Duration == Duration {
    /// Shows a state. `toWatchers` is true once a tick.
    public typealias Publish = @Sendable (_ state: PriceState, _ toWatchers: Bool) -> Void
    /// Tells the operator.
    public typealias Report = @Sendable (PriceEvent) -> Void

    private typealias Waiter = CheckedContinuation<Result<PriceState, FetchFailure>, Never>

    /// A fetch that is under way, and who waits for it.
    private struct Shared {
        let id: Int
        let task: Task<Void, Never>
        var waiters: [Int: Waiter] = [:]
        /// The waiter that is the tick, if it is among them.
        var tick: Int?
    }

    private let fetch: FetchWithFallback<C>
    private let persist: PersistLastValidPrice
    private let clock: C
    private let budget: Duration
    private let publish: Publish
    private let report: Report
    private var machine: PriceStateMachine
    private var shared: Shared?
    private var lastID = 0

    /// - Parameters:
    ///   - fetch: Fetches a price.
    ///   - persist: Keeps it.
    ///   - clock: What the budget is measured on.
    ///   - interval: The ticks' interval: a price is fresh for two of them.
    ///   - budget: The longest that a fetch may take.
    ///   - publish: Shows a state; called in order, on no particular thread, and must not block.
    ///   - report: Tells the operator; as `publish`.
    public init(
        fetch: FetchWithFallback<C>, persist: PersistLastValidPrice, clock: C, interval: Duration, budget: Duration,
        publish: @escaping Publish, report: @escaping Report
    ) {
        self.fetch = fetch
        self.persist = persist
        self.clock = clock
        self.budget = budget
        self.publish = publish
        self.report = report
        self.machine = PriceStateMachine(interval: interval)
    }

    /// What is told of the price now.
    public var state: PriceState { machine.state }

    /// How many wait for the fetch that is under way, the tick among them; 0 where none is.
    var callersWaiting: Int { shared?.waiters.count ?? 0 }

    /// Takes over the price that an earlier run kept.
    public func restore(_ cached: CachedPrice) {
        perform(machine.restored(cached))
    }

    /// One tick: fetches, keeps, shows.
    public func tick(_ tick: Tick<C.Instant>) async {
        // The budget counts from when the tick was due. One that comes much too late, after a suspend, has the whole of it.
        let start = tick.lateness > budget / 2 ? clock.now : tick.due
        let result = await join(deadline: start.advanced(by: budget), isTick: true)
        // A tick that was given up by a pause is none.
        if case .failure(let failure) = result, failure.isCancelled { return }
        report(.ticked(machine.state.tick, lateness: tick.lateness, skipped: tick.skipped))
    }

    /// The ticks stand still.
    public func paused() {
        perform(machine.paused())
    }

    /// Fetches now, for a client.
    /// - Returns: The state with the new price in it.
    /// - Throws: Why no source gave one.
    public func refresh() async throws(FetchFailure) -> PriceState {
        try await join(deadline: clock.now.advanced(by: budget), isTick: false).get()
    }

    /// Saving and publishing happen without a suspension in between: what a client has seen is never lost, and a newer
    /// state is never followed by an older one.
    private func perform(_ actions: PriceStateMachine.Actions) {
        var events = actions.events
        if let price = actions.save {
            do {
                try persist.execute(price)
                events += machine.saved(nil)
            } catch {
                events += machine.saved(error)
            }
        }
        if let state = actions.publish { publish(state, actions.isTick) }
        for event in events { report(event) }
    }

    /// Waits for the fetch that is under way, or for a new one. A caller that is cancelled returns at once, and the fetch goes
    /// on for the others.
    private func join(deadline: C.Instant, isTick: Bool) async -> Result<PriceState, FetchFailure> {
        if Task.isCancelled { return .failure(.cancelled) }
        let id = shared?.id ?? start(deadline: deadline)
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

    private func start(deadline: C.Instant) -> Int {
        lastID += 1
        let id = lastID
        let task = Task { [fetch, marks = machine.marks] in
            let result: Result<FetchedPrice, FetchFailure>
            do throws(FetchFailure) {
                result = .success(try await fetch.execute(deadline: deadline, after: marks))
            } catch {
                result = .failure(error)
            }
            finish(id, result)
        }
        shared = Shared(id: id, task: task)
        return id
    }

    /// One answer is taken in once, however many waited for it.
    private func finish(_ id: Int, _ result: Result<FetchedPrice, FetchFailure>) {
        // It may have been given up meanwhile, and another one begun.
        guard let finished = shared, finished.id == id else { return }
        shared = nil
        perform(machine.fetched(result, isTick: finished.tick != nil))
        let state = machine.state
        for waiter in finished.waiters.values { waiter.resume(returning: result.map { _ in state }) }
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
