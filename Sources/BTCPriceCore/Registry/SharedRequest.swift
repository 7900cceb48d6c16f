import Synchronization

/// One request for several markets of a venue. Callers share its response while it is in progress or in the venue's cache.
package final class SharedRequest: Sendable {
    private typealias Waiter = CheckedContinuation<Result<[LoadedPrice], PriceLoadingError>, Never>

    private struct State {
        var task: Task<Void, Never>?
        var waiters: [UInt64: Waiter] = [:]
        var lastID: UInt64 = 0
        /// How the last request ended, and when.
        var last: (result: Result<[LoadedPrice], PriceLoadingError>, at: BootTime)?
    }

    private let request: @Sendable () async throws(PriceLoadingError) -> [LoadedPrice]
    private let cacheTime: Int64
    private let now: TimeSource
    private let state = Mutex(State())

    /// - Parameter cacheTime: How long the venue's servers cache a response.
    package init(
        cacheTime: Duration, now: @escaping TimeSource,
        request: @escaping @Sendable () async throws(PriceLoadingError) -> [LoadedPrice]
    ) {
        self.cacheTime = cacheTime.wholeMilliseconds
        self.now = now
        self.request = request
    }

    /// Whether ``load(after:)`` would send a request.
    package func isNeeded(after boottime: BootTime) -> Bool {
        let present = now().boottime
        return state.withLock { $0.task == nil && cached($0, after: boottime, at: present) == nil }
    }

    /// Begins a request if none is in progress, so that the next caller does not begin another.
    package func begin() {
        state.withLock { state in
            if state.task == nil { state.task = Task { await self.run() } }
        }
    }

    /// The prices of all its markets. Cancelling the task of the last caller ends the request.
    /// - Parameter boottime: When the response that the caller already has arrived. It wants a newer one.
    package func load(after boottime: BootTime) async throws(PriceLoadingError) -> [LoadedPrice] {
        let present = now().boottime
        let (known, id) = state.withLock { state in
            state.lastID += 1
            return (state.task == nil ? cached(state, after: boottime, at: present) : nil, state.lastID)
        }
        if let known { return try known.get() }
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
        // A caller joined after the last one had cancelled the request. It gets a timeout, so that it goes on to its next source.
        if case .failure(.cancelled) = result { result = .failure(.timedOut(after: nil)) }
        let waiters = state.withLock { state in
            state.task = nil
            state.last = (result, present.boottime)
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume(returning: result) }
    }

    /// The result of the last request, if it still applies: a response that the venue would repeat, or a failure from just now.
    private func cached(
        _ state: borrowing State, after boottime: BootTime, at now: BootTime
    ) -> Result<[LoadedPrice], PriceLoadingError>? {
        guard let last = state.last, last.at > boottime else { return nil }
        switch last.result {
        case .success: return now - last.at < cacheTime ? last.result : nil
        // Each caller decides whether it is sent again.
        case .failure(.connectionClosed): return nil
        case .failure: return now - last.at < Self.moment ? last.result : nil
        }
    }

    /// How long a failure also applies to callers that came while the request was in progress, in milliseconds.
    private static let moment: Int64 = 50
}
