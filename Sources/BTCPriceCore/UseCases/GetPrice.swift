/// Where an answer may come from.
package enum CachePolicy: String, Sendable, Hashable, CaseIterable {
    /// What we hold; fetch only where we hold nothing. The default.
    case localFirst
    /// Fetch now; what we hold where that fails.
    case remoteFirst
    /// Fetch now or fail.
    case noCache
}

/// Answers a client's question for the price.
package struct GetPrice<C: Clock>: Sendable where C.Duration == Duration {
    private let keeper: PriceKeeper<C>
    private let now: TimeSource

    /// - Parameters:
    ///   - keeper: Holds the price.
    ///   - now: Reads the clock that the answer's freshness is judged by.
    package init(keeper: PriceKeeper<C>, now: @escaping TimeSource) {
        self.keeper = keeper
        self.now = now
    }

    /// - Parameter policy: Where the answer may come from.
    /// - Throws: With `noCache`, why no source gave a price; with any policy if the task was cancelled.
    package func execute(_ policy: CachePolicy = .localFirst) async throws(FetchFailure) -> PriceState {
        let held = await keeper.state
        if policy == .localFirst, held.quote != nil { return held.told(at: now().boottime) }
        do {
            return try await keeper.refresh().told(at: now().boottime)
        } catch {
            if policy == .noCache || error.isCancelled { throw error }
            var state = await keeper.state
            // Why there is no newer one: the fetch that this client asked for, not the tick before it.
            state.failure = error.description
            if state.quote != nil { state.freshness = .stale }
            return state.told(at: now().boottime)
        }
    }
}
