import Synchronization

/// Opens the exchanges' streams of a currency while a client watches its changes, and closes them 30 s after none does any more.
package actor StreamControl: StateSubscriber {
    /// How long the streams stay open without a client that watches changes.
    static var linger: Duration { .seconds(30) }

    private let engine: PriceEngine
    private let activity: ClientActivity
    private let now: TimeSource
    /// The minimum time between two states that are published because the price has changed; `nil` if streams are never opened.
    private let interval = Mutex(Duration?.none)
    /// What was last sent to the engine.
    private let told = Mutex(WatchedChanges?.none)

    /// - Parameter activity: Which changes clients watch.
    package init(engine: PriceEngine, activity: ClientActivity, now: @escaping TimeSource) {
        self.engine = engine
        self.activity = activity
        self.now = now
    }

    /// Changes the minimum time between two published changes of the price; `nil` for no streams.
    package func change(_ interval: Duration?) async {
        self.interval.withLock { $0 = interval }
        await follow()
    }

    /// Sends to the engine what is wanted now: after a change of the interval, and when a client begins to watch changes.
    package func follow() async {
        // Another call may have a newer wish meanwhile: the engine has the newest in the end.
        while case let wanted = wanted, told.withLock({ $0 != wanted }) {
            told.withLock { $0 = wanted }
            await engine.publish(wanted)
        }
    }

    /// A client that has gone is noticed when a state is published.
    package nonisolated func receive(_: PriceState, _: Publication, isFirst _: Bool, kept _: KeptState?) {
        guard wanted != told.withLock(\.self) else { return }
        Task { await follow() }
    }

    nonisolated var wanted: WatchedChanges? {
        let currencies = activity.watchedChanges(lately: Self.linger, at: now().boottime)
        guard !currencies.isEmpty, let interval = interval.withLock(\.self) else { return nil }
        return WatchedChanges(interval: interval, currencies: currencies)
    }
}

/// The changes between the ticks that are published.
package struct WatchedChanges: Sendable, Hashable {
    /// The minimum time between two published changes of a currency.
    let interval: Duration
    /// The currencies whose changes are published: the codes.
    let currencies: Set<String>

    package init(interval: Duration, currencies: Set<String>) {
        self.interval = interval
        self.currencies = currencies
    }

    /// The interval of a currency's changes; `nil` if they are not published.
    func interval(of currency: Currency) -> Duration? { currencies.contains(currency.rawValue) ? interval : nil }
}
