extension PriceEngine {
    /// Returns the price to a client.
    /// - Parameters:
    ///   - policy: Where the price may come from.
    ///   - currency: The currency; `nil` for the first one.
    ///   - maxAge: The age above which the caller does not want a held price, milliseconds. Before the first tick since the ticks were
    ///     started or resumed, a price is then requested. The result may still be older.
    /// - Throws: With `noCache`, why no source gave a price. With any policy, if the task was cancelled, or if the currency is not kept.
    package func price(
        _ policy: CachePolicy = .localFirst, in currency: Currency? = nil, maxAge: Int64? = nil
    ) async throws(FetchFailure) -> PriceState {
        guard let present = held(currency) else { throw .notKept }
        let boottime = now().boottime
        let isWanted = maxAge.map { present.isWithin($0, at: boottime) || !present.ticks.awaitsTick } ?? true
        if policy == .localFirst, present.quote != nil, isWanted { return present.aged(at: boottime) }
        do {
            return try await refresh(currency).aged(at: now().boottime)
        } catch {
            // A reload may have dropped the currency meanwhile.
            guard var state = held(currency) else { throw .notKept }
            if policy == .noCache || error.isCancelled { throw error }
            // Why there is no newer one: the fetch for this client failed, not the tick before it; unless nothing was requested for it.
            let isReason = !error.failures.isEmpty || state.failure == nil
            state.becomeStale(because: isReason ? error.description : state.failure)
            return state
        }
    }

    /// The state of a currency, of the first one if none is named; `nil` if it is not kept.
    private func held(_ currency: Currency?) -> PriceState? { state(of: currency ?? first.currency) }
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
