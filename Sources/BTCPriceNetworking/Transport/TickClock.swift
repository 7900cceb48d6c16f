import BTCPriceCore
import NIOCore
import Synchronization

/// `ContinuousClock` with sleeps that end on an event loop's thread.
///
/// NIO's timers don't count the time in which the machine is suspended. After a suspend, ``machineResumed()`` ends the sleeps whose
/// deadline on the continuous clock has passed, and reschedules the timers of the others.
package final class TickClock: BoottimeClock {
    private struct Sleeper {
        let deadline: ContinuousClock.Instant
        let continuation: CheckedContinuation<Void, any Error>
        var timer: NIOScheduledCallback?
    }

    /// Ends a sleep.
    private struct Alarm: NIOScheduledCallbackHandler, Sendable {
        let clock: TickClock
        let id: UInt64

        func handleScheduledCallback(eventLoop: some EventLoop) { clock.end(id, .success(())) }
    }

    private struct State {
        var sleepers: [UInt64: Sleeper] = [:]
        var lastID: UInt64 = 0
    }

    private let eventLoop: any EventLoop
    private let state = Mutex(State())

    init(on eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    package var now: ContinuousClock.Instant { .now }

    /// Sleeps until an instant.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    package func sleep(until deadline: ContinuousClock.Instant) async throws {
        try await sleep(until: deadline, isolation: #isolation)
    }

    private func sleep(until deadline: ContinuousClock.Instant, isolation: isolated (any Actor)?) async throws {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            // On the caller's actor, without a hop.
            _ = isolation
            try await withCheckedThrowingContinuation { continuation in
                state.withLock { state in
                    state.sleepers[id] = Sleeper(
                        deadline: deadline, continuation: continuation, timer: timer(id, deadline))
                }
                // An earlier cancellation found no sleeper to end.
                if Task.isCancelled { end(id, .failure(CancellationError())) }
            }
        } onCancel: {
            end(id, .failure(CancellationError()))
        }
    }

    /// Must be called after the machine was suspended.
    package func machineResumed() {
        state.withLock { state in
            for (id, sleeper) in state.sleepers {
                sleeper.timer?.cancel()
                state.sleepers[id]?.timer = timer(id, sleeper.deadline)
            }
        }
    }

    private func timer(_ id: UInt64, _ deadline: ContinuousClock.Instant) -> NIOScheduledCallback? {
        // It throws only once the loop has shut down, and nothing sleeps longer than the loop.
        try? eventLoop.scheduleCallback(
            in: TimeAmount(ContinuousClock.now.duration(to: deadline)), handler: Alarm(clock: self, id: id))
    }

    private func end(_ id: UInt64, _ result: Result<Void, any Error>) {
        let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
        sleeper?.timer?.cancel()
        sleeper?.continuation.resume(with: result)
    }
}
