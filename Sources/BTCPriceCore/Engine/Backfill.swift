import Synchronization

/// Fills gaps in the history with candles from the configured exchanges: at the start, and after the daemon has seen no price for a
/// while. Ticks have priority: while no currency has a current price, it waits for one.
package actor Backfill: StateSubscriber {
    /// A currency, and the loaders of its candles.
    package struct Lane: Sendable {
        package let currency: Currency
        /// In the order of the configured sources.
        package let loaders: [any CandleLoader]

        package init(_ currency: Currency, _ loaders: [any CandleLoader]) {
            self.currency = currency
            self.loaders = loaders
        }
    }

    /// The time from the start to the first search for gaps. The first ticks have the connections to themselves.
    static var firstPeriod: Duration { .seconds(3) }
    /// How long ago a candle must have ended by this machine's clock to be requested, seconds: the clock may be ahead of the exchange's, which
    /// may need a moment to complete its last candle.
    package static let margin = VenueClocks.tolerance / 1000 + 30
    /// The time from a search at once to the next one: then the minutes just before it can be requested, too.
    static var secondPeriod: Duration { .seconds(margin + 60) }
    /// The time from one search for gaps to the next.
    static var period: Duration { .seconds(900) }
    /// The time from a search in which a request failed to the next one; doubled up to ``period``.
    static var firstRetry: Duration { .seconds(30) }
    /// The minimum time from one request to the next.
    static var pause: Duration { .seconds(1) }
    /// The minimum time from one request for older hours to the next.
    static var olderPause: Duration { .seconds(60) }
    /// The longest wait for a response.
    static var timeout: Duration { .seconds(10) }
    /// The longest wait for a venue's limit; shorter if a client waits.
    static var longestWait: Duration { .seconds(60) }
    static var shortestWait: Duration { .seconds(10) }
    /// The minimum time between two requests for spans of which too little is known: a currency with few ticks has only such minutes.
    static var completion: Duration { .seconds(3600) }
    /// The longest duration of one call of a client.
    static var longestCall: Duration { .seconds(40) }
    /// How many requests one call of a client may cause.
    static var requestsOfCall: Int { 2 }
    /// The calls of one user: eight at once, then one in three seconds.
    static var callsOfUser: RequestLimit { RequestLimit(30, per: .seconds(60)) }

    private var lanes: [Lane]
    private var plans: [Currency: BackfillPlan] = [:]
    /// When the spans of which too little is known were requested last.
    private var completed: [Currency: [Candle.Step: BootTime]] = [:]
    /// When the recent spans are searched for gaps again; `nil` for at once.
    private var nextFill: BootTime?
    /// The currencies whose last request of candles failed, until the next search.
    private var failing: Set<Currency> = []
    /// The older hours of each currency, as far as they were looked at.
    private var older: [Currency: OlderHours] = [:]
    /// The day in which ``older`` was begun, Unix seconds.
    private var olderDay: Int64?
    /// Counts the changes of ``lanes``.
    private var version = 0
    private let engine: PriceEngine
    private let history: PriceHistory
    private let archive: any CandleArchive
    private let background: BackgroundWork
    private let clock: any BoottimeClock
    private let now: TimeSource
    private let report: @Sendable (News) -> Void
    /// The time from a search in which a request failed to the next one.
    private var backoff = Backoff(from: firstRetry, to: period)
    /// The codes of the currencies that have no current price. The first one of each ends the wait.
    private let awaited = Mutex(Set<String>())
    /// Whether the recent spans are searched now: at the start, after a pause, and when a currency has a price again.
    private let searchesAtOnce = Mutex(true)
    /// Markets whose candles were refused, or can't be had before a time that the exchange has named. Their prices are still requested.
    private var breakers: [Market: CircuitBreaker] = [:]
    /// What was wrong with the last response of a market's candles.
    private var problems: [Market: String] = [:]
    /// The users that have caused requests lately.
    private var users: [UInt32: RequestLimiter] = [:]

    /// What it reports to the operator.
    package enum News: Sendable, Hashable {
        case filled(Filled)
        /// A response with candles that are not valid. The others are used.
        case unused(Int, Market)
        case failed(Market, PriceLoadingError)
    }

    private struct OlderHours {
        /// The start of the oldest hour that was looked at, Unix seconds.
        var start: Int64
        var candles = 0
        var venues: [String] = []
    }

    package struct Filled: Sendable, Hashable {
        package let currency: Currency
        package let step: Candle.Step
        package let candles: Int
        package let venues: [String]
    }

    /// - Parameters:
    ///   - lanes: The currencies, until ``change(_:)`` has others.
    ///   - engine: Provides the limits of the sources, and the price.
    ///   - history: Receives the minutes of the last day.
    ///   - archive: Provides the known candles, and stores the new ones.
    ///   - background: Pauses with the ticks.
    package init(
        _ lanes: [Lane] = [], engine: PriceEngine, history: PriceHistory, archive: any CandleArchive,
        background: BackgroundWork, clock: any BoottimeClock, now: @escaping TimeSource,
        report: @escaping @Sendable (News) -> Void = { _ in }
    ) {
        self.lanes = lanes
        self.engine = engine
        self.history = history
        self.archive = archive
        self.background = background
        self.clock = clock
        self.now = now
        self.report = report
    }

    /// Why gaps can't be filled, in one line; `nil` while they can.
    package var failure: String? {
        let lines = problems.map { "\($0.key): \($0.value)" }.sorted()
        return lines.isEmpty ? nil : lines.joined(separator: "; ")
    }

    package func change(_ lanes: [Lane]) async {
        self.lanes = lanes
        plans = [:]
        older = [:]
        nextFill = nil
        problems = [:]
        version += 1
        backoff.reset()
        retry()
        await background.wake()
    }

    /// Has markets requested again that have refused candles.
    package func retry() {
        breakers = breakers.filter { $0.value.cooldown?.reason.category != .refused }
    }

    /// Runs until its task is cancelled.
    package func run() async {
        await background.run(
            first: {
                self.searchesAtOnce.withLock { $0 = true }
                return Self.firstPeriod
            }, work: { await self.search() })
    }

    package nonisolated func receive(_ state: PriceState, _: Publication, isFirst: Bool, kept: KeptState?) {
        guard state.freshness == .fresh, awaited.withLock({ $0.remove(state.currency) }) != nil else { return }
        searchesAtOnce.withLock { $0 = true }
        Task { await background.wake() }
    }

    /// Searches for gaps and fills them.
    /// - Returns: The time to the next search; `nil` for when a currency has a current price.
    private func search() async -> Duration? {
        let currencies = lanes.map(\.currency)
        let (begun, boottime) = (version, now().boottime)
        let isAtOnce = searchesAtOnce.withLock { atOnce in
            defer { atOnce = false }
            return atOnce
        }
        if isAtOnce { nextFill = nil }
        // Before the time is known, it is not known what is missing.
        guard history.clock.isSettled else { return Self.firstPeriod }
        awaited.withLock { $0 = Set(currencies.map(\.rawValue)) }
        var isCurrent = false
        for currency in currencies where await engine.state(of: currency)?.freshness == .fresh {
            awaited.withLock { _ = $0.remove(currency.rawValue) }
            isCurrent = true
        }
        guard isCurrent else {
            nextFill = nil
            return nil
        }
        var older: Duration?
        // A history that can't be read or written is reported by the archive.
        do throws(HistoryError) {
            if nextFill.map({ $0 <= boottime }) ?? true {
                let pause = backoff.next()
                nextFill = boottime + pause.wholeMilliseconds
                let isComplete = try await fill()
                if isComplete { backoff.reset() }
                // A change wants a search at once.
                if version == begun {
                    let period = isAtOnce ? Self.secondPeriod : Self.period
                    nextFill = now().boottime + (isComplete ? period : pause).wholeMilliseconds
                }
            }
            older = try await fillOlder()
        } catch {}
        let wait = Duration.milliseconds(max(0, (nextFill ?? boottime) - now().boottime))
        return min(wait, older ?? wait)
    }

    /// What became of minutes that a client wants.
    package struct Fetched: Sendable, Hashable {
        /// Why a minute could not be stored, in one line, by its start in Unix seconds.
        package var failures: [Int64: String] = [:]
        /// After what time the minutes may be requested that have not been, milliseconds; `nil` if there are none.
        package var wait: Int64?

        package init() {}

        /// None of the minutes that contain some moments could be stored.
        package static func failed(_ seconds: [Int64], _ reason: String) -> Fetched {
            var fetched = Fetched()
            for second in seconds { fetched.failures[Candle.Step.minute.start(of: second)] = reason }
            return fetched
        }
    }

    /// Requests the minutes that contain some moments, because a client wants them, and stores them: the earliest one, and all that the same
    /// response can have.
    /// - Parameters:
    ///   - seconds: The moments, Unix seconds.
    ///   - user: The client's user ID.
    package func fetch(_ currency: Currency, at seconds: [Int64], for user: UInt32) async -> Fetched {
        guard !lanes.isEmpty else { return .failed(seconds, "history.backfill is false") }
        let lane = lanes.first { $0.currency == currency }
        guard let lane, !lane.loaders.isEmpty else {
            return .failed(seconds, "no configured exchange has candles in \(currency)")
        }
        let end = BackfillPlan.range(of: .minute, 0, at: now().wall.wholeSeconds).upperBound
        let reaches = lane.loaders.map { $0.reach(.minute, before: end) }
        let farthest = reaches.min() ?? end
        var fetched = Fetched()
        var wanted: [Int64] = []
        for start in Set(seconds.map(Candle.Step.minute.start)).sorted() {
            if start >= end {
                fetched.failures[start] = "its minute is not over, or ended less than \(Self.margin) s ago"
            } else if start < farthest {
                fetched.failures[start] = "the exchanges with candles in \(currency) have only their newest ones"
            } else {
                wanted.append(start)
            }
        }
        guard let first = wanted.first else { return fetched }
        let wait = wait(of: user)
        guard wait == 0 else {
            fetched.wait = wait
            return fetched
        }
        take(user)
        let deadline = clock.now.advanced(by: Self.longestCall)
        var (requested, asked, stored) = ([String](), Set(wanted), Set<Int64>())
        for index in lane.loaders.indices where reaches[index] <= first && requested.count < Self.requestsOfCall {
            let loader = lane.loaders[index]
            let patience = min(Self.shortestWait, clock.now.duration(to: deadline))
            guard await isGranted(loader.market, .client, within: patience) else { continue }
            let left = wanted.filter { asked.contains($0) && !stored.contains($0) }
            let page = left.prefix { $0 < left[0] + Int64(loader.page) * Candle.Step.minute.seconds }
            let request = BackfillPlan.Request(
                loader: index, step: .minute, range: page[0]..<page[page.count - 1] + Candle.Step.minute.seconds)
            requested.append(loader.market.venue)
            asked = stored.union(page)
            let candles = await load(loader, request, .client)?.filter { asked.contains($0.start) } ?? []
            do throws(HistoryError) {
                if !candles.isEmpty { try await archive.insert(candles, of: currency) }
            } catch {
                for start in page { fetched.failures[start] = error.description }
                return fetched
            }
            stored.formUnion(candles.lazy.map(\.start))
            if stored == asked { break }
        }
        let reason =
            requested.isEmpty
            ? "no exchange may be requested now" : "no exchange has it: \(requested.joined(separator: ", "))"
        for start in asked.subtracting(stored) { fetched.failures[start] = reason }
        if asked.count < wanted.count { fetched.wait = self.wait(of: user) }
        return fetched
    }

    /// The time after which a user may cause a request, milliseconds; 0 if that is now.
    private func wait(of user: UInt32) -> Int64 {
        let boottime = now().boottime
        return max(0, (users[user] ?? RequestLimiter([Self.callsOfUser])).opens(for: .tick, at: boottime) - boottime)
    }

    /// Counts a call of a user.
    private func take(_ user: UInt32) {
        let boottime = now().boottime
        // A limiter whose burst is unused is like a new one.
        if users.count > 1000 { users = users.filter { !$0.value.isUnused(at: boottime) } }
        users[user, default: RequestLimiter([Self.callsOfUser])].take(.tick, at: boottime)
    }

    /// Requests the missing candles.
    /// - Returns: Whether that was possible: no loader has failed, and all prices are current.
    func fill() async throws(HistoryError) -> Bool {
        let begun = version
        failing = []
        for lane in lanes where !lane.loaders.isEmpty {
            plans[lane.currency]?.begin()
            // What is still wrong is found again.
            for loader in lane.loaders where breakers[loader.market]?.state(at: now().boottime) != .open {
                problems[loader.market] = nil
            }
            for (step, count) in BackfillPlan.wanted {
                if try await !fill(lane, step, count) { failing.insert(lane.currency) }
                if Task.isCancelled || version != begun { return false }
            }
        }
        return failing.isEmpty
    }

    /// - Returns: Whether that was possible.
    private func fill(_ lane: Lane, _ step: Candle.Step, _ wantedCount: Int64) async throws(HistoryError) -> Bool {
        var failed: Set<Int> = []
        var (count, venues) = (0, [String]())
        let present = now().boottime
        let completes =
            completed[lane.currency]?[step].map { present - $0 >= Self.completion.wholeMilliseconds } ?? true
        while let answer = try await request(
            lane, step, in: BackfillPlan.range(of: step, wantedCount, at: now().wall.wholeSeconds),
            completes: completes, &failed)
        {
            count += answer.candles
            if !venues.contains(answer.venue) { venues.append(answer.venue) }
            do { try await clock.sleep(for: Self.pause) } catch { break }
        }
        if completes, failed.isEmpty { completed[lane.currency, default: [:]][step] = present }
        if count > 0 {
            report(.filled(Filled(currency: lane.currency, step: step, candles: count, venues: venues)))
        }
        if step == .minute {
            // Also if nothing was missing: a clock that was wrong may have emptied the day.
            let day = BackfillPlan.range(of: .minute, wantedCount, at: now().wall.wholeSeconds)
            history.restore(
                try await archive.candles(of: lane.currency, .minute, in: day, limit: Int(wantedCount)),
                of: lane.currency)
        }
        return failed.isEmpty
    }

    /// Requests the first missing candles of a span, and stores them.
    /// - Parameters:
    ///   - completes: Whether candles of which too little is known count as missing.
    ///   - failed: The loaders that are not to be used. One that fails is added; all are, if the price is not current.
    /// - Returns: `nil` if nothing is missing that can be had now.
    private func request(
        _ lane: Lane, _ step: Candle.Step, in wanted: Range<Int64>, completes: Bool, _ failed: inout Set<Int>
    ) async throws(HistoryError) -> (candles: Int, venue: String)? {
        let begun = version
        while !Task.isCancelled {
            guard await engine.state(of: lane.currency)?.freshness == .fresh else {
                failed.formUnion(lane.loaders.indices)
                return nil
            }
            let known = try await archive.candles(
                of: lane.currency, step, in: wanted, limit: Int((wanted.upperBound - wanted.lowerBound) / step.seconds))
            let plan = plans[lane.currency] ?? BackfillPlan(lane.loaders)
            let newest = BackfillPlan.range(of: step, 0, at: now().wall.wholeSeconds).upperBound
            guard version == begun,
                let request = plan.next(
                    step,
                    known: Set(known.lazy.filter { !completes || !$0.needsCompletion(step) }.map(\.start)),
                    wanted: wanted, before: newest, failed: failed)
            else { return nil }
            let loader = lane.loaders[request.loader]
            guard await isGranted(loader.market, .candles, within: Self.longestWait),
                let candles = await load(loader, request, .candles)
            else {
                failed.insert(request.loader)
                continue
            }
            try await archive.backfill(candles, of: lane.currency, step)
            guard version == begun else { return nil }
            plans[lane.currency, default: plan].answered(request, delivered: candles.lazy.map(\.start))
            return (candles.count, loader.market.venue)
        }
        return nil
    }

    /// Requests hours that are older than those of ``BackfillPlan/wanted``, from the newest to the oldest: at most one request.
    /// - Returns: The time to the next one; `nil` if there is none before the next search for gaps.
    func fillOlder() async throws(HistoryError) -> Duration? {
        let begun = version
        let hours = BackfillPlan.range(of: .hour, BackfillPlan.allHours, at: now().wall.wholeSeconds)
        // What was known may have been lost with a damaged file: once a day, all is looked at again.
        if case let day = Candle.Step.day.start(of: hours.upperBound), day != olderDay {
            (olderDay, older) = (day, [:])
        }
        let latest = hours.upperBound - BackfillPlan.olderHours * Candle.Step.hour.seconds
        func start(_ lane: Lane) -> Int64 { min(older[lane.currency]?.start ?? latest, latest) }
        while !Task.isCancelled {
            let lane = lanes.filter { !$0.loaders.isEmpty && !failing.contains($0.currency) }.max {
                start($0) < start($1)
            }
            guard let lane, start(lane) > hours.lowerBound else { break }
            let span =
                max(hours.lowerBound, start(lane) - BackfillPlan.olderHours * Candle.Step.hour.seconds)..<start(lane)
            var failed: Set<Int> = []
            let answer = try await request(lane, .hour, in: span, completes: true, &failed)
            guard version == begun else { break }
            var known = older[lane.currency] ?? OlderHours(start: span.upperBound)
            if let answer {
                known.candles += answer.candles
                if !known.venues.contains(answer.venue) { known.venues.append(answer.venue) }
                older[lane.currency] = known
                return Self.olderPause
            }
            guard failed.isEmpty else {
                failing.insert(lane.currency)
                continue
            }
            known.start = span.lowerBound
            older[lane.currency] = known
            if known.start == hours.lowerBound, known.candles > 0 {
                report(
                    .filled(
                        Filled(currency: lane.currency, step: .hour, candles: known.candles, venues: known.venues)))
            }
        }
        return nil
    }

    /// Waits until the venue's limits allow a request.
    private func isGranted(_ market: Market, _ requester: Requester, within longest: Duration) async -> Bool {
        let deadline = clock.now.advanced(by: longest)
        while !Task.isCancelled, clock.now < deadline, breakers[market]?.state(at: now().boottime) != .open {
            let left = clock.now.duration(to: deadline)
            guard let wait = await engine.grant(market, requester, within: left) else { return false }
            if wait == 0 { return true }
            do { try await clock.sleep(for: .milliseconds(wait)) } catch { return false }
        }
        return false
    }

    /// - Returns: `nil` if the loader has failed.
    private func load(
        _ loader: any CandleLoader, _ request: BackfillPlan.Request, _ requester: Requester
    ) async -> [Candle]? {
        let market = loader.market
        let result = await withTimeout(Self.timeout, on: clock) { () throws(PriceLoadingError) in
            try await loader.load(request.step, in: request.range)
        }
        switch result {
        case .success(let loaded):
            problems[market] = loaded.unused > 0 ? "\(loaded.unused) that are not valid" : nil
            if loaded.unused > 0 { report(.unused(loaded.unused, market)) }
            breakers[market] = nil
            return loaded.candles
        // The next search requests it again, within the limits.
        case .failure(.cancelled), .failure(.connectionClosed): return nil
        case .failure(let error):
            // A client's request may fail because of the moment that it named.
            if requester == .candles {
                problems[market] = error.description
                report(.failed(market, error))
            }
            if error.category == .rateLimited {
                await engine.limited(market, error)
            } else if error.retryAfter != nil || error.category == .refused && requester == .candles {
                _ = breakers[market, default: CircuitBreaker()].open(error, at: now(), jitter: .random(in: 0...1))
            }
            return nil
        }
    }
}
