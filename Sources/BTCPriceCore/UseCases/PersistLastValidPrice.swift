/// Keeps the last valid price, so that a restart can show it.
package struct PersistLastValidPrice: Sendable {
    private let store: any PriceStore

    /// - Parameter store: Where it is kept.
    package init(store: any PriceStore) {
        self.store = store
    }

    /// - Parameters:
    ///   - price: The price to keep; the caller has checked it. `nil` where there never was one.
    ///   - cooldowns: The rests that a restart must not cut short, by the source's name.
    package func execute(_ price: CachedPrice?, cooldowns: [String: KeptCooldown]) throws(PriceStoreError) {
        try store.save(price, cooldowns: cooldowns)
    }
}
