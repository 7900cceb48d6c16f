import Synchronization

/// Opens the exchanges' streams while a client watches changes, and closes them 30 s after none does any more.
package actor StreamControl: StateSubscriber {
    /// How long the streams stay open without a client that watches changes.
    static var linger: Duration { .seconds(30) }

    private let engine: PriceEngine
    private let activity: ClientActivity
    private let now: TimeSource
    private let interval: Mutex<Duration?>
    /// What was last sent to the engine.
    private let told = Mutex(Duration?.none)

    /// - Parameters:
    ///   - activity: How many clients watch changes.
    ///   - interval: The minimum time between two states that are published because the price has changed; `nil` if streams are never
    ///     opened.
    package init(engine: PriceEngine, activity: ClientActivity, interval: Duration?, now: @escaping TimeSource) {
        self.engine = engine
        self.activity = activity
        self.interval = Mutex(interval)
        self.now = now
    }

    package func change(_ interval: Duration?) async {
        self.interval.withLock { $0 = interval }
        await follow()
    }

    /// Sends to the engine what is wanted now: at the start, and when a client begins to watch changes.
    package func follow() async {
        let wanted = wanted
        told.withLock { $0 = wanted }
        await engine.publishChanges(every: wanted)
    }

    /// A client that has gone is noticed when a state is published.
    package nonisolated func receive(_: PriceState, isTick _: Bool, isFirst _: Bool, kept _: KeptState?) {
        guard wanted != told.withLock(\.self) else { return }
        Task { await follow() }
    }

    nonisolated var wanted: Duration? {
        activity.watchesChanges(lately: Self.linger, at: now().boottime) ? interval.withLock(\.self) : nil
    }
}
