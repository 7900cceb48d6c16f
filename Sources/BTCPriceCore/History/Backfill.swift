/// Fills gaps in the history with candles from the configured exchanges: at the start, and after the daemon has seen no price for a
/// while. Ticks have priority: while there is no current price, it requests nothing.
package actor Backfill {
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
    /// The time from one search for gaps to the next.
    static var period: Duration { .seconds(900) }
    /// The time from a search in which a request failed to the next one; doubled up to ``period``.
    static var firstRetry: Duration { .seconds(30) }
    /// The minimum time from one request to the next.
    static var pause: Duration { .seconds(1) }
    /// The longest wait for a response.
    static var timeout: Duration { .seconds(10) }
    /// The longest wait for a venue's limit; shorter if a client waits.
    static var longestWait: Duration { .seconds(60) }
    static var shortestWait: Duration { .seconds(3) }

    private var lanes: [Lane]
    private var plans: [Currency: BackfillPlan] = [:]
    /// Counts the changes of ``lanes``.
    private var version = 0
    private let engine: PriceEngine
    private let history: PriceHistory
    private let archive: any CandleArchive
    private let clock: any BoottimeClock
    private let now: TimeSource
    private let report: @Sendable (Filled) -> Void

    /// Gaps that were filled.
    package struct Filled: Sendable, Hashable {
        package let currency: Currency
        package let step: Candle.Step
        /// The number of candles.
        package let candles: Int
        /// The exchanges that the candles came from.
        package let venues: [String]
    }

    /// - Parameters:
    ///   - lanes: The currencies; empty to request nothing.
    ///   - engine: Provides the limits of the sources, and the price.
    ///   - history: Receives the minutes of the last day.
    ///   - archive: Provides the known candles, and stores the new ones.
    ///   - clock: Measures the waits.
    ///   - now: Reads the clocks.
    ///   - report: Reports to the operator.
    package init(
        _ lanes: [Lane], engine: PriceEngine, history: PriceHistory, archive: any CandleArchive,
        clock: any BoottimeClock,
        now: @escaping TimeSource, report: @escaping @Sendable (Filled) -> Void = { _ in }
    ) {
        self.lanes = lanes
        self.engine = engine
        self.history = history
        self.archive = archive
        self.clock = clock
        self.now = now
        self.report = report
    }

    /// Changes the sources that candles are requested from.
    package func change(_ lanes: [Lane]) {
        self.lanes = lanes
        plans = [:]
        version += 1
    }

    /// Runs until its task is cancelled.
    package func run() async {
        var wait = Self.firstPeriod
        var backoff = Backoff(from: Self.firstRetry, to: Self.period)
        while true {
            do { try await clock.sleep(for: wait) } catch { return }
            wait = Self.period
            var isComplete = false
            // A history that can't be read or written is reported by the archive.
            do throws(HistoryError) { isComplete = try await fill() } catch {}
            if await engine.state.freshness != .fresh {
                wait = Self.firstPeriod
            } else if !isComplete {
                wait = backoff.next()
            } else {
                backoff.reset()
            }
        }
    }

    /// Requests the minute that contains a moment, because a client wants it, and stores it.
    /// - Returns: Why that was not possible, in one line; `nil` if the minute is stored.
    package func fetch(_ currency: Currency, at second: Int64) async -> String? {
        guard !lanes.isEmpty else { return "history.backfill is false" }
        let loaders = lanes.first { $0.currency == currency }?.loaders ?? []
        guard !loaders.isEmpty else { return "no configured exchange has candles in \(currency)" }
        let start = Candle.Step.minute.start(of: second)
        guard start + Candle.Step.minute.seconds <= now().wall.milliseconds / 1000 else {
            return "its minute is not over"
        }
        let range = start..<start + Candle.Step.minute.seconds
        for (index, loader) in loaders.enumerated() {
            let request = BackfillPlan.Request(loader: index, step: .minute, range: range)
            guard await isGranted(loader.market, within: Self.shortestWait),
                let candles = await load(loader, request), let candle = candles.first(where: { $0.start == start })
            else { continue }
            do throws(HistoryError) {
                try await archive.insert(candle, of: currency)
                return nil
            } catch {
                return error.description
            }
        }
        return "no exchange has it: \(loaders.map(\.market.venue).joined(separator: ", "))"
    }

    /// Requests the missing candles.
    /// - Returns: Whether that was possible: no loader has failed, and all prices are current.
    func fill() async throws(HistoryError) -> Bool {
        let begun = version
        var isComplete = true
        for lane in lanes where !lane.loaders.isEmpty {
            for (step, count) in BackfillPlan.wanted {
                if try await !fill(lane, step, count) { isComplete = false }
                if Task.isCancelled || version != begun { return false }
            }
        }
        return isComplete
    }

    /// - Returns: Whether that was possible.
    private func fill(_ lane: Lane, _ step: Candle.Step, _ wantedCount: Int64) async throws(HistoryError) -> Bool {
        let begun = version
        var failed: Set<Int> = []
        var (count, venues) = (0, [String]())
        var isFresh = true
        while !Task.isCancelled {
            isFresh = await engine.state(of: lane.currency)?.freshness == .fresh
            guard isFresh else { break }
            let wanted = BackfillPlan.range(of: step, wantedCount, at: now().wall.milliseconds / 1000)
            let known = try await archive.candles(
                of: lane.currency, step, in: wanted, limit: Int(wantedCount))
            let plan = plans[lane.currency] ?? Self.plan(lane)
            guard version == begun,
                let request = plan.next(step, known: Set(known.map(\.start)), wanted: wanted, failed: failed)
            else { break }
            let loader = lane.loaders[request.loader]
            guard await isGranted(loader.market), let candles = await load(loader, request) else {
                failed.insert(request.loader)
                continue
            }
            try await archive.backfill(candles, of: lane.currency, step)
            guard version == begun else { break }
            plans[lane.currency, default: plan].answered(request)
            count += candles.count
            if !venues.contains(loader.market.venue) { venues.append(loader.market.venue) }
            do { try await clock.sleep(for: Self.pause) } catch { break }
        }
        if count > 0 {
            report(Filled(currency: lane.currency, step: step, candles: count, venues: venues))
        }
        if step == .minute {
            // Also if nothing was missing: a clock that was wrong may have emptied the day.
            let day = BackfillPlan.range(of: .minute, wantedCount, at: now().wall.milliseconds / 1000)
            history.restore(
                try await archive.candles(of: lane.currency, .minute, in: day, limit: Int(wantedCount)),
                of: lane.currency)
        }
        return isFresh && failed.isEmpty
    }

    private static func plan(_ lane: Lane) -> BackfillPlan {
        BackfillPlan(lane.loaders.map { .init(page: Int64($0.page), hasNewestOnly: $0.hasNewestOnly) })
    }

    /// Waits until the venue's limits allow a request.
    private func isGranted(_ market: Market, within longest: Duration = longestWait) async -> Bool {
        let deadline = clock.now.advanced(by: longest)
        while !Task.isCancelled, clock.now < deadline {
            guard let isGranted = await engine.sources.grant(market) else { return false }
            if isGranted { return true }
            do { try await clock.sleep(for: Self.pause) } catch { return false }
        }
        return false
    }

    /// - Returns: `nil` if the loader has failed.
    private func load(_ loader: any CandleLoader, _ request: BackfillPlan.Request) async -> [Candle]? {
        let result = await withTimeout(Self.timeout, on: clock) { () throws(PriceLoadingError) in
            try await loader.load(request.step, in: request.range)
        }
        switch result {
        case .success(let candles): return candles
        case .failure(let error):
            await engine.sources.limited(loader.market, error)
            return nil
        }
    }
}
