public import BTCPriceCore
import Synchronization

/// A store in memory, that can be made to fail.
public final class MemoryStore: PriceStore {
    private struct State {
        var price: CachedPrice?
        var failure: PriceStoreError?
    }

    private let state: Mutex<State>

    public init(_ price: CachedPrice? = nil) {
        state = Mutex(State(price: price))
    }

    public var price: CachedPrice? { state.withLock { $0.price } }

    public func fail(with error: PriceStoreError?) {
        state.withLock { $0.failure = error }
    }

    public func load() -> StoredPrice { StoredPrice(price: price) }

    public func save(_ price: CachedPrice) throws(PriceStoreError) {
        try state.withLock { state throws(PriceStoreError) in
            if let failure = state.failure { throw failure }
            state.price = price
        }
    }

    public func flush() throws(PriceStoreError) {}
}
