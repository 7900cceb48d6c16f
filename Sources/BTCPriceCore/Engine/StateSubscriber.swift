/// What must outlive a restart.
package struct KeptState: Sendable, Hashable {
    /// The last valid price of each currency that had one, in their order.
    package let prices: [CachedPrice]
    /// The cooldowns that a restart must not shorten, by the venue's name.
    package let cooldowns: [String: KeptCooldown]
}

/// Receives the states that the engine publishes.
package protocol StateSubscriber: Sendable {
    /// Called for each state, in the order of subscription. Must not block for longer than a write to memory takes.
    /// - Parameters:
    ///   - isTick: Whether a tick has made it: watchers get one reply per tick.
    ///   - isFirst: Whether it is the first currency's.
    ///   - kept: What must be stored before the state is shown; `nil` if that has not changed.
    func receive(_ state: PriceState, isTick: Bool, isFirst: Bool, kept: KeptState?)
}
