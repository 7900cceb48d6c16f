/// Holds the price: runs the fetches, feeds the state machine, and does what it says.
///
/// A tick and any number of clients share one fetch: whoever comes while one is under way joins it.
public actor PriceKeeper<C: Clock>: TickTarget where C.Duration == Duration {
    /// Shows a state. `toWatchers` is true once a tick.
    public typealias Publish = @Sendable (_ state: PriceState, _ toWatchers: Bool) -> Void
    /// Tells the operator.
    public typealias Report = @Sendable (PriceEvent) -> Void

    private struct Shared {
        let id: Int
        let task: Task<Result<FetchedPrice, FetchFailure>, Never>
        var waiting: Int
    }

    private let fetch: FetchWithFallback<C>
    private let persist: PersistLastValidPrice
    private let clock: C
    private let budget: Duration
    private let publish: Publish
    private let report: Report
    private var machine: PriceStateMachine
    private var shared: Shared?
    private var fetches = 0

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
    var callersWaiting: Int { shared?.waiting ?? 0 }

    /// Takes over the price that an earlier run kept.
    public func restore(_ cached: CachedPrice) {
        perform(machine.restored(cached))
    }

    /// One tick: fetches, keeps, shows.
    public func tick(_ tick: Tick<C.Instant>) async {
        let result = await sharedFetch(deadline: tick.start.advanced(by: budget))
        perform(machine.fetched(result, isTick: true))
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
        let result = await sharedFetch(deadline: clock.now.advanced(by: budget))
        perform(machine.fetched(result, isTick: false))
        _ = try result.get()
        return machine.state
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

    private func sharedFetch(deadline: C.Instant) async -> Result<FetchedPrice, FetchFailure> {
        if Task.isCancelled { return .failure(.cancelled) }
        let id: Int
        let task: Task<Result<FetchedPrice, FetchFailure>, Never>
        if var joined = shared {
            joined.waiting += 1
            shared = joined
            (id, task) = (joined.id, joined.task)
        } else {
            fetches += 1
            id = fetches
            task = Task { [fetch, marks = machine.marks] in
                do throws(FetchFailure) {
                    return .success(try await fetch.execute(deadline: deadline, after: marks))
                } catch {
                    return .failure(error)
                }
            }
            shared = Shared(id: id, task: task, waiting: 1)
        }
        let result = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            // The fetch goes on for the others that wait for it.
            Task { await self.leave(id) }
        }
        // The first to come back clears it; by then another fetch may already be under way.
        if shared?.id == id { shared = nil }
        return Task.isCancelled ? .failure(.cancelled) : result
    }

    private func leave(_ id: Int) {
        guard var left = shared, left.id == id else { return }
        left.waiting -= 1
        shared = left
        guard left.waiting == 0 else { return }
        left.task.cancel()
        // Whoever comes next must not join a fetch that was given up.
        shared = nil
    }
}
