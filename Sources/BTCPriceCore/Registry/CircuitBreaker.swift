/// A circuit breaker: closed, then open for a cooldown, then half open until one request decides. A pure value.
struct CircuitBreaker: Sendable {
    enum State: Sendable, Hashable {
        case closed
        case open
        /// The cooldown has ended. The result of the next request decides.
        case halfOpen
    }

    /// The current cooldown, or the last one if no request has succeeded since; `nil` while closed.
    private(set) var cooldown: SourceCooldown?
    private var consecutiveFailures = 0
    private var category: PriceLoadingError.Category?

    func state(at boottime: BootTime) -> State {
        guard let cooldown else { return .closed }
        return boottime < cooldown.until.boottime ? .open : .halfOpen
    }

    /// The combined state of this breaker and another: open if either is open, closed if both are closed, otherwise half open.
    func state(at boottime: BootTime, _ other: CircuitBreaker) -> State {
        let states = (state(at: boottime), other.state(at: boottime))
        if states.0 == .open || states.1 == .open { return .open }
        return states == (.closed, .closed) ? .closed : .halfOpen
    }

    /// Starts a cooldown. Consecutive cooldowns of the same category grow longer.
    mutating func open(
        _ error: PriceLoadingError, at now: ObservationTime, jitter: @autoclosure () -> Double
    ) -> SourceCooldown {
        if category != error.category { consecutiveFailures = 0 }
        category = error.category
        consecutiveFailures += 1
        let length = CooldownRule.length(error, consecutiveFailures: consecutiveFailures, jitter: jitter())
        let started = SourceCooldown(
            reason: error, since: now, until: now.advanced(by: length), consecutiveFailures: consecutiveFailures)
        cooldown = started
        return started
    }

    /// Closes the breaker after a successful request.
    mutating func close() { cooldown = nil }

    /// Forgets the earlier failures: the next cooldown is short again.
    mutating func forget() { consecutiveFailures = 0 }

    /// Ends the cooldown and forgets the earlier failures.
    mutating func reset() {
        close()
        forget()
    }

    /// Continues a cooldown from an earlier run.
    mutating func resume(_ kept: KeptCooldown, at now: ObservationTime) {
        var left = min(kept.remaining(at: now), CooldownRule.longestTold)
        // An operator may restart the daemon after fixing the cause of a refusal, so wait no longer than a first cooldown.
        if kept.cooldown.reason.category == .refused { left = min(left, CooldownRule.bounds(.refused).first) }
        guard left > .zero else { return }
        consecutiveFailures = kept.cooldown.consecutiveFailures
        category = kept.cooldown.reason.category
        let since = kept.cooldown.since
        // Of another boot, only the wall clock says when it began.
        let ago = kept.isOfThisBoot ? now.boottime - since.boottime : now.wall.milliseconds - since.wall.milliseconds
        cooldown = SourceCooldown(
            reason: kept.cooldown.reason, since: now.advanced(by: .milliseconds(-max(0, ago))),
            until: now.advanced(by: left), consecutiveFailures: consecutiveFailures)
    }
}
