import Synchronization

/// When the exchanges' streams are open.
package enum StreamPolicy: String, Sendable, Hashable, CaseIterable {
    /// While the interval of the ticks is shorter than a second, or a client watches changes.
    case auto
    /// While the ticks run.
    case always
    case never
}

/// Opens the streams while somebody needs prices between the ticks, and closes them 30 s after nobody does any more.
package actor StreamControl: StateSubscriber {
    /// The settings from the configuration.
    package struct Settings: Sendable, Hashable {
        package let policy: StreamPolicy
        /// The shortest interval of the ticks.
        package let interval: Duration
        /// The minimum time between two states that are published because the price has changed.
        package let minimumInterval: Duration

        package init(policy: StreamPolicy, interval: Duration, minimumInterval: Duration) {
            self.policy = policy
            self.interval = interval
            self.minimumInterval = minimumInterval
        }
    }

    /// How long the streams stay open without a client that watches changes.
    static var linger: Duration { .seconds(30) }

    private let engine: PriceEngine
    private let activity: ClientActivity
    private let now: TimeSource
    private let settings: Mutex<Settings>
    /// What was last sent to the engine.
    private let told = Mutex(Streaming.never)

    /// - Parameters:
    ///   - engine: Holds the streams.
    ///   - activity: How many clients watch changes.
    ///   - now: Reads the clocks.
    package init(engine: PriceEngine, activity: ClientActivity, settings: Settings, now: @escaping TimeSource) {
        self.engine = engine
        self.activity = activity
        self.settings = Mutex(settings)
        self.now = now
    }

    /// Changes the settings.
    package func change(_ settings: Settings) async {
        self.settings.withLock { $0 = settings }
        await follow()
    }

    /// Sends to the engine what is wanted now: at the start, and when a client begins to watch changes.
    package func follow() async {
        let wanted = wanted
        told.withLock { $0 = wanted }
        await engine.change(wanted)
    }

    /// Clients come and go between the ticks; a tick notices that they are gone.
    package nonisolated func receive(_: PriceState, isTick: Bool, isFirst: Bool, kept: KeptState?) {
        guard isTick, isFirst, wanted != told.withLock(\.self) else { return }
        Task { await follow() }
    }

    nonisolated var wanted: Streaming {
        let settings = settings.withLock(\.self)
        let needsChanges = activity.watchesChanges(lately: Self.linger, at: now().boottime)
        switch settings.policy {
        case .never: return .never
        case .always, .auto:
            if needsChanges { return .forChanges(every: settings.minimumInterval) }
            return settings.policy == .always || settings.interval < .seconds(1) ? .forTicks : .never
        }
    }
}

/// What the streams are currently used for.
package enum Streaming: Sendable, Hashable {
    /// They are closed.
    case never
    /// They are open, and the ticks publish the price.
    case forTicks
    /// They are open, and a change of the price is published between the ticks, too: at most once in this time.
    case forChanges(every: Duration)

    var isOpen: Bool { self != .never }

    var minimumInterval: Duration? {
        if case .forChanges(let interval) = self { interval } else { nil }
    }
}
