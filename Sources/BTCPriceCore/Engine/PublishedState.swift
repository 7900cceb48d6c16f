/// A state that the engine publishes.
package struct PublishedState: Sendable {
    /// What must outlive a restart.
    package struct Kept: Sendable, Hashable {
        /// The last valid price; `nil` if there was none.
        package let price: CachedPrice?
        /// The cooldowns that a restart must not shorten, by the venue's name.
        package let cooldowns: [String: KeptCooldown]
    }

    package let state: PriceState
    /// Whether a tick has made it: watchers get one reply a tick.
    package let isTick: Bool
    /// What must be kept before the state is shown; `nil` if that has not changed.
    package let kept: Kept?

    package init(state: PriceState, isTick: Bool, kept: Kept?) {
        self.state = state
        self.isTick = isTick
        self.kept = kept
    }
}

/// Receives what the engine publishes.
package protocol StateSubscriber: Sendable {
    /// Called in order, and for one subscriber after the other in the order of their subscriptions. Must not block for longer than a
    /// write to memory takes.
    func receive(_ published: PublishedState)
}
