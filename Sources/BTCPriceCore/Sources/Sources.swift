import Synchronization

/// The sources of a daemon, shared by all who ask them: the tick, the observer, clients. The rules are ``SourceBoard``'s.
public final class Sources: Sendable {
    private struct State {
        var board: SourceBoard
        var restsChanged = false
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
    public init(
        _ sources: [(source: PriceSource, address: String)], interval: Duration, now: @escaping TimeSource,
        jitter: @escaping @Sendable () -> Double = { .random(in: 0...1) }, after previous: Sources? = nil
    ) {
        state = Mutex(State(board: SourceBoard(sources, interval: interval)))
        self.now = now
        self.jitter = jitter
        clocks = previous?.clocks ?? VenueClocks()
        let present = now()
        // In one step: what ends after it is told to these.
        previous?.state.withLock { previous in
            state.withLock { $0.board.inherit(previous.board, at: present) }
            previous.successor = self
        }
    }

    /// All of them as they are now.
    public var board: SourceBoard { state.withLock { $0.board } }

    /// The names of those that don't tell what a USDT is worth.
    var withoutTetherRate: Set<String> {
        Set(board.entries.map(\.source).filter { !$0.tells.contains(.tetherRate) }.map(\.name))
    }

    /// Goes on with the rests that an earlier run began.
    public func resume(_ rests: [String: KeptRest]) {
        let present = now()
        state.withLock { $0.board.resume(rests, at: present) }
    }

    /// Forgets the rests that no exchange has asked for, of one source or of all.
    /// - Returns: The sources whose rest is over now, and those that an exchange has told to stay away; `nil` if none is named so.
    public func retry(_ name: String?) -> (retried: [String], kept: [PassedOver])? {
        let boottime = now().boottime
        return state.withLock { state in
            guard name == nil || state.board.entries.contains(where: { $0.source.name == name }) else { return nil }
            state.restsChanged = true
            return state.board.retry(name, at: boottime)
        }
    }

    /// The rests that a restart must not cut short.
    public var rests: [String: KeptRest] {
        let present = now()
        return state.withLock { $0.board.rests(at: present) }
    }

    /// Whether a rest that a restart must not cut short has begun since this was asked last.
    func takeRestsChanged() -> Bool {
        state.withLock { state in
            defer { state.restsChanged = false }
            return state.restsChanged
        }
    }

    func plan(_ asker: Asker, excluding excluded: Set<String> = []) -> SourceBoard.Plan {
        let boottime = now().boottime
        return state.withLock { $0.board.plan(asker, excluding: excluded, at: boottime) }
    }

    /// Whether USDT markets are passed over from now on. The observer goes on asking them.
    func passOverTether(_ isOffPeg: Bool) {
        state.withLock { $0.board.passesOverTether = isOffPeg }
    }

    /// A source gave a price that is not believed: it rests, however well it answers.
    /// - Returns: The rest that this began, if it began one.
    func distrust(_ name: String, _ error: PriceLoadingError) -> SourceRest? {
        let present = now()
        return state.withLock { $0.board.distrust(name, error, at: present, jitter: jitter()) }
    }

    /// A source gave a price that does not fit the others'.
    func doubt(_ name: String, _ error: PriceLoadingError) {
        let present = now()
        state.withLock { $0.board.doubt(name, error, at: present) }
    }

    func take(_ index: Int, _ asker: Asker) -> Bool {
        let boottime = now().boottime
        return state.withLock { $0.board.take(index, asker, at: boottime) }
    }

    /// A question has ended.
    /// - Returns: The rest that it began, if it began one.
    func ended(_ index: Int, _ outcome: SourceHealth.Outcome, latency: Duration) -> SourceRest? {
        let present = now()
        let (rest, successor, entry) = state.withLock { state in
            let entry = state.board.entries[index]
            if let successor = state.successor { return (SourceRest?.none, Optional(successor), entry) }
            let rest = state.board.ended(index, outcome, latency: latency, at: present, jitter: jitter())
            if rest?.isBinding == true { state.restsChanged = true }
            return (rest, nil, entry)
        }
        guard let successor else { return rest }
        let place = successor.board.index(of: entry.source.name, at: entry.address)
        return place.flatMap { successor.ended($0, outcome, latency: latency) }
    }
}
