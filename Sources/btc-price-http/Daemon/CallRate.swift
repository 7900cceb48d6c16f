import BTCPriceCore
import BTCPriceSocket
import Synchronization

/// A rate limit: a burst, then so many calls per second. One client gets at most half. Callers wait in turn, at most ``longestWait``.
final class CallRate: Sendable {
    /// The longest wait, milliseconds.
    static let longestWait: Int64 = 10_000

    private struct State {
        var all: TokenBucket
        /// Those of the clients that have made calls recently.
        var ofClients: [String: TokenBucket] = [:]
    }

    private let share: TokenBucket
    private let state: Mutex<State>

    init(burst: Int64, perSecond: Int64) {
        share = TokenBucket(burst: burst / 2, perSecond: perSecond / 2)
        state = Mutex(State(all: TokenBucket(burst: burst, perSecond: perSecond)))
    }

    /// - Parameter client: Identifies the client.
    /// - Returns: The time until the call may be made, milliseconds. The call is counted. `nil`, and not counted, if too many callers wait.
    func take(for client: String, at boottime: BootTime) -> Int64? {
        state.withLock { state in
            var own = state.ofClients[client] ?? share
            let wait = max(state.all.wait(at: boottime), own.wait(at: boottime))
            guard wait <= Self.longestWait else { return nil }
            state.all.take()
            own.take()
            state.ofClients = state.ofClients.filter { !$0.value.isFull(at: boottime) }
            state.ofClients[client] = own
            return wait
        }
    }
}
