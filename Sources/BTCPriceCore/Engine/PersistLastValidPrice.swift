import Synchronization

/// Keeps the last valid price, so that a restart can show it. The first subscriber: what a client has seen was kept before.
package final class PersistLastValidPrice: StateSubscriber {
    private let store: any PriceStore
    private let report: @Sendable (PriceEvent) -> Void
    private let lastFailure = Mutex<PriceStoreError?>(nil)

    /// - Parameters:
    ///   - store: Where it is kept.
    ///   - report: Reports to the operator when keeping begins to fail, and when it works again.
    package init(store: any PriceStore, report: @escaping @Sendable (PriceEvent) -> Void) {
        self.store = store
        self.report = report
    }

    /// Why the last price can't be kept; `nil` while it can.
    package var failure: PriceStoreError? { lastFailure.withLock(\.self) }

    package func receive(_: PriceState, isTick: Bool, isFirst: Bool, kept: KeptState?) {
        guard let kept else { return }
        do {
            try store.save(kept.prices, cooldowns: kept.cooldowns)
            let hadFailed = lastFailure.withLock { failure in
                defer { failure = nil }
                return failure != nil
            }
            if hadFailed { report(.saveRecovered) }
        } catch {
            lastFailure.withLock { $0 = error }
            report(.saveFailed(error))
        }
    }
}
