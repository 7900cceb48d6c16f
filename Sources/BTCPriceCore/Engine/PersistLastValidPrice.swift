import Synchronization

/// Stores the last valid price, so that a restart can show it. The first subscriber: a price is stored before a client sees it.
package final class PersistLastValidPrice: StateSubscriber {
    private let store: any PriceStore
    private let report: @Sendable (PriceEvent) -> Void
    private let lastFailure = Mutex<PriceStoreError?>(nil)

    /// - Parameter report: Reports to the operator when storing begins to fail, and when it works again.
    package init(store: any PriceStore, report: @escaping @Sendable (PriceEvent) -> Void) {
        self.store = store
        self.report = report
    }

    /// Why the last price can't be stored; `nil` while it can.
    package var failure: PriceStoreError? { lastFailure.withLock(\.self) }

    package func receive(_: PriceState, _: Publication, isFirst: Bool, kept: KeptState?) {
        guard let kept else { return }
        do {
            try store.save(kept.prices, cooldowns: kept.cooldowns)
            if lastFailure.withLock({ $0.take() }) != nil { report(.saveRecovered) }
        } catch {
            lastFailure.withLock { $0 = error }
            report(.saveFailed(error))
        }
    }
}
