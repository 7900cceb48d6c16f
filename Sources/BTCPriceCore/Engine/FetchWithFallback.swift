/// One fetch: polls sources until one has a price, hedged and within one budget; or all of them at once.
///
/// ``PollPlan`` decides when each source is requested and for how long. This type runs the plan on a clock and on the sources, and returns
/// what happens step by step. Whether a source may be requested, and whether a response is a valid price, the caller decides between
/// two steps.
struct FetchWithFallback: Sendable {
    enum Step: Sendable {
        /// It is the turn of this source: call ``request(_:in:)``, or ``skip(_:_:)`` if it must not be requested.
        case turn(Int)
        /// A source has responded: call ``accept(_:)`` or ``fail(_:_:)``.
        case response(Int, [LoadedPrice])
        /// A request has failed: call ``fail(_:_:)``.
        case failure(Int, PriceLoadingError)
        case woke
        case finished(PollPlan.Result)
    }

    /// The sources in their order. Everywhere else in this type, a source is its index here.
    let sources: [FetchLatestPrice]
    /// The sources that were not requested, and why.
    private(set) var skipped: [Skipped]
    /// The cooldowns that failures in this fetch have started.
    var cooldowns: [Int: SourceCooldown] = [:]

    private let clock: any BoottimeClock
    private let began: ContinuousClock.Instant
    private var plan: PollPlan
    private var actions: [PollPlan.Action] = []
    /// When each source was requested, until ``end(_:)``.
    private var requested: [Int: Duration] = [:]
    private var repeated: Set<Int> = []

    /// - Parameters:
    ///   - sources: In the order of the requests.
    ///   - skipped: The sources that are not requested, and why.
    ///   - deadline: The end of the budget. The fetch finishes by then.
    ///   - wantsAll: Whether all sources are requested at once.
    init(
        _ sources: [FetchLatestPrice], skipped: [Skipped], clock: any BoottimeClock,
        deadline: ContinuousClock.Instant, wantsAll: Bool
    ) {
        self.sources = sources
        self.skipped = skipped
        self.clock = clock
        began = clock.now
        plan = PollPlan(
            patience: sources.map(\.patience), deadline: began.duration(to: deadline), wantsAll: wantsAll)
        actions = plan.advance(now: .zero)
    }

    /// The time since it began.
    private var now: Duration { began.duration(to: clock.now) }

    /// Waits for the next step.
    mutating func next(in group: inout TaskGroup<Step>) async -> Step {
        if Task.isCancelled, case let cancelled = plan.cancelled(), !cancelled.isEmpty { actions = cancelled }
        while true {
            while !actions.isEmpty {
                switch actions.removeFirst() {
                case .request(let index): return .turn(index)
                case .wake(let time):
                    let (clock, instant) = (clock, began.advanced(by: time))
                    group.addTask {
                        // Cancelled when the fetch is over: then the step is not used.
                        do { try await clock.sleep(until: instant) } catch {}
                        return .woke
                    }
                case .finish(let result):
                    group.cancelAll()
                    return .finished(result)
                }
            }
            // Before it finishes, the plan always waits for a source or for a timer.
            guard let step = await group.next() else { return .finished(.cancelled) }
            switch step {
            case _ where Task.isCancelled: actions = plan.cancelled()
            case .woke: actions = plan.advance(now: now)
            // A request whose connection was closed is sent once more. The exchange may have received both, so it counts again.
            case .failure(let index, .connectionClosed) where repeated.insert(index).inserted: return .turn(index)
            default: return step
            }
        }
    }

    mutating func request(_ index: Int, in group: inout TaskGroup<Step>) {
        let source = sources[index]
        if source.needsRequest { source.begin() }
        if requested[index] == nil { requested[index] = now }
        group.addTask {
            do throws(PriceLoadingError) {
                return .response(index, try await source.load())
            } catch {
                return .failure(index, error)
            }
        }
    }

    /// Goes on without a source that must not be requested.
    mutating func skip(_ index: Int, _ reason: Skipped.Reason) {
        skipped.append(Skipped(source: sources[index].venue.name, reason: reason))
        actions += plan.skipped(index, now: now)
    }

    /// Records a valid price.
    /// - Returns: Whether it came within the source's time. If not, it is known only at the end of the fetch whether it counts.
    mutating func accept(_ index: Int) -> Bool {
        let now = now
        actions += plan.answered(index, now: now)
        return requested[index].map { now - $0 <= sources[index].patience.timeout } == true
    }

    mutating func fail(_ index: Int, _ error: PriceLoadingError) { actions += plan.failed(index, error, now: now) }

    /// The sources whose requests have not ended.
    var pending: [FetchLatestPrice] { requested.keys.map { sources[$0] } }

    /// Ends a request once, for the record of the source's health.
    /// - Returns: The time since the request; `nil` if it has ended, or was never made.
    mutating func end(_ index: Int) -> Duration? { requested.removeValue(forKey: index).map { now - $0 } }
}
