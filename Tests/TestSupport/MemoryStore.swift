package import BTCPriceCore
import Synchronization

/// Counts, from any thread.
package final class Counter: Sendable {
    private let value = Atomic<Int>(0)

    package init() {}

    package var count: Int { value.load(ordering: .acquiring) }
    package func add() { value.add(1, ordering: .acquiringAndReleasing) }
}

/// A store in memory, that can be made to fail.
package final class MemoryStore: PriceStore {
    private struct State {
        var price: CachedPrice?
        var cooldowns: [String: KeptCooldown] = [:]
        var failure: PriceStoreError?
    }

    private let state: Mutex<State>

    package init(_ price: CachedPrice? = nil) {
        state = Mutex(State(price: price))
    }

    /// How often a price was saved.
    package let saves = Counter()

    package var price: CachedPrice? { state.withLock { $0.price } }
    package var cooldowns: [String: KeptCooldown] { state.withLock { $0.cooldowns } }

    package func fail(with error: PriceStoreError?) {
        state.withLock { $0.failure = error }
    }

    package func load() -> StoredPrice { StoredPrice(price: price, cooldowns: cooldowns) }

    package func save(_ price: CachedPrice?, cooldowns: [String: KeptCooldown]) throws(PriceStoreError) {
        try state.withLock { state throws(PriceStoreError) in
            if let failure = state.failure { throw failure }
            state.price = price
            state.cooldowns = cooldowns
        }
        saves.add()
    }

    package func flush() throws(PriceStoreError) {}
}
