/// Receives the ticks of several currencies.
package protocol CurrencyTickTarget: Sendable {
    /// Runs one tick of a currency.
    func tick(_ tick: Tick, of currency: Currency) async
    /// Called when all tickers have stopped, and when somebody else stops them.
    /// - Parameter ticking: Who has stopped them; ``Ticking/running`` while the machine sleeps.
    func paused(_ ticking: Ticking) async
    /// Called when the tickers are about to start again.
    func resumed() async
}

/// The tickers of all currencies, which run and stop together.
package actor Tickers {
    /// The interval of a currency's ticks.
    package struct Interval: Sendable, Hashable {
        package let currency: Currency
        package let length: Duration

        package init(_ currency: Currency, _ length: Duration) {
            self.currency = currency
            self.length = length
        }
    }

    private let clock: any BoottimeClock
    private let target: any CurrencyTickTarget
    private let executor: (any TaskExecutor)?
    private var tickers: [(currency: Currency, ticker: OneSecondTicker)] = []
    private var isRunning = false
    private var isStopped = false
    package private(set) var isPaused = false

    /// - Parameters:
    ///   - intervals: The currencies in their order.
    ///   - clock: A clock that counts suspended time.
    ///   - target: Receives the ticks.
    ///   - executor: Where the ticks run; `nil` for anywhere.
    package init(
        _ intervals: [Interval], clock: any BoottimeClock, target: any CurrencyTickTarget,
        executor: (any TaskExecutor)? = nil
    ) {
        self.clock = clock
        self.target = target
        self.executor = executor
        tickers = intervals.map { ($0.currency, Self.ticker($0, clock, target, executor)) }
    }

    private static func ticker(
        _ interval: Interval, _ clock: any BoottimeClock, _ target: any CurrencyTickTarget,
        _ executor: (any TaskExecutor)?
    ) -> OneSecondTicker {
        OneSecondTicker(
            interval: interval.length, clock: clock,
            target: CurrencyTicks(target: target, currency: interval.currency), executor: executor)
    }

    /// Starts the ticks, the first ones at once.
    package func start() async {
        isRunning = true
        for (_, ticker) in tickers { await ticker.start() }
    }

    /// Ends the ticks. Returns when the last one has ended.
    package func stop() async {
        isStopped = true
        for (_, ticker) in tickers { await ticker.stop() }
    }

    /// Stops the ticks at once. If they are stopped, only the target is told who stops them now.
    package func pause(_ ticking: Ticking = .paused) async {
        guard isRunning, !isStopped else { return }
        if !isPaused {
            isPaused = true
            for (_, ticker) in tickers { await ticker.pause() }
        }
        // A resume or a stop may have come in while the last tick ended.
        if isPaused, !isStopped { await target.paused(ticking) }
    }

    /// Starts the ticks again, at once. Has no effect unless paused.
    package func resume() async {
        guard isPaused, !isStopped else { return }
        isPaused = false
        await target.resumed()
        guard !isPaused, !isStopped else { return }
        for (_, ticker) in tickers { await ticker.resume() }
    }

    /// Changes the currencies and their intervals.
    package func change(_ intervals: [Interval]) async {
        guard !isStopped else { return }
        let old = tickers
        tickers = intervals.map { interval in
            if let same = old.first(where: { $0.currency == interval.currency }) { return same }
            return (interval.currency, Self.ticker(interval, clock, target, executor))
        }
        for (currency, ticker) in old where !tickers.contains(where: { $0.currency == currency }) {
            await ticker.stop()
        }
        for (interval, (currency, ticker)) in zip(intervals, tickers) {
            await ticker.change(interval: interval.length)
            guard isRunning, !isStopped, !old.contains(where: { $0.currency == currency }) else { continue }
            await ticker.start()
            if isPaused { await ticker.pause() }
        }
    }
}

/// The ticks of one currency.
private struct CurrencyTicks: TickTarget {
    let target: any CurrencyTickTarget
    let currency: Currency

    func tick(_ tick: Tick) async { await target.tick(tick, of: currency) }

    func paused() async {}

    func resumed() async {}
}
