import Synchronization

/// Whether the engine should process a stream's message: not if nobody watches changes, and not again for a market that it is about to
/// process. Used on any thread.
final class WantedChanges: Sendable {
    private struct State {
        var areWanted = false
        var pending: Set<Market> = []
    }

    private let state = Mutex(State())

    func set(_ areWanted: Bool) {
        state.withLock { $0.areWanted = areWanted }
    }

    /// - Returns: Whether the caller should have the engine process the market, and then call ``end(_:)``.
    func begin(_ market: Market) -> Bool {
        state.withLock { $0.areWanted && $0.pending.insert(market).inserted }
    }

    /// Records that the engine now processes the market.
    func end(_ market: Market) {
        state.withLock { _ = $0.pending.remove(market) }
    }
}
