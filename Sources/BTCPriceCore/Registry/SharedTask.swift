import Synchronization

/// A task with many callers, which all get its value. It is given up when the last of them is cancelled.
package final class SharedTask<Value: Sendable>: Sendable {
    private typealias Caller = CheckedContinuation<Value?, Never>

    private struct State {
        var task: Task<Void, Never>?
        var callers: [Int: Caller] = [:]
        var lastCaller = 0
        var isOver = false
        /// Once it is over: `nil` if it was given up.
        var value: Value?

        /// Ends it, once.
        /// - Returns: The task and the callers that are left.
        mutating func end(_ value: Value?) -> (task: Task<Void, Never>?, callers: [Caller]) {
            guard !isOver else { return (nil, []) }
            defer { (task, callers) = (nil, [:]) }
            (isOver, self.value) = (true, value)
            return (task, Array(callers.values))
        }
    }

    private let state = Mutex(State())

    /// Begins the task.
    /// - Parameter operation: Passes its value to ``finish(_:)``. If it returns without that, the task is given up.
    package init(
        on executor: (any TaskExecutor)? = nil, _ operation: @escaping @Sendable (SharedTask<Value>) async -> Void
    ) {
        state.withLock { state in
            state.task = Task(executorPreference: executor) {
                await operation(self)
                self.giveUp()
            }
        }
    }

    /// Whether it has a value or was given up. The next caller needs a new task then.
    package var isOver: Bool { state.withLock { $0.isOver } }

    /// The number of callers that wait.
    var callers: Int { state.withLock { $0.callers.count } }

    /// Waits for the value.
    /// - Returns: `nil` as soon as the caller is cancelled, and if the task is given up.
    // It runs on the caller's actor (`NonisolatedNonsendingByDefault`): a caller has entered before another turn of the actor.
    package func value() async -> Value? {
        let id = state.withLock { state in
            state.lastCaller += 1
            return state.lastCaller
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { (caller: Caller) in
                let isWaiting = state.withLock { state in
                    if !state.isOver { state.callers[id] = caller }
                    return !state.isOver
                }
                if !isWaiting { caller.resume(returning: state.withLock { $0.value }) }
                // A caller that was cancelled before had not entered then.
                if isWaiting, Task.isCancelled { leave(id) }
            }
        } onCancel: {
            leave(id)
        }
    }

    /// Gives all callers the value. Has no effect if the task is over.
    package func finish(_ value: Value) {
        for caller in state.withLock({ $0.end(value) }).callers { caller.resume(returning: value) }
    }

    /// Cancels the task. Has no effect if it is over.
    package func giveUp() {
        let (task, callers) = state.withLock { $0.end(nil) }
        task?.cancel()
        for caller in callers { caller.resume(returning: nil) }
    }

    private func leave(_ id: Int) {
        let (task, caller) = state.withLock { state -> (Task<Void, Never>?, Caller?) in
            let caller = state.callers.removeValue(forKey: id)
            return (caller != nil && state.callers.isEmpty ? state.end(nil).task : nil, caller)
        }
        task?.cancel()
        caller?.resume(returning: nil)
    }
}
