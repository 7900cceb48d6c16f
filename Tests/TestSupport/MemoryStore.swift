package import BTCPriceCore
import Synchronization

/// A counter for any thread.
package final class Counter: Sendable {
    private let value = Atomic<Int>(0)

    package init() {}

    package var count: Int { value.load(ordering: .acquiring) }
    package func add() { value.add(1, ordering: .acquiringAndReleasing) }
}

/// Collects values on any thread.
package final class Log<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])

    package init() {}

    package var all: [Element] { elements.withLock(\.self) }
    package func add(_ element: Element) { elements.withLock { $0.append(element) } }
}

/// A store in memory that can be made to fail.
package final class MemoryStore: PriceStore {
    private struct State {
        var prices: [CachedPrice] = []
        var cooldowns: [String: KeptCooldown] = [:]
        var failure: PriceStoreError?
    }

    private let state: Mutex<State>

    package init(_ price: CachedPrice? = nil) {
        state = Mutex(State(prices: price.map { [$0] } ?? []))
    }

    /// The number of saves of a price.
    package let saves = Counter()

    package var prices: [CachedPrice] { state.withLock { $0.prices } }
    /// The price in the first currency.
    package var price: CachedPrice? { prices.first }
    package var cooldowns: [String: KeptCooldown] { state.withLock { $0.cooldowns } }

    package func fail(with error: PriceStoreError?) {
        state.withLock { $0.failure = error }
    }

    package func load() -> StoredPrice { StoredPrice(prices: prices, cooldowns: cooldowns) }

    package func save(_ prices: [CachedPrice], cooldowns: [String: KeptCooldown]) throws(PriceStoreError) {
        try state.withLock { state throws(PriceStoreError) in
            if let failure = state.failure { throw failure }
            state.prices = prices
            state.cooldowns = cooldowns
        }
        saves.add()
    }

    package func flush() throws(PriceStoreError) {}
}
