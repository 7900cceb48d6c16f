/// No source gave a price.
package struct FetchFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The sources that were asked, in their order, and why each gave nothing.
    package let failures: [SourceFailure]
    /// The sources that were not asked, and why.
    let skipped: [Skipped]
    /// The caller gave up: nothing is known of any source.
    package let isCancelled: Bool

    /// A fetch in which every source failed or was passed over.
    package init(failures: [SourceFailure], skipped: [Skipped] = []) {
        self.failures = failures
        self.skipped = skipped
        self.isCancelled = false
    }

    private init() {
        failures = []
        skipped = []
        isCancelled = true
    }

    /// A fetch that the caller gave up.
    package static let cancelled = FetchFailure()

    /// One line: `binance: no answer within 800 ms; coinbase: not reached: connection refused`.
    package var description: String {
        if isCancelled { return "cancelled" }
        let reasons = failures.map { "\($0.source): \($0.error)" } + skipped.map(\.description)
        return reasons.isEmpty ? "there is no source that can be asked" : reasons.joined(separator: "; ")
    }
}

typealias HedgedMachine = HedgedFetch<FetchedPrice>

/// What a fetch waits for.
private enum FetchEvent: Sendable {
    case finished(Int, Result<FetchedPrice, PriceLoadingError>)
    case woke
}

/// A source with the waits it is granted.
package struct FetchCandidate: Sendable {
    /// Asks the source.
    package let fetch: FetchLatestPrice
    fileprivate let address: String
    let patience: HedgedMachine.Patience

    /// - Parameters:
    ///   - fetch: Asks the source.
    ///   - address: The base address it is asked at.
    ///   - timeout: From asking it to giving it up.
    ///   - hedge: From asking it to asking the next one too.
    package init(fetch: FetchLatestPrice, address: String, timeout: Duration, hedge: Duration) {
        self.fetch = fetch
        self.address = address
        self.patience = .init(timeout: timeout, hedge: hedge)
    }
}

/// Fetches the price from the first source that has one: any number of sources, hedged, within one budget.
///
/// ``Sources`` decides which sources are requested, ``HedgedFetch`` in which order and for how long. This runs both on a clock and
/// on real loaders, and reports to ``Sources`` how each request ended.
package struct FetchWithFallback<C: Clock>: Sendable where C.Duration == Duration {
    /// The sources that are asked, shared by all who ask.
    package let sources: Sources
    let candidates: [FetchCandidate]
    let clock: C

    /// - Parameters:
    ///   - candidates: The sources, the primary first.
    ///   - interval: The ticks' interval.
    ///   - now: Reads the clocks that rests and limits are dated by.
    ///   - jitter: From 0 to 1, another one at each call: by how much rests are spread.
    ///   - clock: What the waits are measured on.
    ///   - previous: The sources that were asked before: they keep their health.
    package init(
        candidates: [FetchCandidate], interval: Duration, now: @escaping TimeSource,
        jitter: @escaping @Sendable () -> Double = { .random(in: 0...1) }, clock: C, after previous: Sources? = nil
    ) {
        self.candidates = candidates
        self.clock = clock
        sources = Sources(
            candidates.map { ($0.fetch.source, $0.address) }, interval: interval, now: now, jitter: jitter,
            after: previous)
    }

    /// - Parameters:
    ///   - requester: Who asks.
    ///   - deadline: The end of the budget: by then it has returned or thrown.
    ///   - known: What is known of the sources' earlier answers.
    ///   - excluded: Sources that are not asked this time, by their names.
    /// - Returns: The price, and the failures of the sources that go before the one that gave it.
    /// - Throws: ``FetchFailure`` if no source gave a price, or if the task was cancelled.
    package func execute(
        _ requester: Requester, deadline: C.Instant, after known: KnownAnswers = KnownAnswers(),
        excluding excluded: Set<String> = []
    ) async throws(FetchFailure) -> FetchedPrice {
        let plan = sources.plan(requester, excluding: excluded)
        guard !plan.order.isEmpty else { throw FetchFailure(failures: [], skipped: plan.skipped) }
        var run = Run(fetch: self, requester: requester, plan: plan, deadline: deadline)
        let outcome = await withTaskGroup(of: FetchEvent.self) { group in
            await run.result(of: &group, after: known)
        }
        let failures = run.close(outcome)
        switch outcome {
        case .answered(_, var price, _):
            price.failures = failures
            return price
        case .failed: throw FetchFailure(failures: failures, skipped: run.skipped)
        case .cancelled: throw .cancelled
        }
    }

    /// One execution: the machine, and what is still to be reported to ``Sources``.
    private struct Run {
        let fetch: FetchWithFallback
        let requester: Requester
        let order: [Int]
        var machine: HedgedMachine
        var skipped: [Skipped]
        let began: C.Instant
        /// When each was asked, and the rest that its failure began.
        var asked: [Int: Duration] = [:]
        var cooldowns: [Int: SourceCooldown] = [:]

        init(fetch: FetchWithFallback, requester: Requester, plan: SourceRegistry.Plan, deadline: C.Instant) {
            self.fetch = fetch
            self.requester = requester
            order = plan.order
            began = fetch.clock.now
            skipped = plan.skipped
            machine = HedgedMachine(
                patience: plan.order.map { fetch.candidates[$0].patience }, deadline: began.duration(to: deadline))
        }

        /// Since it began.
        var now: Duration { began.duration(to: fetch.clock.now) }

        mutating func result(of group: inout TaskGroup<FetchEvent>, after known: KnownAnswers) async
            -> HedgedMachine.Result
        {
            let clock = fetch.clock
            var actions = Task.isCancelled ? machine.cancelled() : machine.start(now: now)
            while true {
                while !actions.isEmpty {
                    switch actions.removeFirst() {
                    case .ask(let place): actions += ask(place, in: &group, after: known)
                    case .wake(let time):
                        let instant = began.advanced(by: time)
                        group.addTask {
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
                case .woke: actions = machine.timerFired(now: now)
                case .finished(let place, let result): actions = finished(place, result)
                }
            }
        }

        private mutating func ask(
            _ place: Int, in group: inout TaskGroup<FetchEvent>, after known: KnownAnswers
        ) -> [HedgedMachine.Action] {
            let fetch = fetch.candidates[order[place]].fetch
            // Somebody else may have used up the limit since the plan was made.
            guard self.fetch.sources.take(order[place], requester) else {
                skipped.append(Skipped(source: fetch.source.name, reason: .limit))
                return machine.skipped(place, now: now)
            }
            asked[place] = now
            let clocks = self.fetch.sources.clocks
            group.addTask { .finished(place, await fetch.result(after: known, clocks: clocks)) }
            return []
        }

        private mutating func finished(
            _ place: Int, _ result: Result<FetchedPrice, PriceLoadingError>
        ) -> [HedgedMachine.Action] {
            let now = now
            switch result {
            case .success(let price):
                let patience = fetch.candidates[order[place]].patience.timeout
                // Of one that comes when its time is over nothing is known until it is taken or not.
                if asked[place].map({ now - $0 <= patience }) == true { ended(place, .success) }
                return machine.answered(place, price, now: now)
            case .failure(let error):
                ended(place, .failure(error))
                return machine.failed(place, error, now: now)
            }
        }

        /// Reports those that were given up too.
        mutating func close(_ result: HedgedMachine.Result) -> [SourceFailure] {
            let failures: [(index: Int, error: PriceLoadingError)] =
                switch result {
                case .answered(_, _, let failures), .failed(let failures): failures
                case .cancelled: []
                }
            if case .answered(let place, _, _) = result { ended(place, .success) }
            for (place, error) in failures where asked[place] != nil { ended(place, .failure(error)) }
            return failures.map { place, error in
                SourceFailure(
                    source: fetch.candidates[order[place]].fetch.source.name, error: error, cooldown: cooldowns[place])
            }
        }

        private mutating func ended(_ place: Int, _ outcome: SourceHealth.Outcome) {
            guard let begun = asked.removeValue(forKey: place) else { return }
            cooldowns[place] = fetch.sources.ended(
                order[place], outcome, latency: now - begun)
        }
    }
}

extension FetchLatestPrice {
    func result(after known: KnownAnswers, clocks: VenueClocks) async -> Result<FetchedPrice, PriceLoadingError> {
        do {
            return .success(try await execute(after: known, clocks: clocks))
        } catch {
            return .failure(error)
        }
    }
}
