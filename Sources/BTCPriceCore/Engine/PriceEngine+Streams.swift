extension PriceEngine {
    // MARK: - Feeds

    private var feeds: [FetchLatestPrice] { tracked.flatMap { $0.plan.sources.filter { $0.feed != nil } } }

    /// Starts the sources that push their prices. A pause stops them, and its end starts them again.
    package func startFeeds() {
        guard !feedsRun else { return }
        feedsRun = true
        for source in feeds {
            source.feed?.start { [weak self, executor] in
                Task(executorPreference: executor) { await self?.arrived(source) }
            }
        }
        startStreams()
    }

    package func stopFeeds() {
        feedsRun = false
        for source in feeds { source.feed?.stop() }
        stopStreams()
    }

    /// Records that a source has pushed a price, or has lost it. This is not a request, so it is no failure of the source.
    private func arrived(_ source: FetchLatestPrice) async {
        // An exchange with a cooldown is not requested; likewise, its pushed price does not count.
        guard !registry.isCoolingDown(source.market, at: now().boottime) else { return lost(source.market) }
        if let loaded = try? await source.load(), isCurrent(source), record(loaded, source) == nil { return }
        lost(source.market)
    }

    private func lost(_ market: Market) { tracked(market)?.tracker.lost(market) }

    // MARK: - Streams

    /// Opens or closes the streams.
    /// - Parameter watched: The changes between the ticks that are published; `nil` for none, which closes the streams.
    package func publish(_ watched: WatchedChanges?) {
        let before = self.watched
        self.watched = watched
        for each in tracked where before?.interval(of: each.currency) != watched?.interval(of: each.currency) {
            stopStreams(of: each)
            startStreams(of: each)
        }
    }

    /// Restarts the streams after a suspend: their connections are dead, which only a timeout would show.
    package func restartStreams() {
        stopStreams()
        startStreams()
    }

    private func startStreams() {
        for each in tracked { startStreams(of: each) }
    }

    private func startStreams(of tracked: TrackedCurrency) {
        guard feedsRun, let interval = watched?.interval(of: tracked.currency) else { return }
        for source in tracked.plan.sources {
            source.stream?.start(every: interval) { [weak self, executor] news in
                Task(executorPreference: executor) { await self?.received(news, from: source) }
            }
        }
    }

    private func stopStreams() {
        for each in tracked { stopStreams(of: each) }
    }

    private func stopStreams(of tracked: TrackedCurrency) {
        for source in tracked.plan.sources { source.stream?.stop() }
        tracked.stopStreams()
    }

    func received(_ news: StreamNews, from source: FetchLatestPrice) {
        switch news {
        case .limited(let error): _ = ended(source, .failure(error), latency: .zero)
        case .price(let price):
            // As for a feed, the price of an exchange with a cooldown does not count.
            // A price that is still on its way when the last watcher of its currency leaves does not count, either.
            guard feedsRun, isCurrent(source), let tracked = tracked(source.market),
                watched?.interval(of: tracked.currency) != nil,
                !registry.isCoolingDown(source.market, at: now().boottime)
            else { return }
            // A round in progress decides on the responses to its requests.
            guard tracked.shared == nil else {
                tracked.waiting[source.market] = (price, source)
                return
            }
            let present = now()
            do throws(PriceLoadingError) {
                let effect = try tracked.tracker.record(streamed: price, from: source.venue, at: present)
                if effect == .contradicts { return request(tracked) }
                tracked.streamed[source.market] = present.boottime
                if effect == .agrees { publishChange(tracked) }
            } catch {
                // The response to the last request is newer.
            }
        }
    }

    /// Publishes the current price of the streams, at once or as soon as the minimum interval is over.
    private func publishChange(_ tracked: TrackedCurrency) {
        // A round in progress publishes its result.
        guard tracked.change == nil, tracked.shared == nil, let interval = watched?.interval else { return }
        guard let last = tracked.lastPublication, clock.now < last.advanced(by: interval) else {
            return selectChange(tracked)
        }
        let (due, currency) = (last.advanced(by: interval), tracked.currency)
        tracked.change = Task(executorPreference: executor) {
            do { try await self.clock.sleep(until: due) } catch { return }
            await self.changeIsDue(currency)
        }
    }

    private func changeIsDue(_ currency: Currency) {
        guard let tracked = tracked(currency), tracked.change.take() != nil else { return }
        // A tick that came in between has published everything.
        publishChange(tracked)
    }

    /// Selects among the streams' prices. Only a request may change the source; otherwise it would change with every message.
    private func selectChange(_ tracked: TrackedCurrency) {
        let state = tracked.tracker.state
        // A tick may have failed since the change came.
        guard let quote = state.quote, state.freshness == .fresh, state.derivation == nil else { return }
        var round = round(of: tracked)
        round.answered = tracked.tracker.current(round.markets, at: round.began).filter {
            tracked.tracker.shows($0) || tracked.tracker.rules.mode == .median
        }
        guard !round.answered.isEmpty else { return }
        guard case .decided(let decision, let belief) = tracked.tracker.select(round), let selected = decision.quote,
            selected.source == quote.source
        else { return request(tracked) }
        if selected.value == quote.value { return }
        perform(tracked.tracker.decided(decision, belief, in: round, isTick: false), tracked)
    }

    /// Starts a round, at most once a second: only a request shows which price is right.
    private func request(_ tracked: TrackedCurrency) {
        guard tracked.lastRequest.map({ $0.advanced(by: .seconds(1)) <= clock.now }) ?? true else { return }
        tracked.lastRequest = clock.now
        let currency = tracked.currency
        Task(executorPreference: executor) { await self.confirm(currency) }
    }

    /// A round between the ticks: for a change that another market must confirm, or for a derived price.
    func confirm(_ currency: Currency) async {
        guard let tracked = tracked(currency) else { return }
        _ = await join(tracked, .confirmation, deadline: clock.now.advanced(by: budget))
    }

    /// The currency that has a market among its sources.
    func tracked(_ market: Market) -> TrackedCurrency? { tracked.first { $0.plan.markets.contains(market) } }
}
