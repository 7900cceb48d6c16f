import Synchronization

/// A daemon's sources, shared by the ticks, the observer and the clients. ``SourceRegistry`` contains the rules.
package final class Sources: Sendable {
    private struct State {
        var registry: SourceRegistry
        var cooldownsChanged = false
        /// The sources that replace these.
        var successor: Sources?
    }

    private let state: Mutex<State>
    private let now: TimeSource
    private let jitter: @Sendable () -> Double

    /// - Parameters:
    ///   - sources: The sources with the interval of their currency's ticks, currency by currency, the primary first.
    ///   - now: Reads the clocks.
    ///   - jitter: Returns a random number from 0 to 1 at each call.
    ///   - previous: The sources that these replace. A source with the same address keeps its health, and requests in progress
    ///     report their result to the new sources.
    package init(
        _ sources: [(SourceDescription, Duration)], now: @escaping TimeSource,
        jitter: @escaping @Sendable () -> Double = { .random(in: 0...1) }, after previous: Sources? = nil
    ) {
        let present = now()
        state = Mutex(State(registry: SourceRegistry(sources, at: present.boottime)))
        self.now = now
        self.jitter = jitter
        // In one step, so that requests that end after it report to the new sources.
        previous?.state.withLock { previous in
            state.withLock { $0.registry.inherit(previous.registry, at: present) }
            previous.successor = self
        }
    }

    /// All sources in their current state.
    package var registry: SourceRegistry { state.withLock { $0.registry } }

    /// Continues the cooldowns from an earlier run.
    package func resume(_ cooldowns: [String: KeptCooldown]) {
        let present = now()
        state.withLock { $0.registry.resume(cooldowns, at: present) }
    }

    /// Ends all cooldowns except rate limits, for one source or for all.
    /// - Returns: The sources whose cooldown was ended, and the rate-limited ones that keep theirs; `nil` if no source has that name.
    package func retry(_ name: String?) -> (retried: [String], kept: [Skipped])? {
        let boottime = now().boottime
        return state.withLock { state in
            guard name == nil || state.registry.entries.contains(where: { $0.source.name == name }) else { return nil }
            state.cooldownsChanged = true
            return state.registry.retry(name, at: boottime)
        }
    }

    /// The cooldowns that a restart must not shorten.
    package var cooldowns: [String: KeptCooldown] {
        let present = now()
        return state.withLock { $0.registry.cooldowns(at: present) }
    }

    /// Whether the cooldowns that a restart must not shorten may have changed since the last call.
    func takeCooldownsChanged() -> Bool {
        state.withLock { state in
            defer { state.cooldownsChanged = false }
            return state.cooldownsChanged
        }
    }

    /// Whether the source of a market has a cooldown.
    func isCoolingDown(_ market: Market) -> Bool {
        let boottime = now().boottime
        return state.withLock { $0.registry.isCoolingDown(market, at: boottime) }
    }

    func plan(
        _ requester: Requester, among markets: Set<Market>, atHand: Set<Market> = []
    ) -> SourceRegistry.Plan {
        let boottime = now().boottime
        return state.withLock { state in
            state.registry.looked(at: boottime)
            let plan = state.registry.plan(requester, among: markets, atHand: atHand, at: boottime)
            state.registry.wait(for: plan.waiting, requester, at: boottime)
            return plan
        }
    }

    /// Records a price that is not believed. The source gets a cooldown even if its requests succeed.
    /// - Returns: The cooldown that it started, if any.
    func reject(_ name: String, of markets: [Market], _ error: PriceLoadingError) -> SourceCooldown? {
        let present = now()
        return state.withLock { $0.registry.reject(name, of: markets, error, at: present, jitter: jitter()) }
    }

    /// Records a price that does not agree with the other sources.
    func doubt(_ name: String, of markets: [Market], _ error: PriceLoadingError) {
        let present = now()
        state.withLock { $0.registry.doubt(name, of: markets, error, at: present) }
    }

    /// Counts a request to a market's venue for something other than a price.
    /// - Parameter longest: How long the requester waits.
    /// - Returns: Zero if it is granted; otherwise the time after which to ask again, milliseconds. `nil` if that is too long, if there is a
    ///   cooldown, or no such source.
    func grant(_ market: Market, _ requester: Requester, within longest: Duration) -> Int64? {
        let boottime = now().boottime
        return state.withLock {
            $0.registry.grant(market, requester, within: longest.wholeMilliseconds, at: boottime)
        }
    }

    /// Records that a market's venue refused a request for something other than a price because of its rate limit.
    func limited(_ market: Market, _ error: PriceLoadingError) {
        guard case .rateLimited = error else { return }
        _ = ended(market, .failure(error), latency: .zero)
    }

    /// How long a tick waits for the limits of a source; zero if it does not need to, or would wait too long.
    func wait(for market: Market) -> Duration {
        let boottime = now().boottime
        return state.withLock { $0.registry.wait(for: market, at: boottime) }
    }

    func take(_ market: Market, _ requester: Requester) -> Bool {
        let boottime = now().boottime
        return state.withLock { $0.registry.take(market, requester, at: boottime) }
    }

    /// Records the size of the body of a response.
    func received(_ market: Market, bytes: Int) {
        state.withLock { $0.registry.received(market, bytes: bytes) }
    }

    /// Records the end of a request.
    /// - Returns: The cooldown that it started, if any.
    func ended(_ market: Market, _ outcome: MarketHealth.Outcome, latency: Duration) -> SourceCooldown? {
        let present = now()
        let (cooldown, successor, address) = state.withLock { state in
            let address = state.registry.address(of: market)
            if let successor = state.successor { return (SourceCooldown?.none, Optional(successor), address) }
            let cooldown = state.registry.ended(market, outcome, latency: latency, at: present, jitter: jitter())
            if cooldown?.isBinding == true { state.cooldownsChanged = true }
            return (cooldown, nil, address)
        }
        // A source with another address is another one.
        guard let successor, successor.registry.address(of: market) == address else { return cooldown }
        return successor.ended(market, outcome, latency: latency)
    }
}
