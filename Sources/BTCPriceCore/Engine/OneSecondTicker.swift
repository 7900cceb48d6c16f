package struct Tick: Sendable {
    package let due: ContinuousClock.Instant
    /// The time from ``due`` to its start.
    package let lateness: Duration
    /// The number of ticks that were missed before it.
    package let skipped: Int64
}

/// Receives the ticks.
package protocol TickTarget: Sendable {
    /// Runs one tick of a currency. Its next one waits for the end. A pause or a stop cancels it.
    func tick(_ tick: Tick, of currency: Currency) async

    /// Called when the ticks have paused, and when somebody else pauses them.
    /// - Parameter ticking: Who has stopped them; ``Ticking/running`` while the machine sleeps.
    func paused(_ ticking: Ticking) async

    /// Called when the ticks are about to start again; a ``tick(_:of:)`` of each currency follows at once.
    func resumed() async
}

/// Ticks each currency once per interval, by default once a second, by a schedule of its own.
///
/// The ticks do not drift, do not queue, and those of a currency never run two at a time. `start`, `stop`, `pause` and `resume` take
/// effect at once: a tick in progress is cancelled, and a resume ticks without waiting for the old schedule.
package actor OneSecondTicker {
    package struct Interval: Sendable, Hashable {
        package let currency: Currency
        /// The time from one tick to the next; above zero.
        package let length: Duration

        package init(_ currency: Currency, _ length: Duration = .seconds(1)) {
            precondition(length > .zero, "an interval is above zero")
            self.currency = currency
            self.length = length
        }
    }

    private enum Phase { case stopped, running, paused }

    /// The ticks of one currency.
    private struct Loop {
        var interval: Interval
        var task: Task<Void, Never>?
        var isTicking = false
    }

    private let clock: any BoottimeClock
    private let target: any TickTarget
    private let executor: (any TaskExecutor)?
    private var phase = Phase.stopped
    private var loops: [Loop]

    /// - Parameters:
    ///   - intervals: The currencies in their order, until ``change(_:)`` has others.
    ///   - clock: A monotonic clock that counts suspended time, so that a machine that wakes up ticks at once.
    ///   - target: Receives the ticks.
    ///   - executor: Where the ticks run; `nil` for anywhere.
    package init(
        _ intervals: [Interval] = [], clock: any BoottimeClock, target: any TickTarget,
        executor: (any TaskExecutor)? = nil
    ) {
        self.clock = clock
        self.target = target
        self.executor = executor
        loops = intervals.map { Loop(interval: $0) }
    }

    /// Whether the ticks are stopped by ``pause(_:)``.
    package var isPaused: Bool { phase == .paused }

    /// Starts the ticks, the first ones at once. Has no effect unless stopped.
    package func start() {
        guard phase == .stopped else { return }
        begin()
    }

    /// Ends the ticks. Returns when the last one has ended.
    package func stop() async {
        phase = .stopped
        await end(loops)
    }

    /// Stops the ticks at once. If they are already paused, it only tells the target who stops them now. Has no effect if they are stopped.
    package func pause(_ ticking: Ticking = .paused) async {
        guard phase != .stopped else { return }
        if phase == .running {
            phase = .paused
            await end(loops)
        }
        // A resume or a stop may have come in while the last tick ended.
        if phase == .paused { await target.paused(ticking) }
    }

    /// Starts the ticks again, at once. Has no effect unless paused.
    package func resume() async {
        guard phase == .paused else { return }
        await target.resumed()
        // A stop may have come in meanwhile, or another resume.
        if phase == .paused { begin() }
    }

    /// Changes the currencies and their intervals. A tick in progress ends as usual; a currency with a new interval ticks at once.
    package func change(_ intervals: [Interval]) async {
        let old = loops
        loops = intervals.map { interval in
            var loop = old.first { $0.interval.currency == interval.currency } ?? Loop(interval: interval)
            loop.interval = interval
            return loop
        }
        for loop in loops where phase == .running && !loop.isTicking {
            // A loop sees the change after its tick.
            if !old.contains(where: { $0.interval == loop.interval }) { begin(loop.interval.currency) }
        }
        await end(old.filter { index(of: $0.interval.currency) == nil })
    }

    private func index(of currency: Currency) -> Int? { loops.firstIndex { $0.interval.currency == currency } }

    private func end(_ loops: [Loop]) async {
        for loop in loops { loop.task?.cancel() }
        for loop in loops { await loop.task?.value }
    }

    private func begin() {
        phase = .running
        for loop in loops { begin(loop.interval.currency) }
    }

    private func begin(_ currency: Currency) {
        guard let index = index(of: currency) else { return }
        let previous = loops[index].task
        previous?.cancel()
        loops[index].task = Task(executorPreference: executor) {
            await previous?.value
            await self.run(currency)
        }
    }

    private func run(_ currency: Currency) async {
        var schedule: TickSchedule?
        while !Task.isCancelled, let interval = index(of: currency).map({ loops[$0].interval.length }) {
            if schedule?.interval != interval {
                let start = schedule == nil ? clock.now : clock.now.advanced(by: interval)
                schedule = TickSchedule(start: start, interval: interval)
            }
            guard let (due, skipped) = schedule?.advance(now: clock.now) else { return }
            do { try await clock.sleep(until: due) } catch { return }
            setTicking(true, currency)
            await target.tick(
                Tick(due: due, lateness: max(.zero, due.duration(to: clock.now)), skipped: skipped), of: currency)
            setTicking(false, currency)
        }
    }

    private func setTicking(_ isTicking: Bool, _ currency: Currency) {
        if let index = index(of: currency) { loops[index].isTicking = isTicking }
    }
}

/// The times at which ticks are due: `start + n · interval`. A pure value.
///
/// Uses deadlines instead of pauses after each tick, so that nothing drifts. A tick that was missed is skipped, never queued.
struct TickSchedule: Sendable {
    typealias Instant = ContinuousClock.Instant

    let start: Instant
    let interval: Duration
    private(set) var next: Int64 = 0

    /// The next tick to wait for, and the number that were missed before it.
    ///
    /// A deadline that has just passed is still kept: a round that uses its whole budget ends slightly after the next deadline, and must
    /// not cost every second tick. From half an interval on it counts as missed.
    mutating func advance(now: Instant) -> (due: Instant, skipped: Int64) {
        var skipped: Int64 = 0
        let late = instant(next).duration(to: now)
        if late > interval / 2 {
            let elapsed = start.duration(to: now).attoseconds
            let step = interval.attoseconds
            let following = Int64((elapsed + step - 1) / step)
            skipped = following - next
            next = following
        }
        defer { next += 1 }
        return (instant(next), skipped)
    }

    private func instant(_ index: Int64) -> Instant {
        start.advanced(by: interval * index)
    }
}
