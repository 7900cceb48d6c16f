package import BTCPriceCore
import FoundationEssentials
import Synchronization

/// A loader whose responses the test controls.
package final class ScriptedLoader: PriceLoader {
    private struct State {
        var pending: [Int: CheckedContinuation<Result<[LoadedPrice], PriceLoadingError>, Never>] = [:]
        var order: [Int] = []
        var cancelled: Set<Int> = []
        var asks = 0
        var most = 0
    }

    package let venue: Venue
    package let market: Market
    private let state = Mutex(State())
    private let stream: AsyncStream<Void>
    private let asked: AsyncStream<Void>.Continuation

    package init(_ name: String, market: String = "BTC/USD", limits: [RequestLimit] = []) {
        venue = Venue(name, limits: limits)
        self.market = Market(name, market)
        (stream, asked) = AsyncStream.makeStream()
    }

    /// The number of requests.
    package var asks: Int { state.withLock { $0.asks } }
    /// The maximum number of requests at once.
    package var mostAtOnce: Int { state.withLock { $0.most } }

    package func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        let id = state.withLock { state in
            state.asks += 1
            return state.asks
        }
        let result: Result<[LoadedPrice], PriceLoadingError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isCancelled = state.withLock { state in
                    if state.cancelled.remove(id) != nil { return true }
                    state.pending[id] = continuation
                    state.order.append(id)
                    state.most = max(state.most, state.pending.count)
                    return false
                }
                if isCancelled { continuation.resume(returning: .failure(.cancelled)) } else { asked.yield() }
            }
        } onCancel: {
            let continuation = state.withLock { state in
                state.order.removeAll { $0 == id }
                if let pending = state.pending.removeValue(forKey: id) { return Optional(pending) }
                state.cancelled.insert(id)
                return nil
            }
            continuation?.resume(returning: .failure(.cancelled))
        }
        return try result.get()
    }

    /// Waits for the next request.
    package func isAsked() async {
        for await _ in stream { return }
    }

    /// Responds to the oldest pending request.
    package func answer(_ price: String, position: FeedPosition = FeedPosition()) {
        give(.success([LoadedPrice(market, Price(price) ?? 0, position: position)]))
    }

    /// Fails the oldest pending request.
    package func fail(_ error: PriceLoadingError = .unavailable("HTTP 503")) {
        give(.failure(error))
    }

    private func give(_ result: Result<[LoadedPrice], PriceLoadingError>) {
        let continuation = state.withLock { state in
            state.order.isEmpty ? nil : state.pending.removeValue(forKey: state.order.removeFirst())
        }
        continuation?.resume(returning: result)
    }
}
