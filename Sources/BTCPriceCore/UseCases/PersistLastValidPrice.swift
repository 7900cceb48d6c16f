/// Keeps the last valid price, so that a restart can show it.
public struct PersistLastValidPrice: Sendable {
    private let store: any PriceStore

    /// - Parameter store: Where it is kept.
    public init(store: any PriceStore) {
        self.store = store
    }

    /// - Parameter price: The price to keep; the caller has checked it.
    public func execute(_ price: CachedPrice) throws(PriceStoreError) {
        try store.save(price)
    }
}
