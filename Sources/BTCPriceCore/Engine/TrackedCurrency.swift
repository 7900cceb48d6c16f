/// The engine's data for one currency. A class, because it is large and is changed in place. It belongs to the engine's actor.
final class TrackedCurrency {
    /// A round in progress, and its callers.
    struct SharedRound {
        let began: ContinuousClock.Instant
        let requester: Requester
        let task: RoundTask
        /// How many of its callers are ticks. After a pause, the next tick may come before the last one has left.
        var ticks = 0

        var isTick: Bool { ticks > 0 }
    }

    let currency: Currency
    var plan: CurrencyPlan
    var tracker: PriceTracker
    private var lastShared: SharedRound?
    /// The last round that ended: when it began, and why it had no price.
    var last: (began: ContinuousClock.Instant, failure: FetchFailure?)?
    /// Whether the configuration still contains it. If not, a round that was in progress has no effect.
    var isKept = true
    var skippedTicks: Int64 = 0
    /// When the last tick ended.
    var lastTick: BootTime?
    var durations = DurationHistogram()
    /// When the freshness last changed.
    var since: BootTime
    var published = Freshness.none
    /// When a state was published last.
    var lastPublication: ContinuousClock.Instant?
    /// Waits to publish the changes of the streams since ``lastPublication``.
    var change: Task<Void, Never>?
    /// The newest prices of the streams that have come during the round in progress.
    var waiting: [Market: (price: LoadedPrice, source: FetchLatestPrice)] = [:]
    /// When a round last began because of a stream's price.
    var lastRequest: ContinuousClock.Instant?
    /// When the stream of each market last brought a price.
    var streamed: [Market: BootTime] = [:]

    /// - Parameter memory: See ``SelectionRules/memory``.
    init(_ plan: CurrencyPlan, memory: Int64, since: BootTime) {
        currency = plan.currency
        self.plan = plan
        tracker = PriceTracker(
            currency, interval: plan.interval, rules: plan.rules, memory: memory, belief: plan.belief)
        self.since = since
        change(to: plan, memory: memory)
    }

    /// - Parameter memory: See ``SelectionRules/memory``.
    func change(to plan: CurrencyPlan, memory: Int64) {
        self.plan = plan
        last = nil
        tracker.changed(interval: plan.interval, rules: plan.rules, memory: memory, addresses: plan.addresses)
    }

    func record(at present: ObservationTime) -> TickRecord {
        let state = tracker.state.aged(at: present.boottime)
        // A state that has grown too old since it was published became stale when its time was over.
        let isAged = state.freshness != tracker.state.freshness
        return TickRecord(
            state: state, since: present.wallTime(of: isAged ? tracker.state.ticks.freshUntil ?? since : since),
            failed: tracker.failedInAll, skipped: skippedTicks, lastTick: lastTick.map(present.wallTime),
            durations: durations, validated: tracker.validated, pegRate: tracker.pegRate,
            lastPrices: tracker.lastPrices, verdicts: tracker.verdicts, claims: tracker.claims,
            ways: ways(at: present.boottime), quotes: tracker.book.quotes)
    }

    /// How the newest price of each market arrived. A response may have come since its stream's last price.
    private func ways(at boottime: BootTime) -> [Market: PriceWay] {
        var ways = tracker.ways
        for (market, at) in streamed where ways[market] != nil && boottime - at <= Vote.Bounds.moment {
            ways[market] = .stream
        }
        return ways
    }

    /// Forgets the streams, which are closed.
    func stopStreams() {
        (streamed, waiting) = ([:], [:])
        change.take()?.cancel()
    }

    /// The round in progress. One that was given up is none: the next caller must not join it.
    var shared: SharedRound? {
        get { lastShared?.task.isOver == false ? lastShared : nil }
        set { lastShared = newValue }
    }

    /// The markets other than the shown one; `nil` if there is no current price.
    var others: [Market]? {
        let state = tracker.state
        guard state.freshness == .fresh, state.derivation == nil, let quote = state.quote else { return nil }
        return plan.markets.filter { $0.venue != quote.supplier }
    }

    /// Ends its round in progress, because the currency is no longer kept.
    func giveUp() {
        isKept = false
        change?.cancel()
        shared?.task.giveUp()
    }
}

typealias RoundTask = SharedTask<Result<PriceState, FetchFailure>>

/// The current state, and the counts since the start.
package struct TickRecord: Sendable {
    /// The current state. Its `tick` counts the finished ticks, including the failed ones.
    package let state: PriceState
    /// When its freshness began.
    package let since: Timestamp
    /// The number of ticks that ended without a price.
    package let failed: Int64
    /// The number of ticks that did not begin in time.
    package let skipped: Int64
    /// When the last tick ended; `nil` before the first.
    package let lastTick: Timestamp?
    package let durations: DurationHistogram
    package let validated: ValidatedTicks
    /// The value of USDT; `nil` before it was measured.
    package let pegRate: PegRate?
    /// The last price that each source gave, by its name.
    package let lastPrices: [String: MarketObservation]
    package let verdicts: [Market: MarketVerdict]
    package let claims: [Market: MarketClaim]
    package let ways: [Market: PriceWay]
    /// The last quotes of each market, as far as its responses have them.
    package let quotes: [Market: LoadedQuotes]
}

/// What other exchanges said about the prices of the ticks since the start.
package struct ValidatedTicks: Sendable, Hashable {
    /// Shown, and another exchange agreed.
    package var confirmed: Int64 = 0
    /// Shown as ``Confirmation/unconfirmed``.
    package var unconfirmed: Int64 = 0
    /// Not shown: contradicted, or not confirmed yet.
    package var withheld: Int64 = 0

    package init() {}
}
