/// No source gave a price.
public struct FetchFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The sources that were asked, in their order, and why each gave nothing.
    public let failures: [SourceFailure]
    /// The caller gave up: nothing is known of any source.
    public let isCancelled: Bool

    /// A fetch in which every source failed.
    public init(failures: [SourceFailure]) {
        self.failures = failures
        self.isCancelled = false
    }

    private init() {
        failures = []
        isCancelled = true
    }

    /// A fetch that the caller gave up.
    public static let cancelled = FetchFailure()

    /// One line: `binance: no answer within 800 ms; coinbase: not reached: connection refused`.
    public var description: String {
        if isCancelled { return "cancelled" }
        if failures.isEmpty { return "there is no source that can be asked" }
        return failures.map { "\($0.source): \($0.error)" }.joined(separator: "; ")
    }
}

/// Fetches the price from the first source that has one: any number of sources, hedged, within one budget.
///
/// The rules are ``HedgedFetch``'s; this runs them on a clock and on real loaders.
public struct FetchWithFallback<C: Clock>: Sendable where C.Duration == Duration {
    /// A source with the waits it is granted.
    public struct Candidate: Sendable {
        fileprivate let fetch: FetchLatestPrice
        fileprivate let patience: HedgedFetch<C.Instant, FetchedPrice>.Patience

        /// - Parameters:
        ///   - fetch: Asks the source.
        ///   - timeout: From asking it to giving it up.
        ///   - hedge: From asking it to asking the next one too.
        public init(fetch: FetchLatestPrice, timeout: Duration, hedge: Duration) {
            self.fetch = fetch
            self.patience = .init(timeout: timeout, hedge: hedge)
        }
    }

    private enum Event: Sendable {
        case finished(Int, Result<FetchedPrice, PriceLoadingError>)
        case woke
    }

    private typealias Machine = HedgedFetch<C.Instant, FetchedPrice>

    private let candidates: [Candidate]
    private let clock: C

    /// - Parameters:
    ///   - candidates: The sources, the primary first.
    ///   - clock: What the waits are measured on.
    public init(candidates: [Candidate], clock: C) {
        self.candidates = candidates
        self.clock = clock
    }

    /// - Parameters:
    ///   - deadline: The end of the budget: by then it has returned or thrown.
    ///   - marks: The newest mark accepted from each source, by its name.
    /// - Returns: The price, and the failures of the sources that go before the one that gave it.
    /// - Throws: ``FetchFailure`` if no source gave a price, or if the task was cancelled.
    public func execute(
        deadline: C.Instant, after marks: [String: VenueMark] = [:]
    ) async throws(FetchFailure) -> FetchedPrice {
        guard !candidates.isEmpty else { throw FetchFailure(failures: []) }
        var machine = Machine(patience: candidates.map(\.patience), deadline: deadline)
        let outcome: Machine.Result = await withTaskGroup(of: Event.self) { group in
            var actions = Task.isCancelled ? machine.cancelled() : machine.start(now: clock.now)
            while true {
                for action in actions {
                    switch action {
                    case .ask(let index):
                        let fetch = candidates[index].fetch
                        group.addTask { .finished(index, await fetch.result(after: marks[fetch.source.name])) }
                    case .wake(let instant):
                        group.addTask { [clock] in
                            // Cancelled when the fetch is over: then nobody looks at the event.
                            do { try await clock.sleep(until: instant, tolerance: nil) } catch {}
                            return .woke
                        }
                    case .finish(let result):
                        group.cancelAll()
                        return result
                    }
                }
                // Before it finishes, the machine always waits for a source or for a timer.
                guard let event = await group.next() else { return .cancelled }
                switch event {
                case _ where Task.isCancelled: actions = machine.cancelled()
                case .woke: actions = machine.timerFired(now: clock.now)
                case .finished(let index, .success(let price)):
                    actions = machine.answered(index, price, now: clock.now)
                case .finished(let index, .failure(let error)):
                    actions = machine.failed(index, error, now: clock.now)
                }
            }
        }
        switch outcome {
        case .answered(_, var price, let failures):
            price.failures = named(failures)
            return price
        case .failed(let failures): throw FetchFailure(failures: named(failures))
        case .cancelled: throw .cancelled
        }
    }

    private func named(_ failures: [(index: Int, error: PriceLoadingError)]) -> [SourceFailure] {
        failures.map { SourceFailure(source: candidates[$0.index].fetch.source.name, error: $0.error) }
    }
}

extension FetchLatestPrice {
    fileprivate func result(after last: VenueMark?) async -> Result<FetchedPrice, PriceLoadingError> {
        do {
            return .success(try await execute(after: last))
        } catch {
            return .failure(error)
        }
    }
}
