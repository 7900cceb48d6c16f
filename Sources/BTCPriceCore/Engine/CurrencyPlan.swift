/// How the price of one currency is kept.
package struct CurrencyPlan: Sendable {
    package let currency: Currency
    /// Polls the sources of the currency.
    package let fetch: FetchWithFallback
    /// The interval of its ticks.
    package let interval: Duration
    package let rules: SelectionRules
    /// When its price is derived from another currency's.
    let derivation: DerivationPolicy
    /// How long the price of another exchange supports the shown one, milliseconds; see ``ObservationBook/memory``.
    let memory: Int64
    /// The observations that are already known.
    let book: ObservationBook

    /// What is configured for one currency.
    package struct Outline: Sendable {
        let currency: Currency
        let candidates: [FetchCandidate]
        let interval: Duration
        let rules: SelectionRules
        let derivation: DerivationPolicy

        /// - Parameters:
        ///   - candidates: The sources, the primary first.
        ///   - interval: The interval of the ticks.
        ///   - derivation: When the price is derived from another currency's, which must be among the outlines.
        package init(
            _ currency: Currency, _ candidates: [FetchCandidate], interval: Duration,
            rules: SelectionRules = SelectionRules(), derivation: DerivationPolicy = .never
        ) {
            self.currency = currency
            self.candidates = candidates
            self.interval = interval
            self.rules = rules
            self.derivation = derivation
        }
    }

    /// The plans of all currencies, which share their sources: limits and bans belong to the venue.
    /// - Parameters:
    ///   - outlines: In the order of the currencies.
    ///   - observes: The minimum time between two requests of the observer.
    ///   - now: Reads the clocks that date cooldowns and limits.
    ///   - jitter: Returns a random number from 0 to 1 at each call; it spreads cooldowns.
    ///   - clock: Measures the waits.
    ///   - previous: The sources that were requested before. They keep their health.
    package static func plans(
        _ outlines: [Outline], observes: Duration = .seconds(3), now: @escaping TimeSource,
        jitter: @escaping @Sendable () -> Double = { .random(in: 0...1) }, clock: any BoottimeClock,
        after previous: Sources? = nil
    ) -> [CurrencyPlan] {
        let sources = Sources(
            outlines.flatMap { outline in outline.candidates.map { ($0.source, outline.interval) } }, now: now,
            jitter: jitter, after: previous)
        return outlines.enumerated().map { place, outline in
            CurrencyPlan(
                outline.currency,
                fetch: FetchWithFallback(candidates: outline.candidates, among: sources, clock: clock),
                interval: outline.interval, rules: outline.rules, derivation: outline.derivation,
                memory: Observer.turn(every: observes, isFirst: place == 0, of: outlines.count))
        }
    }

    init(
        _ currency: Currency, fetch: FetchWithFallback, interval: Duration, rules: SelectionRules = SelectionRules(),
        derivation: DerivationPolicy = .never, memory: Int64 = Vote.Bounds.memory, book: ObservationBook? = nil
    ) {
        self.currency = currency
        self.fetch = fetch
        self.interval = interval
        self.rules = rules
        self.derivation = derivation
        self.memory = max(memory, Vote.Bounds.memory)
        self.book = book ?? ObservationBook(currency: currency)
    }

    var tracker: PriceTracker { PriceTracker(interval: interval, rules: rules, memory: memory, book: book) }
}
