/// What must outlive a restart.
package struct KeptState: Sendable, Hashable {
    /// The last valid price of each currency that had one, in their order.
    package let prices: [CachedPrice]
    /// The cooldowns that a restart must not shorten, by the venue's name.
    package let cooldowns: [String: KeptCooldown]
}

/// Why a state is published.
package enum Publication: Sendable {
    /// A tick has made it. Every watcher gets one reply per tick.
    case tick
    /// The ticks were paused. Every watcher gets it, too.
    case pause
    /// It has changed between the ticks: only the watchers of changes get it.
    case change

    package var isForAllWatchers: Bool { self != .change }
}

/// Receives the states that the engine publishes.
package protocol StateSubscriber: Sendable {
    /// Called for each state, in the order of subscription. Must not block for longer than a write to memory takes.
    /// - Parameters:
    ///   - isFirst: Whether it is the first currency's.
    ///   - kept: What must be stored before the state is shown; `nil` if that has not changed.
    func receive(_ state: PriceState, _ publication: Publication, isFirst: Bool, kept: KeptState?)
}
