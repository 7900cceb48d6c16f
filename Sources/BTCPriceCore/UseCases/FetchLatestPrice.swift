/// A quote that passed ``QuoteCheck``, with what comes along with it.
package struct FetchedPrice: Sendable, Hashable {
    /// The quote.
    package let quote: PriceQuote
    /// When it was observed, on both clocks.
    package let observed: ObservationTime
    /// The mark to hold the source's next answer against; `nil` where the venue gave none that can be trusted.
    package let mark: VenueMark?
    /// How old it was by the venue's own time when it came, milliseconds, not below zero; `nil` if the venue tells none.
    package let age: Int64?
    /// Dollars for one USDT, if the same response told it.
    package let tetherRate: Price?
    /// The least time between two requests that the source's limits allow.
    package let pace: Duration
    /// The sources that were asked before it, and why each gave nothing.
    package var failures: [SourceFailure]

    /// A fetched price of which every part is given.
    package init(
        quote: PriceQuote, observed: ObservationTime, mark: VenueMark?, age: Int64? = nil,
        tetherRate: Price? = nil, pace: Duration = .zero, failures: [SourceFailure] = []
    ) {
        self.quote = quote
        self.observed = observed
        self.mark = mark
        self.age = age
        self.tetherRate = tetherRate
        self.pace = pace
        self.failures = failures
    }
}

/// Why one source gave no price.
package struct SourceFailure: Sendable, Hashable {
    /// The source's name.
    package let source: String
    /// Why.
    package let error: PriceLoadingError
    /// The rest that this failure began, if it began one.
    package let cooldown: SourceCooldown?

    /// - Parameters:
    ///   - source: The source's name.
    ///   - error: Why it gave no price.
    ///   - cooldown: The cooldown that this failure began.
    package init(source: String, error: PriceLoadingError, cooldown: SourceCooldown? = nil) {
        self.source = source
        self.error = error
        self.cooldown = cooldown
    }
}

/// What is known of the sources' earlier answers, by their names.
package struct KnownAnswers: Sendable, Hashable {
    /// The newest mark accepted from each.
    package var marks: [String: VenueMark]
    /// The answer of each that was found to stand still: until it gives another one, it gives no price.
    package var frozen: [String: Price]

    /// - Parameters:
    ///   - marks: The newest mark accepted from each source.
    ///   - frozen: The answers of those that stand still.
    package init(marks: [String: VenueMark] = [:], frozen: [String: Price] = [:]) {
        self.marks = marks
        self.frozen = frozen
    }
}

/// Asks one source for its latest price, dates the answer and judges it.
package struct FetchLatestPrice: Sendable {
    private let loader: any PriceLoader
    private let now: TimeSource
    private let pace: Duration

    /// - Parameters:
    ///   - loader: The source.
    ///   - now: Reads the clocks the quote is dated by.
    package init(loader: any PriceLoader, now: @escaping TimeSource) {
        self.loader = loader
        self.now = now
        pace = RequestLimiter(loader.source.allLimits).pace
    }

    /// What is asked.
    package var source: PriceSource { loader.source }

    /// - Parameters:
    ///   - known: What is known of the sources' earlier answers.
    ///   - clocks: What the venues' clocks say of ours.
    /// - Throws: ``PriceLoadingError/cancelled`` if the task is cancelled, else why the source gave no valid price.
    package func execute(
        after known: KnownAnswers, clocks: VenueClocks = VenueClocks()
    ) async throws(PriceLoadingError) -> FetchedPrice {
        let loaded: LoadedPrice
        do {
            loaded = try await loader.load()
        } catch {
            // Whatever a loader makes of it: once we were cancelled, that is the reason and no failure of the source.
            throw Task.isCancelled ? .cancelled : error
        }
        if Task.isCancelled { throw .cancelled }
        let observed = now()
        let source = loader.source
        if let time = loaded.venueClock { clocks.told(time, by: source.name, at: observed) }
        // Of a price without a time of its own nothing can be told by the time.
        let wall = loaded.mark.time == nil ? observed.wall : clocks.wallTime(at: observed)
        if loaded.mark.time != nil { clocks.saw(loaded.mark, of: source.name) }
        try QuoteCheck.judge(
            loaded, after: known.marks[source.name], at: wall, oldest: clocks.oldest(of: source.name))
        if known.frozen[source.name] == loaded.value { throw .staleData("it stands still at \(loaded.value)") }
        return FetchedPrice(
            quote: PriceQuote(
                value: loaded.value, currency: source.currency, timestamp: observed.wall, source: source.name,
                market: source.market),
            observed: observed, mark: QuoteCheck.mark(of: loaded, acceptedAt: wall),
            age: loaded.mark.time.map { max(0, wall.milliseconds - $0.milliseconds) },
            tetherRate: loaded.tetherRate.flatMap { QuoteCheck.tetherRates.contains($0) ? $0 : nil }, pace: pace)
    }
}
