/// Requests the reference rates of one source, once.
package protocol ReferenceRateLoader: Sendable {
    /// The source's name: `ecb`.
    var source: String { get }

    /// Requests the newest rates. Must end promptly when its task is cancelled.
    func load() async throws(PriceLoadingError) -> ReferenceRateTable
}

/// Keeps reference rates over a restart.
package protocol ReferenceRateStore: Sendable {
    /// The rates that were saved; none if they can't be read.
    func load() -> [ReferenceRateTable]

    /// Saves the rates. If that is not possible, a restart requests them again.
    func save(_ tables: [ReferenceRateTable])
}

/// Keeps the reference rates up to date: requests each source about four times a day, and gives its rates to the engine.
package actor RateKeeper {
    /// The time from one request of a source to the next; up to an hour is added at random. Sources publish once a day.
    static var period: Duration { .seconds(6 * 3600) }
    static var spread: Duration { .seconds(3600) }
    /// The least time from a failed request to the next one; doubled up to two hours.
    static var firstRetry: Duration { .seconds(60) }
    static var longestRetry: Duration { .seconds(7200) }
    static var timeout: Duration { .seconds(10) }

    private struct Source {
        let loader: any ReferenceRateLoader
        var due: ContinuousClock.Instant
        var backoff = Backoff(from: firstRetry, to: longestRetry)
        var breaker = CircuitBreaker()
    }

    private var sources: [Source] = []
    /// Counts the changes of ``sources``.
    private var version = 0
    private let engine: PriceEngine
    private let store: any ReferenceRateStore
    private let clock: any BoottimeClock
    private let now: TimeSource
    private let jitter: @Sendable () -> Double
    private let report: @Sendable (PriceEvent) -> Void
    private let background: BackgroundWork

    /// - Parameters:
    ///   - store: Keeps the rates over a restart.
    ///   - background: Pauses with the ticks: then nothing is requested.
    ///   - clock: Measures the waits. It counts suspended time.
    ///   - jitter: Returns a random number from 0 to 1 at each call.
    package init(
        engine: PriceEngine, store: any ReferenceRateStore, background: BackgroundWork, clock: any BoottimeClock,
        now: @escaping TimeSource, jitter: @escaping @Sendable () -> Double = { .random(in: 0...1) },
        report: @escaping @Sendable (PriceEvent) -> Void
    ) {
        self.engine = engine
        self.store = store
        self.clock = clock
        self.now = now
        self.jitter = jitter
        self.background = background
        self.report = report
    }

    /// Changes the sources. The rates that are kept of them are used at once.
    package func change(_ loaders: [any ReferenceRateLoader]) async {
        let kept = loaders.isEmpty ? [] : store.load()
        let present = now().wall
        sources = loaders.map { loader in
            // A time in the future is one of a clock that was wrong.
            let received = kept.first { $0.source == loader.source && $0.received <= present }?.received
            let wait = received.map { Self.period - .milliseconds(present.milliseconds - $0.milliseconds) } ?? .zero
            // A time that the source has named is kept. Another failure may be mended.
            if let known = sources.first(where: { $0.loader.source == loader.source }),
                known.breaker.cooldown?.reason.retryAfter != nil
            {
                return Source(loader: loader, due: known.due, backoff: known.backoff, breaker: known.breaker)
            }
            return Source(loader: loader, due: clock.now.advanced(by: max(.zero, wait)))
        }
        version += 1
        await engine.keepRates(of: loaders.map(\.source))
        _ = await engine.take(kept.filter { table in loaders.contains { $0.source == table.source } })
        await background.wake()
    }

    /// Runs until its task is cancelled.
    package func run() async {
        await background.run(first: { .zero }, work: { await self.requestWhatIsDue() })
    }

    /// Requests what is due.
    /// - Returns: The time until something is due again; `nil` if there is no source.
    private func requestWhatIsDue() async -> Duration? {
        await request(sources.indices.filter { sources[$0].due <= clock.now })
        return sources.map(\.due).min().map { max(.zero, clock.now.duration(to: $0)) }
    }

    /// Requests some sources. The rates are used together, because they are compared with each other.
    private func request(_ indices: [Int]) async {
        let begun = version
        var tables: [ReferenceRateTable] = []
        for index in indices {
            let loader = sources[index].loader
            let result = await withTimeout(Self.timeout, on: clock) { () throws(PriceLoadingError) in
                try await loader.load()
            }
            let isHeld = await engine.rateTables.contains { $0.source == loader.source }
            // After a change, the sources that stay are due again.
            if Task.isCancelled || version != begun { return }
            switch result {
            case .success(let table):
                sources[index].due = clock.now.advanced(by: Self.period + Self.spread * jitter())
                sources[index].backoff.reset()
                if sources[index].breaker.cooldown != nil { report(.ratesRecovered(loader.source)) }
                sources[index].breaker.reset()
                tables.append(table)
            case .failure(let error):
                let present = now()
                if sources[index].breaker.cooldown == nil { report(.ratesFailed(loader.source, error, held: isHeld)) }
                // A refusal lasts longer, and so does the time that a source names.
                let cooldown = sources[index].breaker.open(error, at: present, jitter: jitter())
                let least = Duration.milliseconds(cooldown.until.boottime - present.boottime)
                sources[index].due = clock.now.advanced(by: max(sources[index].backoff.next(), least))
            }
        }
        guard !tables.isEmpty else { return }
        for (table, refused) in zip(tables, await engine.take(tables)) where !refused.isEmpty {
            report(.ratesRefused(table.source, refused))
        }
        store.save(await engine.rateTables)
    }
}
