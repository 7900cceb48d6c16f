import Synchronization

/// A bound on calls: a burst, and so many a second after it. Callers take turns, and wait a little.
final class CallRate: Sendable {
    /// The longest wait, milliseconds.
    static let longestWait: Int64 = 2000

    private struct State {
        /// Thousandths of a call that are left; below zero if callers wait.
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
    /// - Returns: The time until the call may be made, milliseconds; `nil` if too many wait. Otherwise it counts.
    func take(at boottime: Int64) -> Int64? {
        state.withLock { state in
            // After so long all of the burst is there again.
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
