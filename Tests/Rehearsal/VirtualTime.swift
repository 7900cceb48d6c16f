import BTCPriceCore
import CVirtualTime
import Synchronization

/// A clock that advances only when no task is ready, and then in one step to the next deadline.
final class VirtualClock: BoottimeClock {
    private struct Sleeper {
        let id: Int
        let deadline: ContinuousClock.Instant
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now: ContinuousClock.Instant
        /// The tasks that sleep. The first one to wake is at the end.
        var sleepers: [Sleeper] = []
        var lastID = 0
    }

    private let start: ContinuousClock.Instant
    private let state: Mutex<State>

    init() {
        start = .now
        state = Mutex(State(now: start))
    }

    /// The time since the start.
    var offset: Duration { start.duration(to: now) }

    /// The instant at a time after the start.
    func instant(at offset: Duration) -> ContinuousClock.Instant { start.advanced(by: offset) }

    var now: ContinuousClock.Instant { state.withLock { $0.now } }

    func sleep(until deadline: ContinuousClock.Instant) async throws {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Void, any Error>? = state.withLock { state in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if deadline <= state.now { return .success(()) }
                    let sleeper = Sleeper(id: id, deadline: deadline, continuation: continuation)
                    let place = state.sleepers.lastIndex { $0.deadline > deadline }.map { $0 + 1 } ?? 0
                    state.sleepers.insert(sleeper, at: place)
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let sleeper = state.withLock { state -> Sleeper? in
                guard let place = state.sleepers.firstIndex(where: { $0.id == id }) else { return nil }
                return state.sleepers.remove(at: place)
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Advances to the next deadline and wakes the task that waits for it.
    /// - Returns: Whether a task was waiting.
    func step() -> Bool {
        let sleeper = state.withLock { state -> Sleeper? in
            guard let next = state.sleepers.popLast() else { return nil }
            state.now = max(state.now, next.deadline)
            return next
        }
        sleeper?.continuation.resume()
        return sleeper != nil
    }
}

/// Runs every task of the process on the thread that calls ``run(_:until:)``, in the order in which the tasks become ready. So the same
/// seed gives the same history, and a virtual week takes minutes.
final class VirtualTime: SerialExecutor {
    static let shared = VirtualTime()

    private let ready = Mutex<(jobs: [UnownedJob], next: Int)>(([], 0))

    private typealias Original = @convention(thin) (UnownedJob) -> Void
    private typealias Hook = @convention(thin) (UnownedJob, Original) -> Void

    func enqueue(_ job: UnownedJob) {
        ready.withLock { $0.jobs.append(job) }
    }

    /// Replaces the threads of the runtime.
    func takeOver() {
        let hook: Hook = { job, _ in VirtualTime.shared.enqueue(job) }
        enqueue_global_hook().pointee = unsafeBitCast(hook, to: UnsafeMutableRawPointer.self)
    }

    /// Runs until `isOver`.
    func run(_ clock: VirtualClock, until isOver: () -> Bool) {
        while !isOver() {
            if let job = take() {
                job.runSynchronously(on: asUnownedSerialExecutor())
            } else if !clock.step() {
                fatalError("everybody waits, and nobody for a time")
            }
        }
    }

    private func take() -> UnownedJob? {
        ready.withLock { ready in
            guard ready.next < ready.jobs.count else {
                ready.jobs.removeAll(keepingCapacity: true)
                ready.next = 0
                return nil
            }
            defer { ready.next += 1 }
            return ready.jobs[ready.next]
        }
    }
}
