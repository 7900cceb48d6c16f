/// Returns the price to a client.
package struct GetPrice: Sendable {
    private let engine: PriceEngine
    private let now: TimeSource

    package init(engine: PriceEngine, now: @escaping TimeSource) {
        self.engine = engine
        self.now = now
    }

    /// - Parameters:
    ///   - policy: Where the price may come from.
    ///   - currency: The currency; `nil` for the first one.
    ///   - maxAge: The age above which the caller does not want a held price, milliseconds. Before the first tick since the ticks were
    ///     started or resumed, a price is then requested. The result may still be older.
    /// - Throws: With `noCache`, why no source gave a price. With any policy, if the task was cancelled.
    package func execute(
        _ policy: CachePolicy = .localFirst, in currency: Currency? = nil, maxAge: Int64? = nil
    ) async throws(FetchFailure) -> PriceState {
        let held = await state(in: currency)
        let boottime = now().boottime
        let isWanted = maxAge.map { held.isWithin($0, at: boottime) || !held.awaitsTick } ?? true
        if policy == .localFirst, held.quote != nil, isWanted { return held.aged(at: boottime) }
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
