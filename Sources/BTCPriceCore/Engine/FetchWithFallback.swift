/// A source with the waits that it is granted.
package struct FetchCandidate: Sendable {
    /// Requests the source.
    package let fetch: FetchLatestPrice
    /// The base address of its requests.
    package let address: String
    let patience: PollPlan.Patience
    private let reserve: Duration?

    /// - Parameters:
    ///   - fetch: Requests the source.
    ///   - address: The base address of its requests.
    ///   - timeout: From the request to giving up.
    ///   - hedge: From the request to the request of the next source.
    ///   - reserve: How long all sources other than reserves must be without a price before this one is requested; `nil` if it is
    ///     not a reserve.
    package init(
        fetch: FetchLatestPrice, address: String, timeout: Duration, hedge: Duration, reserve: Duration? = nil
    ) {
        self.fetch = fetch
        self.address = address
        self.patience = .init(timeout: timeout, hedge: hedge)
        self.reserve = reserve
    }

    /// The source's properties.
    package var source: SourceDescription {
        var source = fetch.source(at: address)
        source.reserve = reserve
        return source
    }
}

/// Polls sources until one has a price: any number of sources, hedged, within one budget; or all of them at once.
///
/// ``Sources`` decides which sources may be requested, and ``PollPlan`` when and for how long. This type runs both on a clock and on
/// real loaders, and reports to ``Sources`` how each request ended.
package struct FetchWithFallback: Sendable {
    package typealias Record =
        @Sendable (_ prices: [LoadedPrice], _ source: FetchLatestPrice) async -> PriceLoadingError?

    /// The sources that are requested, shared by all requesters.
    package let sources: Sources
    let candidates: [FetchCandidate]
    /// The sources that push their prices.
    let feeds: [FetchLatestPrice]
    /// The sources that have a stream.
    let streams: [FetchLatestPrice]
    /// The markets of the sources, in their order.
    let markets: [Market]
    /// The markets whose responses state the value of USDT.
    let marketsStatingPeg: Set<Market>
    private let clock: any BoottimeClock

    /// - Parameters:
    ///   - candidates: The sources of one currency, the primary first.
    ///   - sources: The sources of all currencies; the candidates are among them.
    ///   - clock: Measures the waits.
    init(candidates: [FetchCandidate], among sources: Sources, clock: any BoottimeClock) {
        self.candidates = candidates
        self.sources = sources
        self.clock = clock
        feeds = candidates.map(\.fetch).filter { $0.feed != nil }
        streams = candidates.map(\.fetch).filter { $0.stream != nil }
        markets = candidates.map(\.fetch.market)
        marketsStatingPeg = Set(
            candidates.filter { $0.source.companions.contains { $0.pair == Market.pegPair } }.map(\.fetch.market))
    }

    /// - Parameters:
    ///   - requester: Who requests.
    ///   - deadline: The end of the budget. The call returns or throws by then.
    ///   - markets: The sources in question; `nil` for all.
    ///   - quorum: If all sources are wanted, the number that is enough without those in a cooldown; `nil` if one source is enough.
    ///   - record: Records a response. Returns why it is not a valid price; `nil` if it is one.
    /// - Throws: ``FetchFailure`` if no source gave a price, or if the task was cancelled.
    package func execute(
        _ requester: Requester, deadline: ContinuousClock.Instant, among markets: [Market]? = nil, quorum: Int? = nil,
        isolation: isolated (any Actor)? = #isolation, record: @escaping Record
    ) async throws(FetchFailure) -> PollResult {
        let atHand = candidates.map(\.fetch).filter { !$0.needsRequest }.map(\.market)
        var plan = sources.plan(requester, among: Set(markets ?? self.markets), atHand: Set(atHand))
        if let quorum {
            let well = plan.order.filter { !plan.lastResort.contains($0) }
            if well.count >= quorum { plan.order = well }
        }
        guard !plan.order.isEmpty else { throw FetchFailure(failures: [], skipped: plan.skipped) }
        var run = Run(
            fetch: self, requester: requester, plan: plan, deadline: deadline, wantsAll: quorum != nil,
            record: record)
        let outcome = await withTaskGroup(of: Event.self) { group in
            // On the caller's actor, so that a price is recorded without a hop.
            _ = isolation
            return await run.result(of: &group)
        }
        let failures = run.close(outcome)
        switch outcome {
        case .answered(let places, _):
            return PollResult(
                answered: places.map { plan.order[$0] }, failures: failures,
                skipped: run.skipped)
        case .failed: throw FetchFailure(failures: failures, skipped: run.skipped)
        case .cancelled: throw .cancelled
        }
    }

    /// Has the sources use new connections from now on.
    /// - Parameter name: Only this source; `nil` for all.
    func discardConnections(of name: String?) {
        for candidate in candidates where name == nil || candidate.source.name == name {
            candidate.fetch.discardConnection()
        }
    }

    private func candidate(_ market: Market) -> FetchCandidate {
        candidates[markets.firstIndex(of: market) ?? 0]
    }

    /// What a fetch waits for.
    private enum Event: Sendable {
        case loaded(Int, Result<[LoadedPrice], PriceLoadingError>)
        case woke
    }

    /// One execution: the plan, and what is still to be reported to ``Sources``.
    private struct Run {
        let fetch: FetchWithFallback
        let requester: Requester
        let record: Record
        /// The markets by their place in the plan.
        let order: [Market]
        var plan: PollPlan
        var skipped: [Skipped]
        let began: ContinuousClock.Instant
        /// When each source was requested, and the cooldown that its failure started.
        var requested: [Int: Duration] = [:]
        var repeated: Set<Int> = []
        var cooldowns: [Int: SourceCooldown] = [:]

        init(
            fetch: FetchWithFallback, requester: Requester, plan: SourceRegistry.Plan,
            deadline: ContinuousClock.Instant,
            wantsAll: Bool, record: @escaping Record
        ) {
            self.fetch = fetch
            self.requester = requester
            self.record = record
            order = plan.order
            began = fetch.clock.now
            skipped = plan.skipped
            self.plan = PollPlan(
                patience: plan.order.map { fetch.candidate($0).patience }, deadline: began.duration(to: deadline),
                wantsAll: wantsAll)
        }

        /// The time since it began.
        var now: Duration { began.duration(to: fetch.clock.now) }

        mutating func result(of group: inout TaskGroup<Event>) async -> PollPlan.Result {
            let clock = fetch.clock
            var actions = Task.isCancelled ? plan.cancelled() : plan.start(now: now)
            while true {
                while !actions.isEmpty {
                    switch actions.removeFirst() {
                    case .request(let place): actions += await request(place, in: &group)
                    case .wake(let time):
                        let instant = began.advanced(by: time)
                        group.addTask {
                            // Cancelled when the fetch is over: then the event is not used.
                            do { try await clock.sleep(until: instant) } catch {}
                            return .woke
                        }
                    case .finish(let result):
                        group.cancelAll()
                        return result
                    }
                }
                // Before it finishes, the plan always waits for a source or for a timer.
                guard let event = await group.next() else { return .cancelled }
                switch event {
                case _ where Task.isCancelled: actions = plan.cancelled()
                case .woke: actions = plan.timerFired(now: now)
                case .loaded(let place, .failure(.connectionClosed)) where repeated.insert(place).inserted:
                    actions = requestAgain(place, in: &group)
                case .loaded(let place, let result): actions = await loaded(place, result)
                }
            }
        }

        private mutating func request(
            _ place: Int, in group: inout TaskGroup<Event>
        ) async -> [PollPlan.Action] {
            let source = fetch.candidate(order[place]).fetch
            // Another requester may have used up the limit since the plan was made.
            if source.needsRequest {
                var isGranted = fetch.sources.take(order[place], requester)
                if !isGranted, requester == .tick, case let wait = fetch.sources.wait(for: order[place]), wait > .zero {
                    do { try await fetch.clock.sleep(for: wait) } catch {}
                    isGranted = fetch.sources.take(order[place], requester)
                }
                guard isGranted else {
                    skipped.append(Skipped(source: order[place].venue, reason: .limit))
                    return plan.skipped(place, now: now)
                }
                source.begin()
            }
            requested[place] = now
            load(place, source, in: &group)
            return []
        }

        private func load(_ place: Int, _ source: FetchLatestPrice, in group: inout TaskGroup<Event>) {
            group.addTask {
                do throws(PriceLoadingError) {
                    return .loaded(place, .success(try await source.load()))
                } catch {
                    return .loaded(place, .failure(error))
                }
            }
        }

        /// Sends a request once more because its connection was closed. The exchange may have received both, so it counts again; if the
        /// limits do not allow it, the source is skipped.
        private mutating func requestAgain(_ place: Int, in group: inout TaskGroup<Event>) -> [PollPlan.Action] {
            let source = fetch.candidate(order[place]).fetch
            if source.needsRequest {
                guard fetch.sources.take(order[place], requester) else {
                    ended(place, .failure(.connectionClosed))
                    skipped.append(Skipped(source: order[place].venue, reason: .limit))
                    return plan.skipped(place, now: now)
                }
                source.begin()
            }
            load(place, source, in: &group)
            return []
        }

        private mutating func loaded(
            _ place: Int, _ result: Result<[LoadedPrice], PriceLoadingError>
        ) async -> [PollPlan.Action] {
            let now = now
            let error: PriceLoadingError? =
                switch result {
                case .success(let prices): await record(prices, fetch.candidate(order[place]).fetch)
                case .failure(let error): error
                }
            if let error {
                if case .success = result { fetch.candidate(order[place]).fetch.discardConnection() }
                ended(place, .failure(error))
                return plan.failed(place, error, now: now)
            }
            if case .success(let prices) = result, let bytes = prices.first?.bodyBytes {
                fetch.sources.received(order[place], bytes: bytes)
            }
            let patience = fetch.candidate(order[place]).patience.timeout
            // Whether a late response counts is not known before the end.
            if requested[place].map({ now - $0 <= patience }) == true { ended(place, .success) }
            return plan.answered(place, now: now)
        }

        /// Also reports the requests that were given up.
        mutating func close(_ result: PollPlan.Result) -> [SourceFailure] {
            let failures: [(index: Int, error: PriceLoadingError)] =
                switch result {
                case .answered(_, let failures), .failed(let failures): failures
                case .cancelled: []
                }
            if case .answered(let places, _) = result { for place in places { ended(place, .success) } }
            for (place, error) in failures where requested[place] != nil { ended(place, .failure(error)) }
            return failures.map { place, error in
                SourceFailure(
                    source: order[place].venue, error: error, cooldown: cooldowns[place])
            }
        }

        private mutating func ended(_ place: Int, _ outcome: MarketHealth.Outcome) {
            guard let began = requested.removeValue(forKey: place) else { return }
            cooldowns[place] = fetch.sources.ended(order[place], outcome, latency: now - began)
        }
    }
}
