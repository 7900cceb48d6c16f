import Synchronization

/// Whether the engine is to look at a stream's message: not if nobody watches changes, and not once more for a market that it is about to
/// look at. Used on any thread.
final class WantedChanges: Sendable {
    private struct State {
        var areWanted = false
        var pending: Set<Market> = []
    }

    private let state = Mutex(State())

    func set(_ areWanted: Bool) {
        state.withLock { $0.areWanted = areWanted }
    }

    /// - Returns: Whether the caller has the engine look at the market, and then calls ``end(_:)``.
    func begin(_ market: Market) -> Bool {
        state.withLock { $0.areWanted && $0.pending.insert(market).inserted }
    }

    /// The engine looks at the market now.
    func end(_ market: Market) {
        state.withLock { _ = $0.pending.remove(market) }
    }
}
