import Synchronization

/// Runs and stops the ticks: an operator pauses and resumes them; if no client wants a price for a long time, they may stop by themselves.
package actor TickControl: StateSubscriber {
    private let ticker: OneSecondTicker
    /// What pauses with the ticks.
    private let background: [BackgroundWork]
    private let activity: ClientActivity
    /// The time without a client after which the ticks stop; `nil` for never.
    private let idleAfter = Mutex(Duration?.none)
    private let now: TimeSource
    private let report: @Sendable (Ticking) -> Void
    /// The last change that is being made to the ticks. Changes reach them one after the other, in the order in which they were made.
    private var underWay: Task<Void, Never>?

    package private(set) var ticking = Ticking.running

    /// - Parameters:
    ///   - background: What pauses with the ticks.
    ///   - activity: When a client last wanted a price.
    package init(
        ticker: OneSecondTicker, background: [BackgroundWork] = [], activity: ClientActivity,
        now: @escaping TimeSource,
        report: @escaping @Sendable (Ticking) -> Void
    ) {
        self.ticker = ticker
        self.background = background
        self.activity = activity
        self.now = now
        self.report = report
    }

    /// Changes the time without a client after which the ticks stop; `nil` for never.
    package func change(idleAfter: Duration?) async {
        self.idleAfter.withLock { $0 = idleAfter }
        if idleAfter == nil { await clientCame() }
    }

    /// Stops the ticks, because the machine is about to sleep.
    package func suspend() async {
        guard ticking == .running else { return }
        await change(isRunning: false)
    }

    /// Starts the ticks again after the machine has woken up. The first tick comes at once.
    package func wake() async {
        guard ticking == .running else { return }
        await change(isRunning: true)
    }

    /// Stops the ticks until ``resume()``.
    /// - Returns: Whether they were not paused.
    @discardableResult
    package func pause() async -> Bool {
        guard ticking != .paused else { return false }
        await change(to: .paused)
        return true
    }

    /// Starts the ticks again, at once.
    /// - Returns: Whether they were stopped.
    @discardableResult
    package func resume() async -> Bool {
        guard ticking != .running else { return false }
        await change(to: .running)
        return true
    }

    /// Resumes the ticks if they are ``Ticking/idle``. Returns when they run, even if another client came first.
    package func clientCame() async {
        if ticking == .idle { await resume() } else { await underWay?.value }
    }

    /// Whether ``pauseIfIdle()`` would do something. Cheap: read at every tick.
    package nonisolated var mayPause: Bool {
        guard let idleAfter = idleAfter.withLock({ $0 }) else { return false }
        return activity.isIdle(for: idleAfter, at: now().boottime)
    }

    /// Pauses the ticks after a tick if no client has wanted a price for a long time.
    package nonisolated func receive(_: PriceState, _ publication: Publication, isFirst: Bool, kept: KeptState?) {
        guard publication == .tick, isFirst, mayPause else { return }
        // Not awaited: a pause waits for the end of this tick.
        Task { await pauseIfIdle() }
    }

    /// Stops the ticks if no client has wanted a price for a long time.
    package func pauseIfIdle() async {
        guard ticking == .running, mayPause else { return }
        await change(to: .idle)
        // A client may have come before the ticks began to wait for one.
        if ticking == .idle, !mayPause { await resume() }
    }

    private func change(to ticking: Ticking) async {
        self.ticking = ticking
        activity.awaitClient(ticking == .idle)
        report(ticking)
        await change(isRunning: ticking == .running)
    }

    private func change(isRunning: Bool) async {
        let task = Task { [previous = underWay, ticker, background, ticking] in
            await previous?.value
            // A change that changes nothing has no effect.
            if isRunning { await ticker.resume() } else { await ticker.pause(ticking) }
            for work in background {
                if isRunning { await work.resume() } else { await work.pause() }
            }
        }
        underWay = task
        await task.value
    }
}
