import BTCPriceCore
import Synchronization

/// A rate limit: a burst, then so many calls per second. One client gets at most half. Callers wait in turn, at most ``longestWait``.
final class CallRate: Sendable {
    /// The longest wait, milliseconds.
    static let longestWait: Int64 = 10_000

    private struct Bucket {
        let burst: Int64
        let perSecond: Int64
        /// The calls that are left, in thousandths; below zero if callers wait.
        private(set) var left: Int64
        private var last = BootTime.min

        init(burst: Int64, perSecond: Int64) {
            self.burst = burst
            self.perSecond = perSecond
            left = burst * 1000
        }

        /// - Returns: The time until the next call may be made, milliseconds.
        mutating func wait(at boottime: BootTime) -> Int64 {
            // After at most this time, the whole burst is available again.
            let passed = last == .min ? 0 : min(max(0, boottime - last), burst * 1000 + longestWait)
            last = boottime
            left = min(burst * 1000, left + passed * perSecond)
            return max(0, 1000 - left) / perSecond
        }

        mutating func take() { left -= 1000 }

        /// Whether the whole burst is available.
        func isFull(at boottime: BootTime) -> Bool {
            var copy = self
            _ = copy.wait(at: boottime)
            return copy.left == burst * 1000
        }
    }

    private struct State {
        var all: Bucket
        /// Those of the clients that have made calls recently.
        var ofClients: [String: Bucket] = [:]
    }

    private let share: Bucket
    private let state: Mutex<State>

    init(burst: Int64, perSecond: Int64) {
        share = Bucket(burst: burst / 2, perSecond: perSecond / 2)
        state = Mutex(State(all: Bucket(burst: burst, perSecond: perSecond)))
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
