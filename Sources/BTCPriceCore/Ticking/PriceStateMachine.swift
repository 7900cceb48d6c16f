/// Takes what a fetch brought and decides what the machine is told: a pure value, without a clock and without I/O.
public struct PriceStateMachine: Sendable {
    /// What to do, in this order: what a client sees is kept before it is shown.
    public struct Actions: Sendable, Hashable {
        /// To keep, before anything is published.
        public var save: CachedPrice?
        /// To show from now on to whoever asks.
        public var publish: PriceState?
        /// Whether ``publish`` also goes to the watchers: they get one reply a tick.
        public var isTick = false
        /// To tell the operator.
        public var events: [PriceEvent] = []
    }

    private var freshFor: Int64
    private var failedTicks: Int64 = 0
    /// The ticks that failed since the start.
    private(set) var failedInAll: Int64 = 0
    private var failing: Set<String> = []
    /// Why the price can't be kept; `nil` while it can.
    private(set) var saveFailure: PriceStoreError?
    private var isPaused = false

    /// What is told of the price now.
    public private(set) var state = PriceState.empty
    /// The newest mark accepted from each source.
    public private(set) var marks: [String: VenueMark] = [:]
    /// The last valid price, as it is to be kept.
    public private(set) var kept: CachedPrice?

    /// - Parameter interval: The ticks' interval: a price is fresh for two of them.
    public init(interval: Duration) {
        freshFor = 2 * interval.wholeMilliseconds
    }

    /// The ticks have another interval from now on.
    public mutating func changed(interval: Duration) {
        freshFor = 2 * interval.wholeMilliseconds
    }

    /// The price kept by an earlier run: shown as stale, until a tick has a newer one.
    public mutating func restored(_ cached: CachedPrice) -> Actions {
        marks = cached.marks
        kept = cached
        state = PriceState(
            tick: 0, freshness: .stale, quote: cached.quote, observedBoottime: cached.observedBoottime,
            confirmation: .single, failure: "no tick since the start")
        return Actions(publish: state)
    }

    /// A fetch has ended.
    /// - Parameters:
    ///   - result: What it brought.
    ///   - isTick: Whether a tick made it; otherwise a client asked for it in between.
    public mutating func fetched(_ result: Result<FetchedPrice, FetchFailure>, isTick: Bool) -> Actions {
        // A fetch that was given up is no tick and no failure: as if it had never begun.
        if case .failure(let failure) = result, failure.isCancelled { return Actions() }
        var actions = Actions()
        if isTick {
            state.tick += 1
            actions.isTick = true
            isPaused = false
        }
        switch result {
        case .success(let price): succeeded(price, &actions)
        case .failure(let failure): failed(failure, isTick: isTick, &actions)
        }
        actions.publish = state
        return actions
    }

    /// The observer's question to a source has ended. It shows no price: that is the tick's.
    public mutating func observed(_ result: Result<FetchedPrice, FetchFailure>) -> Actions {
        var actions = Actions()
        switch result {
        case .success(let price):
            note(price, &actions)
        case .failure(let failure): note(failure.failures, &actions)
        }
        return actions
    }

    /// The ticks stand still.
    public mutating func paused() -> Actions {
        isPaused = true
        if state.quote != nil { state.freshness = .stale }
        state.freshUntil = nil
        state.failure = PriceState.pausedFailure
        return Actions(publish: state, isTick: true)
    }

    /// The ticks begin again: a price that comes before the first of them is a current one.
    public mutating func resumed() -> Actions {
        guard isPaused else { return Actions() }
        isPaused = false
        state.failure = "no tick since the ticks were resumed"
        return Actions(publish: state)
    }

    /// An attempt to keep the price has ended.
    public mutating func saved(_ error: PriceStoreError?) -> [PriceEvent] {
        defer { saveFailure = error }
        if let error { return [.saveFailed(error)] }
        return saveFailure != nil ? [.saveRecovered] : []
    }

    private mutating func succeeded(_ price: FetchedPrice, _ actions: inout Actions) {
        note(price.failures, &actions)
        note(price, &actions)
        if state.freshness != .fresh, !isPaused {
            actions.events.append(.becameFresh(price.quote, failedTicks: failedTicks))
        }
        failedTicks = 0
        state.quote = price.quote
        state.observedBoottime = price.observed.boottime
        state.confirmation = .single
        // While the ticks stand still a price does not stay current, however new it is.
        state.freshness = isPaused ? .stale : .fresh
        state.freshUntil = isPaused ? nil : price.observed.boottime + freshFor
        state.failure = isPaused ? PriceState.pausedFailure : nil
        kept = CachedPrice(quote: price.quote, observedBoottime: price.observed.boottime, marks: marks)
        actions.save = kept
    }

    private mutating func failed(_ failure: FetchFailure, isTick: Bool, _ actions: inout Actions) {
        note(failure.failures, &actions)
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
