import Testing

@testable import BTCPriceCore

@Suite(.timeLimit(.minutes(3))) struct SharedTaskTests {
    /// A task that waits until it is cancelled, and then finishes with 1.
    private func task() -> SharedTask<Int> {
        SharedTask { task in
            await Self.wait()
            task.finish(1)
        }
    }

    private static func wait() async {
        let (never, end) = AsyncStream<Never>.makeStream()
        await withTaskCancellationHandler {
            for await _ in never {}
        } onCancel: {
            end.finish()
        }
    }

    /// Callers that have entered.
    private func callers(_ count: Int, of task: SharedTask<Int>) async -> [Task<Int?, Never>] {
        let callers = (0..<count).map { _ in Task { await task.value() } }
        while task.callers < count { await Task.yield() }
        return callers
    }

    @Test func `all callers get the value, also those that come later`() async {
        let task = task()
        let callers = await callers(3, of: task)
        #expect(!task.isOver)
        task.finish(7)
        for caller in callers { #expect(await caller.value == 7) }
        #expect(task.isOver)
        #expect(await task.value() == 7)
    }

    @Test func `a caller that leaves gets nothing, and the last one ends the task`() async {
        let task = task()
        let callers = await callers(2, of: task)
        callers[0].cancel()
        #expect(await callers[0].value == nil)
        #expect(!task.isOver)
        callers[1].cancel()
        #expect(await callers[1].value == nil)
        #expect(task.isOver)
        // The value of the operation, which learns of that, comes too late.
        #expect(await task.value() == nil)
        task.finish(7)
        #expect(await task.value() == nil)
    }

    @Test func `a caller that is cancelled before it enters ends a task without others, and only such a one`() async {
        let (alone, shared) = (task(), task())
        let callers = await callers(1, of: shared)
        for task in [alone, shared] {
            let late = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return await task.value()
            }
            #expect(await late.value == nil)
        }
        #expect(alone.isOver)
        #expect(!shared.isOver)
        shared.finish(7)
        #expect(await callers[0].value == 7)
    }

    @Test func `an operation that ends without a value gives up, and a task that is given up frees its callers`() async
    {
        let (ended, given) = (SharedTask<Int> { _ in }, task())
        #expect(await ended.value() == nil)
        let callers = await callers(2, of: given)
        given.giveUp()
        for caller in callers { #expect(await caller.value == nil) }
    }
}
