import Synchronization

/// Whether the ticks run.
package enum Ticking: String, Sendable, Hashable, CaseIterable {
    /// They do.
    case running
    /// An operator has paused them.
    case paused
    /// They stand still until a client comes.
    case idle
}

/// Whether the ticks run: an operator pauses and resumes them, and where nobody wants a price for long they may stand still by
/// themselves until somebody does.
package actor TickControl<C: Clock>: StateSubscriber where C.Duration == Duration {
    private let ticker: OneSecondTicker<C>
    private let activity: ClientActivity
    private let idleAfter: Mutex<Duration?>
    private let now: TimeSource
    private let report: @Sendable (Ticking) -> Void
    /// The last change on its way to the ticker: they get there one after the other, in the order they were made in.
    private var underWay: Task<Void, Never>?

    /// Whether the ticks run.
    package private(set) var ticking = Ticking.running

    /// - Parameters:
    ///   - ticker: What ticks.
    ///   - activity: When somebody last wanted a price.
    ///   - idleAfter: After how long without a client the ticks stand still; `nil` for never.
    ///   - now: Reads the clocks.
    ///   - report: Tells of each change.
    package init(
        ticker: OneSecondTicker<C>, activity: ClientActivity, idleAfter: Duration?, now: @escaping TimeSource,
        report: @escaping @Sendable (Ticking) -> Void
    ) {
        self.ticker = ticker
        self.activity = activity
        self.idleAfter = Mutex(idleAfter)
        self.now = now
        self.report = report
    }

    /// After how long without a client the ticks stand still from now on; `nil` for never.
    package func change(idleAfter: Duration?) async {
        self.idleAfter.withLock { $0 = idleAfter }
        if idleAfter == nil { await clientCame() }
    }

    /// The machine is about to sleep: the ticks stop.
    package func suspend() async {
        guard ticking == .running else { return }
        await ticker.pause()
    }

    /// The machine is awake again: the first tick is at once.
    package func wake() async {
        guard ticking == .running else { return }
        await ticker.resume()
    }

    /// Halts the ticks until ``resume()``.
    package func pause() async {
        guard ticking != .paused else { return }
        await change(to: .paused)
    }

    /// Has them run again, at once.
    package func resume() async {
        guard ticking != .running else { return }
        await change(to: .running)
    }

    /// A client wants a price: ends the standstill for want of one, and no other.
    package func clientCame() async {
        if ticking == .idle { await resume() }
    }

    /// Whether ``pauseIfIdle()`` would do something. Cheap: asked at every tick.
    package nonisolated var mayPause: Bool {
        guard let idleAfter = idleAfter.withLock({ $0 }) else { return false }
        return activity.isIdle(for: idleAfter, at: now().boottime)
    }

    /// Pauses the ticks after a tick if no client has wanted a price for long.
    package nonisolated func receive(_ published: PublishedState) {
        guard published.isTick, mayPause else { return }
        // Not awaited: a pause waits for the end of this tick.
        Task { await pauseIfIdle() }
    }

    /// Halts the ticks where nobody wanted a price for long.
    package func pauseIfIdle() async {
        guard ticking == .running, mayPause else { return }
        await change(to: .idle)
        // Somebody may have come before it was known that he is waited for.
        if ticking == .idle, !mayPause { await resume() }
    }

    private func change(to ticking: Ticking) async {
        self.ticking = ticking
        activity.awaitClient(ticking == .idle)
        report(ticking)
        let task = Task { [previous = underWay, ticker] in
            await previous?.value
            // The one of them that changes nothing has no effect.
            if ticking == .running { await ticker.resume() } else { await ticker.pause() }
        }
        underWay = task
        await task.value
    }
}
