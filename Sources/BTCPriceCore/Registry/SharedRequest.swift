import Synchronization

/// One request for several markets of a venue. Callers share its response while it is in progress or in the venue's cache.
package final class SharedRequest: Sendable {
    private typealias Response = Result<[LoadedPrice], PriceLoadingError>

    private struct State {
        var task: SharedTask<Response>?
        /// How the last request ended, and when.
        var last: (response: Response, at: BootTime)?

        var inProgress: SharedTask<Response>? { task?.isOver == false ? task : nil }
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
        return state.withLock { $0.inProgress == nil && cached($0, after: boottime, at: present) == nil }
    }

    /// Begins a request if none is in progress, so that the next caller does not begin another.
    package func begin() { state.withLock { _ = current(&$0) } }

    private func current(_ state: inout State) -> SharedTask<Response> {
        if let task = state.inProgress { return task }
        let task = SharedTask<Response> { await self.run($0) }
        state.task = task
        return task
    }

    /// The prices of all its markets. Cancelling the task of the last caller ends the request.
    /// - Parameter boottime: When the response that the caller already has arrived. It wants a newer one.
    package func load(after boottime: BootTime) async throws(PriceLoadingError) -> [LoadedPrice] {
        let present = now().boottime
        let (known, task) = state.withLock { state in
            let known = state.inProgress == nil ? cached(state, after: boottime, at: present) : nil
            return (known, known == nil ? current(&state) : nil)
        }
        let response = if let task { await task.value() } else { known }
        // The last of the callers before has left meanwhile. Another request is the caller's, and counts.
        guard let response else { throw Task.isCancelled ? .cancelled : .connectionClosed }
        return try response.get()
    }

    private func run(_ task: SharedTask<Response>) async {
        var response: Response
        do throws(PriceLoadingError) {
            response = .success(try await request())
        } catch {
            response = .failure(error)
        }
        let present = now()
        if case .success(var prices) = response {
            for index in prices.indices { prices[index].observed = present }
            response = .success(prices)
        }
        state.withLock { if !task.isOver { $0.last = (response, present.boottime) } }
        task.finish(response)
    }

    /// The response to the last request, if it still applies: one that the venue would repeat, or a failure from just now.
    private func cached(_ state: borrowing State, after boottime: BootTime, at now: BootTime) -> Response? {
        guard let last = state.last, last.at > boottime else { return nil }
        switch last.response {
        case .success: return now - last.at < cacheTime ? last.response : nil
        // Each caller decides whether it is sent again.
        case .failure(.connectionClosed): return nil
        case .failure: return now - last.at < Self.moment ? last.response : nil
        }
    }

    /// How long a failure also applies to callers that came while the request was in progress, in milliseconds.
    private static let moment: Int64 = 50
}
