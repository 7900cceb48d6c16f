import BTCPriceCore
import Synchronization

/// A clock that stands still until a test moves it. A test can await its timers, so no test guesses when code is idle.
package final class TestClock: BoottimeClock, Sendable {
    private struct Sleeper {
        let deadline: ContinuousClock.Instant
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now: ContinuousClock.Instant
        var sleepers: [Int: Sleeper] = [:]
        var cancelled: Set<Int> = []
        var watchers: [(deadline: ContinuousClock.Instant, continuation: CheckedContinuation<Void, Never>)] = []
        var nextID = 0
    }

    private let start: ContinuousClock.Instant
    private let state: Mutex<State>

    package init() {
        start = .now
        state = Mutex(State(now: start))
    }

    /// The time since the start.
    package var offset: Duration { offset(of: now) }

    /// The time from the start to an instant.
    package func offset(of instant: ContinuousClock.Instant) -> Duration { start.duration(to: instant) }

    package var now: ContinuousClock.Instant { state.withLock { $0.now } }

    package func sleep(until deadline: ContinuousClock.Instant) async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let (outcome, watchers) = state.withLock {
                    state -> (Result<Void, any Error>?, [CheckedContinuation<Void, Never>]) in
                    if state.cancelled.remove(id) != nil { return (.failure(CancellationError()), []) }
                    if deadline <= state.now { return (.success(()), []) }
                    state.sleepers[id] = Sleeper(deadline: deadline, continuation: continuation)
                    let found = state.watchers.filter { $0.deadline == deadline }
                    state.watchers.removeAll { $0.deadline == deadline }
                    return (nil, found.map(\.continuation))
                }
                for watcher in watchers { watcher.resume() }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                if let sleeper = state.sleepers.removeValue(forKey: id) { return Optional(sleeper) }
                state.cancelled.insert(id)
                return nil
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// The number of tasks that sleep now.
    package var timers: Int { state.withLock { $0.sleepers.count } }

    /// The time until the next task wakes; `nil` if none sleeps.
    package var nextWait: Duration? {
        state.withLock { state in state.sleepers.values.map(\.deadline).min().map { state.now.duration(to: $0) } }
    }

    /// Waits until a task sleeps until this time.
    package func timer(at offset: Duration) async {
        let deadline = start.advanced(by: offset)
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.sleepers.values.contains(where: { $0.deadline == deadline }) { return true }
                state.watchers.append((deadline, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// Moves the clock and wakes the tasks whose time has come, in the order of their deadlines.
    package func advance(to offset: Duration) {
        let woken = state.withLock { state in
            state.now = max(state.now, start.advanced(by: offset))
            let due = state.sleepers.filter { $0.value.deadline <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values.sorted { $0.deadline < $1.deadline }
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }

    /// Waits for the timer at this time, then moves the clock there.
    package func run(to offset: Duration) async {
        await timer(at: offset)
        advance(to: offset)
    }
}
