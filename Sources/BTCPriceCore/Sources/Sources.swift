import Synchronization

/// The sources of a daemon, shared by all who ask them: the tick, the observer, clients. The rules are ``SourceBoard``'s.
package final class Sources: Sendable {
    private struct State {
        var registry: SourceRegistry
        var cooldownsChanged = false
        /// Those that are asked instead of these from some time on.
        var successor: Sources?
    }

    private let state: Mutex<State>
    private let now: TimeSource
    private let jitter: @Sendable () -> Double
    /// What the venues' clocks say of ours.
    let clocks: VenueClocks

    /// - Parameters:
    ///   - sources: The sources with the base addresses they are asked at, the primary first.
    ///   - interval: The ticks' interval.
    ///   - now: Reads the clocks.
    ///   - jitter: From 0 to 1, another one at each call.
    ///   - previous: Those that were asked before: a source that is still asked at the same address keeps its health, and what is
    ///     under way there is told to the new ones when it ends.
    package init(
        _ sources: [(source: PriceSource, address: String)], interval: Duration, now: @escaping TimeSource,
        jitter: @escaping @Sendable () -> Double = { .random(in: 0...1) }, after previous: Sources? = nil
    ) {
        state = Mutex(State(registry: SourceRegistry(sources, interval: interval)))
        self.now = now
        self.jitter = jitter
        clocks = previous?.clocks ?? VenueClocks()
        let present = now()
        // In one step: what ends after it is told to these.
        previous?.state.withLock { previous in
            state.withLock { $0.registry.inherit(previous.registry, at: present) }
            previous.successor = self
        }
    }

    /// All of them as they are now.
    package var registry: SourceRegistry { state.withLock { $0.registry } }

    /// The names of those that don't tell what a USDT is worth.
    var withoutTetherRate: Set<String> {
        Set(registry.entries.map(\.source).filter { !$0.tells.contains(.tetherRate) }.map(\.name))
    }

    /// Goes on with the rests that an earlier run began.
    package func resume(_ cooldowns: [String: KeptCooldown]) {
        let present = now()
        state.withLock { $0.registry.resume(cooldowns, at: present) }
    }

    /// Forgets the rests that no exchange has asked for, of one source or of all.
    /// - Returns: The sources whose rest is over now, and those that an exchange has told to stay away; `nil` if none is named so.
    package func retry(_ name: String?) -> (retried: [String], kept: [Skipped])? {
        let boottime = now().boottime
        return state.withLock { state in
            guard name == nil || state.registry.entries.contains(where: { $0.source.name == name }) else { return nil }
            state.cooldownsChanged = true
            return state.registry.retry(name, at: boottime)
        }
    }

    /// The rests that a restart must not cut short.
    package var cooldowns: [String: KeptCooldown] {
        let present = now()
        return state.withLock { $0.registry.cooldowns(at: present) }
    }

    /// Whether a rest that a restart must not cut short has begun since this was asked last.
    func takeRestsChanged() -> Bool {
        state.withLock { state in
            defer { state.cooldownsChanged = false }
            return state.cooldownsChanged
        }
    }

    func plan(_ requester: Requester, excluding excluded: Set<String> = []) -> SourceRegistry.Plan {
        let boottime = now().boottime
        return state.withLock { $0.registry.plan(requester, excluding: excluded, at: boottime) }
    }

    /// Whether USDT markets are passed over from now on. The observer goes on asking them.
    func passOverTether(_ isOffPeg: Bool) {
        state.withLock { $0.registry.passesOverTether = isOffPeg }
    }

    /// A source gave a price that is not believed: it rests, however well it answers.
    /// - Returns: The rest that this began, if it began one.
    func distrust(_ name: String, _ error: PriceLoadingError) -> SourceCooldown? {
        let present = now()
        return state.withLock { $0.registry.distrust(name, error, at: present, jitter: jitter()) }
    }

    /// A source gave a price that does not fit the others'.
    func doubt(_ name: String, _ error: PriceLoadingError) {
        let present = now()
        state.withLock { $0.registry.doubt(name, error, at: present) }
    }

    func take(_ index: Int, _ requester: Requester) -> Bool {
        let boottime = now().boottime
        return state.withLock { $0.registry.take(index, requester, at: boottime) }
    }

    /// A question has ended.
    /// - Returns: The rest that it began, if it began one.
    func ended(_ index: Int, _ outcome: SourceHealth.Outcome, latency: Duration) -> SourceCooldown? {
        let present = now()
        let (cooldown, successor, entry) = state.withLock { state in
            let entry = state.registry.entries[index]
            if let successor = state.successor { return (SourceCooldown?.none, Optional(successor), entry) }
            let cooldown = state.registry.ended(index, outcome, latency: latency, at: present, jitter: jitter())
            if cooldown?.isBinding == true { state.cooldownsChanged = true }
            return (cooldown, nil, entry)
        }
        guard let successor else { return cooldown }
        let place = successor.registry.index(of: entry.source.name, at: entry.address)
        return place.flatMap { successor.ended($0, outcome, latency: latency) }
    }
}
