/// Keeps the last valid price, so that a restart can show it.
public struct PersistLastValidPrice: Sendable {
    private let store: any PriceStore

    /// - Parameter store: Where it is kept.
    public init(store: any PriceStore) {
        self.store = store
    }

    /// - Parameters:
    ///   - price: The price to keep; the caller has checked it. `nil` where there never was one.
    ///   - rests: The rests that a restart must not cut short, by the source's name.
    public func execute(_ price: CachedPrice?, rests: [String: KeptRest]) throws(PriceStoreError) {
        try store.save(price, rests: rests)
    }
}
