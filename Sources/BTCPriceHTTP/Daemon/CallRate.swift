import Synchronization

/// A rate limit for calls: a burst, then a number of calls per second. Callers wait in turn, at most ``longestWait``.
final class CallRate: Sendable {
    /// The longest wait, milliseconds.
    static let longestWait: Int64 = 2000

    private struct State {
        /// The calls that are left, in thousandths; below zero if callers wait.
        var left: Int64
        /// `CLOCK_BOOTTIME`, milliseconds.
        var last = Int64.min
    }

    private let burst: Int64
    private let perSecond: Int64
    private let state: Mutex<State>

    init(burst: Int64, perSecond: Int64) {
        self.burst = burst
        self.perSecond = perSecond
        state = Mutex(State(left: burst * 1000))
    }

    /// - Parameter boottime: `CLOCK_BOOTTIME`, milliseconds.
    /// - Returns: The time until the call may be made, milliseconds. The call is counted. `nil`, and not counted, if too many callers wait.
    func take(at boottime: Int64) -> Int64? {
        state.withLock { state in
            // After at most this time, the whole burst is available again.
            let passed = state.last == .min ? 0 : min(max(0, boottime - state.last), burst * 1000)
            state.last = boottime
            state.left = min(burst * 1000, state.left + passed * perSecond)
            let wait = max(0, 1000 - state.left) / perSecond
            guard wait <= Self.longestWait else { return nil }
            state.left -= 1000
            return wait
        }
    }
}
