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
        var rests: [String: KeptRest] = [:]
        var failure: PriceStoreError?
    }

    private let state: Mutex<State>

    package init(_ price: CachedPrice? = nil) {
        state = Mutex(State(price: price))
    }

    /// How often a price was saved.
    package let saves = Counter()

    package var price: CachedPrice? { state.withLock { $0.price } }
    package var rests: [String: KeptRest] { state.withLock { $0.rests } }

    package func fail(with error: PriceStoreError?) {
        state.withLock { $0.failure = error }
    }

    package func load() -> StoredPrice { StoredPrice(price: price, rests: rests) }

    package func save(_ price: CachedPrice?, rests: [String: KeptRest]) throws(PriceStoreError) {
        try state.withLock { state throws(PriceStoreError) in
            if let failure = state.failure { throw failure }
            state.price = price
            state.rests = rests
        }
        saves.add()
    }

    package func flush() throws(PriceStoreError) {}
}
