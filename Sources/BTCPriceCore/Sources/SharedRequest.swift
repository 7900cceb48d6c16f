import Synchronization

/// One request for several markets of a venue. A caller that comes while it is in progress, or while the venue would respond from its
/// cache, gets the same response.
package final class SharedRequest: Sendable {
    private typealias Waiter = CheckedContinuation<Result<[LoadedPrice], PriceLoadingError>, Never>

    private struct State {
        var task: Task<Void, Never>?
        var waiters: [UInt64: Waiter] = [:]
        var lastID: UInt64 = 0
        var newest: (prices: [LoadedPrice], at: Int64)?
    }

    private let request: @Sendable () async throws(PriceLoadingError) -> [LoadedPrice]
    private let cacheTime: Int64
    private let now: TimeSource
    private let state = Mutex(State())

    /// - Parameters:
    ///   - cacheTime: How long the venue's servers cache a response.
    ///   - now: Reads the clocks.
    ///   - request: Sends the request.
    package init(
        cacheTime: Duration, now: @escaping TimeSource,
        request: @escaping @Sendable () async throws(PriceLoadingError) -> [LoadedPrice]
    ) {
        self.cacheTime = cacheTime.wholeMilliseconds
        self.now = now
        self.request = request
    }

    /// Whether ``load(after:)`` would send a request.
    package func isNeeded(after boottime: Int64) -> Bool {
        let present = now().boottime
        return state.withLock { $0.task == nil && cached($0, after: boottime, at: present) == nil }
    }

    /// The prices of all its markets. Cancelling the task of the last caller ends the request.
    /// - Parameter boottime: The arrival of the response that the caller knows, `CLOCK_BOOTTIME` in milliseconds: it wants a newer one.
    package func load(after boottime: Int64) async throws(PriceLoadingError) -> [LoadedPrice] {
        let present = now().boottime
        let (known, id) = state.withLock { state in
            state.lastID += 1
            return (state.task == nil ? cached(state, after: boottime, at: present) : nil, state.lastID)
        }
        if let known { return known }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (waiter: Waiter) in
                let isCancelled = state.withLock { state in
                    if Task.isCancelled { return true }
                    state.waiters[id] = waiter
                    if state.task == nil { state.task = Task { await self.run() } }
                    return false
                }
                if isCancelled { waiter.resume(returning: .failure(.cancelled)) }
            }
        } onCancel: {
            let leaving = state.withLock { state in
                let waiter = state.waiters.removeValue(forKey: id)
                if waiter != nil, state.waiters.isEmpty { state.task?.cancel() }
                return waiter
            }
            leaving?.resume(returning: .failure(.cancelled))
        }
        return try result.get()
    }

    private func run() async {
        var result: Result<[LoadedPrice], PriceLoadingError>
        do throws(PriceLoadingError) {
            result = .success(try await request())
        } catch {
            result = .failure(error)
        }
        let present = now()
        if case .success(var prices) = result {
            for index in prices.indices { prices[index].observed = present }
            result = .success(prices)
        }
        let waiters = state.withLock { state -> [Waiter] in
            state.task = nil
            if case .failure(.cancelled) = result, !state.waiters.isEmpty {
                // They came after the last caller before them had left.
                state.task = Task { await self.run() }
                return []
            }
            state.newest = (try? result.get()).map { ($0, present.boottime) }
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume(returning: result) }
    }

    private func cached(_ state: borrowing State, after boottime: Int64, at now: Int64) -> [LoadedPrice]? {
        state.newest.flatMap { $0.at > boottime && now - $0.at < cacheTime ? $0.prices : nil }
    }
}
