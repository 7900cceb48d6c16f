/// Returns the price to a client.
package struct GetPrice<C: Clock>: Sendable where C.Duration == Duration {
    private let engine: PriceEngine<C>
    private let now: TimeSource

    /// - Parameters:
    ///   - engine: Holds the price.
    ///   - now: Reads the clock that the freshness is measured by.
    package init(engine: PriceEngine<C>, now: @escaping TimeSource) {
        self.engine = engine
        self.now = now
    }

    /// - Parameter policy: Where the price may come from.
    /// - Throws: With `noCache`, why no source gave a price; with any policy if the task was cancelled.
    package func execute(_ policy: CachePolicy = .localFirst) async throws(FetchFailure) -> PriceState {
        let held = await engine.state
        if policy == .localFirst, held.quote != nil { return held.aged(at: now().boottime) }
        do {
            return try await engine.refresh().aged(at: now().boottime)
        } catch {
            if policy == .noCache || error.isCancelled { throw error }
            var state = await engine.state
            // Why there is no newer one: the fetch for this client failed, not the tick before it.
            state.failure = error.description
            if state.quote != nil { state.freshness = .stale }
            return state.aged(at: now().boottime)
        }
    }
}
