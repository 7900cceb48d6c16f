/// Returns the price to a client.
package struct GetPrice: Sendable {
    private let engine: PriceEngine
    private let now: TimeSource

    /// - Parameters:
    ///   - engine: Holds the price.
    ///   - now: Reads the clock that the freshness is measured with.
    package init(engine: PriceEngine, now: @escaping TimeSource) {
        self.engine = engine
        self.now = now
    }

    /// - Parameters:
    ///   - policy: Where the price may come from.
    ///   - currency: The currency; `nil` for the first one.
    /// - Throws: With `noCache`, why no source gave a price. With any policy, if the task was cancelled.
    package func execute(_ policy: CachePolicy = .localFirst, in currency: Currency? = nil) async throws(FetchFailure)
        -> PriceState
    {
        let held = await state(in: currency)
        if policy == .localFirst, held.quote != nil { return held.aged(at: now().boottime) }
        do {
            return try await engine.refresh(currency).aged(at: now().boottime)
        } catch {
            if policy == .noCache || error.isCancelled { throw error }
            var state = await state(in: currency)
            // Why there is no newer one: the fetch for this client failed, not the tick before it.
            state.failure = error.description
            if state.quote != nil { state.freshness = .stale }
            return state.aged(at: now().boottime)
        }
    }

    private func state(in currency: Currency?) async -> PriceState {
        if let currency, let state = await engine.state(of: currency) { return state }
        return await engine.state
    }
}

/// Where a price may come from.
package enum CachePolicy: String, Sendable, Hashable, CaseIterable {
    /// The held price; request one only if none is held. The default.
    case localFirst
    /// Request one now; return the held price if that fails.
    case remoteFirst
    /// Request one now or fail.
    case noCache
}
