extension PriceEngine {
    /// Waits for the round in progress, or for a new one. If a caller is cancelled, it returns at once, and the round continues.
    func join(
        _ tracked: TrackedCurrency, _ requester: Requester, deadline: ContinuousClock.Instant
    ) async -> Result<PriceState, FetchFailure> {
        while !Task.isCancelled, tracked.isKept {
            let task = (tracked.shared ?? start(tracked, requester, deadline: deadline)).task
            if requester == .tick { tracked.shared?.ticks += 1 }
            let answer = await task.value()
            if let answer { return answer }
            if requester == .tick, tracked.shared?.task === task { tracked.shared?.ticks -= 1 }
            // The last of the callers before may have left meanwhile: then another round begins.
        }
        return .failure(.cancelled)
    }

    private func start(
        _ tracked: TrackedCurrency, _ requester: Requester, deadline: ContinuousClock.Instant
    ) -> TrackedCurrency.SharedRound {
        let currency = tracked.currency
        let task = RoundTask(on: executor) {
            await self.run(currency, $0, requester, deadline: deadline)
        }
        let round = TrackedCurrency.SharedRound(began: clock.now, requester: requester, task: task)
        tracked.shared = round
        return round
    }

    func round(of tracked: TrackedCurrency) -> Round {
        let present = now()
        let other = claimant(for: tracked, at: present.boottime)
        return Round(
            began: present.boottime, markets: tracked.plan.markets, freshFor: tracked.tracker.freshFor, other: other,
            expected: expected(tracked, beside: other, at: present.wall), allowsClaim: allowsClaim(on: tracked),
            isUrgent: tracked.tracker.lacksTime)
    }

    /// The price that a currency's is compared with: that of the first other currency that has a fresh one, otherwise the first that had
    /// one a moment ago.
    private func claimant(for tracked: TrackedCurrency, at boottime: BootTime) -> OtherCurrency? {
        let others = self.tracked.filter { $0 !== tracked }.compactMap { $0.tracker.shown(at: boottime) }
        return others.first(where: \.isFresh) ?? others.first
    }

    /// Whether another currency's price may ever contradict this one.
    private func allowsClaim(on tracked: TrackedCurrency) -> Bool {
        rates.areWanted
            && self.tracked.contains { other in
                other !== tracked && other.plan.markets.contains { $0.venue != tracked.plan.markets.first?.venue }
            }
    }

    /// Waits for the currency that a price is derived from, or that a first price is compared with: for the latter at most half of the
    /// budget, and for one before it in the order only, so that no two wait for each other.
    private func awaitOther(
        _ tracked: TrackedCurrency, _ requester: Requester, deadline: ContinuousClock.Instant
    ) async {
        let isUnderWay = { (other: TrackedCurrency) in
            other.tracker.state.freshness != .fresh
                && (other.shared != nil || other.tracker.state.ticks.awaitsTick && !self.isPaused)
        }
        guard !rates.tables.isEmpty else { return }
        if tracked.plan.derivation == .always {
            guard let other = base(of: tracked), isUnderWay(other) else { return }
            _ = await join(other, requester, deadline: deadline)
        } else if tracked.tracker.state.freshness != .fresh, claimant(for: tracked, at: now().boottime) == nil {
            let before = self.tracked.prefix { $0 !== tracked }
            guard let other = before.first(where: { $0.plan.derivation != .always && isUnderWay($0) }) else { return }
            let currency = other.currency
            _ = await withTimeout(min(budget / 2, clock.now.duration(to: deadline)), on: clock) {
                await self.confirm(currency)
            }
        }
    }

    /// One round: selects, polls what the selector needs, and selects again.
    private func run(
        _ currency: Currency, _ task: RoundTask, _ requester: Requester,
        deadline: ContinuousClock.Instant
    ) async {
        guard let tracked = tracked(currency), tracked.shared?.task === task else { return }
        var plan = tracked.plan
        await awaitOther(tracked, requester, deadline: deadline)
        var round = round(of: tracked)
        while tracked.isKept {
            // A tick may have joined a client's round.
            round.isTick = tracked.shared.map { $0.task === task && $0.isTick } == true
            switch tracked.tracker.select(round) {
            case .decided(let decision, let belief):
                return finish(tracked, task, .success((decision, belief, round)))
            case .needs(let need):
                let result: PollResult
                do throws(FetchFailure) {
                    result = try await fetch(
                        requester, plan, among: need.markets, keepsCooldowns: need.keepsCooldowns,
                        quorum: need.quorum, deadline: deadline
                    )
                } catch {
                    // A reload may have replaced the sources meanwhile.
                    if !error.isCancelled, need.purpose == .price, plan.differs(from: tracked.plan) {
                        plan = tracked.plan
                        round = self.round(of: tracked)
                        continue
                    }
                    if error.isCancelled || need.purpose == .price { return finish(tracked, task, .failure(error)) }
                    result = PollResult(failures: error.failures, skipped: error.skipped)
                }
                tracked.tracker.add(result, to: &round)
                if clock.now >= deadline { round.end() }
            }
        }
    }

    /// Applies a result once, however many callers waited for it.
    private func finish(
        _ tracked: TrackedCurrency, _ task: RoundTask,
        _ result: Result<(Decision, Belief, Round), FetchFailure>
    ) {
        // The round may have been given up meanwhile, and another one begun.
        guard let finished = tracked.shared, finished.task === task else { return }
        tracked.shared = nil
        let isTick = counts(result, finished.requester, tracked) && finished.isTick
        let actions: PriceTracker.Actions
        switch result {
        case .success(let (decision, belief, round)):
            let derived =
                decision.quote == nil
                ? derived(tracked, isConfirmedOnly: decision.contradictsRate).price : nil
            actions = tracked.tracker.decided(decision, belief, in: round, isTick: isTick, derived: derived)
            tracked.tracker.requested(hasPrice: decision.quote != nil)
        case .failure(var failure):
            let derived = derived(tracked, isConfirmedOnly: false)
            failure.notDerived = derived.failure
            actions = tracked.tracker.failed(failure, isTick: isTick, derived: derived.price, at: now().boottime)
            tracked.tracker.requested(hasPrice: false)
        }
        perform(actions, tracked)
        let answer =
            actions.failure.map { Result<PriceState, FetchFailure>.failure($0) } ?? .success(tracked.tracker.state)
        if case .failure(let failure) = answer {
            tracked.last = failure.isCancelled ? nil : (finished.began, failure)
        } else {
            tracked.last = (finished.began, nil)
        }
        task.finish(answer)
        let waiting = tracked.waiting
        tracked.waiting = [:]
        for (price, source) in waiting.values { received(.price(price), from: source) }
    }

    /// Whether a round can be a tick. A client's in which the limits allowed no request can't: clients leave a part of them to the ticks.
    func counts<Value>(
        _ result: Result<Value, FetchFailure>, _ requester: Requester, _ tracked: TrackedCurrency
    ) -> Bool {
        guard requester != .tick, tracked.plan.derivation != .always, case .failure(let failure) = result else {
            return true
        }
        return !failure.failures.isEmpty || failure.isCancelled
    }

    // MARK: - Fetches

    /// Polls sources until one has a price, and records the responses.
    /// - Parameters:
    ///   - requester: Who requests.
    ///   - markets: The sources in question, among those of the plan.
    ///   - keepsCooldowns: See ``Need/keepsCooldowns``.
    ///   - mayWake: See ``SourceRegistry/plan(_:among:atHand:keepsCooldowns:mayWake:at:)``.
    ///   - quorum: If all sources are wanted, the number that is enough without those in a cooldown; `nil` if one source is enough.
    ///   - deadline: The end of the budget. The call returns or throws by then.
    /// - Throws: ``FetchFailure`` if no source gave a price, or if the task was cancelled.
    func fetch(
        _ requester: Requester, _ plan: CurrencyPlan, among markets: [Market], keepsCooldowns: Bool = false,
        mayWake: Bool = false, quorum: Int? = nil, deadline: ContinuousClock.Instant
    ) async throws(FetchFailure) -> PollResult {
        let atHand = plan.sources.filter { !$0.needsRequest }.map(\.market)
        var turn = requestable(
            by: requester, among: markets, atHand: Set(atHand), keepsCooldowns: keepsCooldowns, mayWake: mayWake)
        if let quorum, turn.well >= quorum { turn.order = Array(turn.order.prefix(turn.well)) }
        let sources = turn.order.compactMap { market in plan.sources.first { $0.market == market } }
        guard !sources.isEmpty else { throw FetchFailure(failures: [], skipped: turn.skipped) }
        var fetch = FetchWithFallback(
            sources, skipped: turn.skipped, clock: clock, deadline: deadline, wantsAll: quorum != nil)
        let outcome = await withTaskGroup(of: FetchWithFallback.Step.self) { group in
            while true {
                let step = await fetch.next(in: &group)
                if case .finished(let result) = step { return result }
                await self.advance(&fetch, step, requester, in: &group)
            }
        }
        defer { gaveUp(fetch.pending) }
        switch outcome {
        case .answered(let indices, let failures):
            for index in indices { end(index, .success, of: &fetch) }
            let failures = end(failures, of: &fetch)
            return PollResult(
                answered: indices.map { sources[$0].market }, failures: failures, skipped: fetch.skipped)
        case .failed(let failures):
            throw FetchFailure(failures: end(failures, of: &fetch), skipped: fetch.skipped)
        case .cancelled: throw .cancelled
        }
    }

    private func advance(
        _ fetch: inout FetchWithFallback, _ step: FetchWithFallback.Step, _ requester: Requester,
        in group: inout TaskGroup<FetchWithFallback.Step>
    ) async {
        switch step {
        case .turn(let index):
            let source = fetch.sources[index]
            // Another requester may have used up the limit since the sources were chosen.
            if source.needsRequest, await !take(source, requester) {
                // If it was requested before, its connection was closed.
                end(index, .failure(.connectionClosed), of: &fetch)
                return fetch.skip(index, .limit)
            }
            fetch.request(index, in: &group)
        case .response(let index, let prices):
            let source = fetch.sources[index]
            // A reload has replaced its address meanwhile: it is another source's price.
            guard isCurrent(source) else { return fetch.skip(index, .limit) }
            if let error = record(prices, source) {
                source.discardConnection()
                end(index, .failure(error), of: &fetch)
                return fetch.fail(index, error)
            }
            if let bytes = prices.first?.bodyBytes { received(source, bytes: bytes) }
            if fetch.accept(index) { end(index, .success, of: &fetch) }
        case .failure(let index, let error):
            end(index, .failure(error), of: &fetch)
            fetch.fail(index, error)
        case .woke, .finished: break
        }
    }

    /// Records the end of a request, unless that is already recorded.
    private func end(_ index: Int, _ outcome: MarketHealth.Outcome, of fetch: inout FetchWithFallback) {
        guard let latency = fetch.end(index) else { return }
        fetch.cooldowns[index] = ended(fetch.sources[index], outcome, latency: latency)
    }

    /// Also records the end of the requests that were given up.
    private func end(
        _ failures: [(index: Int, error: PriceLoadingError)], of fetch: inout FetchWithFallback
    ) -> [SourceFailure] {
        failures.map { index, error in
            end(index, .failure(error), of: &fetch)
            return SourceFailure(
                source: fetch.sources[index].market.venue, error: error, cooldown: fetch.cooldowns[index])
        }
    }
}
