/// Requests the reference rates of past days from one source.
package protocol RateHistoryLoader: Sendable {
    /// The source's name: `frankfurter`.
    var source: String { get }
    /// The currency of which the rates buy one.
    var base: Currency { get }

    /// The rates of these days. Must end promptly when its task is cancelled.
    func load(
        _ request: RateHistory.Request
    ) async throws(PriceLoadingError) -> [(currency: Currency, day: Int64, value: Price)]
}

/// Keeps the reference rates of past days over a restart.
package protocol RateHistoryStore: Sendable {
    /// The rates that were saved; `nil` if they can't be read.
    func loadHistory() -> RateHistory?

    /// Saves the rates. If that is not possible, a restart requests them again.
    func save(_ history: RateHistory)
}

/// Keeps two years of reference rates of the currencies that have no market, so that they have a past: requests a year at a time, then the
/// new days about four times a day.
package actor RateHistoryKeeper {
    /// The time from the start to the first request: the present rates come first.
    static var firstPeriod: Duration { .seconds(10) }
    /// The minimum time from one request to the next.
    static var pause: Duration { .seconds(60) }
    /// The time from one request for new days to the next.
    static var period: Duration { .seconds(6 * 3600) }
    /// The time from a failed request to the next one; doubled up to ``period``.
    static var firstRetry: Duration { .seconds(60) }
    static var timeout: Duration { .seconds(30) }

    /// What is known; `nil` for nothing.
    package private(set) var history: RateHistory?
    private var loader: (any RateHistoryLoader)?
    private var backoff = Backoff(from: firstRetry, to: period)
    private var hasFailed = false
    /// The currencies that the source has refused, until the next renewal.
    private var refused: Set<Currency> = []
    /// A request that was refused, of which each currency is requested alone: what is left of it, and whether one was answered.
    private var divided: (left: RateHistory.Request, isAnswered: Bool)?
    /// Counts the changes of ``loader``.
    private var version = 0
    private let engine: PriceEngine
    private let store: any RateHistoryStore
    private let background: BackgroundWork
    private let clock: any BoottimeClock
    private let now: TimeSource
    private let report: @Sendable (PriceEvent) -> Void

    /// - Parameter background: Pauses with the ticks.
    package init(
        engine: PriceEngine, store: any RateHistoryStore, background: BackgroundWork, clock: any BoottimeClock,
        now: @escaping TimeSource, report: @escaping @Sendable (PriceEvent) -> Void
    ) {
        self.engine = engine
        self.store = store
        self.background = background
        self.clock = clock
        self.now = now
        self.report = report
        history = store.loadHistory()
    }

    /// Changes the source.
    /// - Parameter loader: `nil` if nothing may be requested.
    package func change(_ loader: (any RateHistoryLoader)?) async {
        self.loader = loader
        (refused, divided) = ([], nil)
        version += 1
        backoff.reset()
        await background.wake()
    }

    /// Runs until its task is cancelled.
    package func run() async {
        await background.run(first: { Self.firstPeriod }, work: { await self.request() })
    }

    /// Requests what is missing, once.
    /// - Returns: The time to the next request; `nil` if nothing may be requested.
    private func request() async -> Duration? {
        let derivations = await engine.derivations
        let wanted = Set(derivations.keys).union(derivations.values)
        guard let loader, !wanted.isEmpty else { return nil }
        let (begun, present) = (version, now().wall)
        let today = RateHistory.day(of: present.wholeSeconds)
        var known = history ?? RateHistory(loader.source, of: loader.base)
        if known.source != loader.source || known.base != loader.base {
            known = RateHistory(loader.source, of: loader.base)
        }
        known.keep(only: wanted, today: today)
        // A time in the future is one of a clock that was wrong.
        let age = known.renewed.map { present.milliseconds - $0.milliseconds }
        let renews = age.map { $0 < 0 || $0 >= Self.period.wholeMilliseconds } ?? true
        if renews, divided == nil { refused = [] }
        let alone = divided.map { RateHistory.Request(currencies: [$0.left.currencies[0]], days: $0.left.days) }
        let asked = alone ?? known.next(for: wanted.subtracting(refused), today: today, renews: renews)
        guard let next = asked else { return Self.period }
        let before = known.currencies
        let result = await withTimeout(Self.timeout, on: clock) { () throws(PriceLoadingError) in
            try await loader.load(next)
        }
        // After a change it is woken.
        if Task.isCancelled || version != begun { return nil }
        switch result {
        case .success(let rates):
            known.add(rates, next, today: today)
            divided?.isAnswered = true
            goOn()
            // A renewal is of what was known.
            let all = before.isEmpty ? wanted.subtracting([loader.base]) : before
            let isOfAll = alone != nil || all.isSubset(of: next.currencies)
            if isOfAll, divided == nil, next.days.upperBound == today { known.renewed = present }
            history = known
            store.save(known)
            backoff.reset()
            if hasFailed { report(.ratesRecovered(loader.source)) }
            hasFailed = false
            return Self.pause
        case .failure(.refused) where next.currencies.count > 1:
            divided = (next, false)
            return Self.pause
        case .failure(.refused)
        where divided.map({ $0.isAnswered || $0.left.currencies.count > 1 }) ?? false
            || before.isDisjoint(with: next.currencies) && !before.isEmpty:
            // It is because of the currency: others are answered.
            let wasDivided = divided != nil
            refused.formUnion(next.currencies)
            goOn()
            if wasDivided, divided == nil, next.days.upperBound == today {
                known.renewed = present
                history = known
                store.save(known)
            }
            return Self.pause
        case .failure(let error):
            // If each one was refused, it is not because of the currencies.
            if case .refused = error { (refused, divided) = ([], nil) }
            if !hasFailed { report(.ratesFailed(loader.source, error, held: true)) }
            hasFailed = true
            return max(backoff.next(), error.retryAfter ?? .zero)
        }
    }

    /// Goes on with the next currency of a request that was divided.
    private func goOn() {
        divided?.left.currencies.removeFirst()
        if divided?.left.currencies.isEmpty == true { divided = nil }
    }
}
