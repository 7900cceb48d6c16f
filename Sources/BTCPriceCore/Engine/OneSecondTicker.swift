/// One tick.
package struct Tick: Sendable {
    /// The instant it was due.
    package let due: ContinuousClock.Instant
    /// The time from ``due`` to its start.
    package let lateness: Duration
    /// The number of ticks that were missed before it.
    package let skipped: Int64
}

/// Receives the ticks.
package protocol TickTarget: Sendable {
    /// Runs one tick. The next one waits for its end. A pause or a stop cancels it.
    func tick(_ tick: Tick) async

    /// Called when the ticks pause.
    func paused() async

    /// Called when the ticks start again; a ``tick(_:)`` follows at once.
    func resumed() async
}

/// Ticks once per interval, by default once a second.
///
/// The ticks do not drift, do not queue, and never run two at a time. `start`, `stop`, `pause` and `resume` take effect at once: a
/// tick in progress is cancelled, and a resume ticks without waiting for the old schedule.
package actor OneSecondTicker {
    private enum Phase { case stopped, running, paused }

    private let clock: any BoottimeClock
    private var interval: Duration
    private let target: any TickTarget
    private let executor: (any TaskExecutor)?
    private var phase = Phase.stopped
    private var loop: Task<Void, Never>?
    private var isTicking = false

    /// - Parameters:
    ///   - interval: The time from one tick to the next; above zero.
    ///   - clock: A monotonic clock that counts suspended time, so that a machine that wakes up ticks at once.
    ///   - target: Receives the ticks.
    ///   - executor: Where the ticks run; `nil` for anywhere.
    package init(
        interval: Duration = .seconds(1), clock: any BoottimeClock, target: any TickTarget,
        executor: (any TaskExecutor)? = nil
    ) {
        precondition(interval > .zero, "an interval is above zero")
        self.interval = interval
        self.clock = clock
        self.target = target
        self.executor = executor
    }

    var isRunning: Bool { phase == .running }

    /// Whether the ticks are stopped by ``pause()``.
    package var isPaused: Bool { phase == .paused }

    /// Starts the ticks, the first one at once. Has no effect unless stopped.
    package func start() {
        guard phase == .stopped else { return }
        begin()
    }

    /// Ends the ticks. Returns when the last one has ended.
    package func stop() async {
        phase = .stopped
        loop?.cancel()
        await loop?.value
    }

    /// Stops the ticks at once. Has no effect unless running.
    package func pause() async {
        guard phase == .running else { return }
        phase = .paused
        loop?.cancel()
        await loop?.value
        // A resume or a stop may have come in while the last tick ended.
        if phase == .paused { await target.paused() }
    }

    /// Starts the ticks again, at once. Has no effect unless paused.
    package func resume() async {
        guard phase == .paused else { return }
        await target.resumed()
        // A stop may have come in meanwhile, or another resume.
        if phase == .paused { begin() }
    }

    /// Changes the interval. A tick in progress ends as usual; if there is none, the next one comes at once.
    package func change(interval: Duration) {
        precondition(interval > .zero, "an interval is above zero")
        guard interval != self.interval else { return }
        self.interval = interval
        // The loop sees the change after the tick.
        guard phase == .running, !isTicking else { return }
        loop?.cancel()
        begin()
    }

    private func begin() {
        phase = .running
        let previous = loop
        loop = Task(executorPreference: executor) {
            await previous?.value
            await self.run()
        }
    }

    private func run() async {
        var schedule = TickSchedule(start: clock.now, interval: interval)
        while !Task.isCancelled {
            if schedule.interval != interval {
                schedule = TickSchedule(start: clock.now.advanced(by: interval), interval: interval)
            }
            let (due, skipped) = schedule.advance(now: clock.now)
            do { try await clock.sleep(until: due) } catch { return }
            isTicking = true
            defer { isTicking = false }
            await target.tick(Tick(due: due, lateness: max(.zero, due.duration(to: clock.now)), skipped: skipped))
        }
    }
}
