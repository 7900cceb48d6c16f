import NIOCore
import Testing

@testable import BTCPriceNetworking

@Suite(.timeLimit(.minutes(3))) struct TickLoopTests {
    @Test func `a sleep ends at its time`() async throws {
        let loop = TickLoop()
        try await loop.clock.sleep(until: loop.clock.now.advanced(by: .seconds(-1)))
        try await loop.clock.sleep(until: loop.clock.now)
        await loop.shutDown()
    }

    @Test func `after a suspend a sleep that is over ends, and others continue`() async throws {
        let loop = TickLoop()
        let clock = loop.clock
        let long = Task { try await clock.sleep(until: clock.now.advanced(by: .seconds(3600))) }
        let short = Task { try await clock.sleep(until: clock.now.advanced(by: .milliseconds(1))) }
        for _ in 0..<100 { clock.machineResumed() }
        try await short.value
        long.cancel()
        await #expect(throws: CancellationError.self) { try await long.value }
        await loop.shutDown()
    }

    @Test func `a cancelled sleep ends at once, and leaves the others`() async throws {
        let loop = TickLoop()
        let clock = loop.clock
        let long = Task { try await clock.sleep(until: clock.now.advanced(by: .seconds(3600))) }
        let cancelled = Task { try await clock.sleep(until: clock.now.advanced(by: .seconds(1800))) }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        try await clock.sleep(until: clock.now)
        long.cancel()
        await #expect(throws: CancellationError.self) { try await long.value }
        await loop.shutDown()
    }

    @Test func `a sleep of a cancelled task does not begin`() async throws {
        let loop = TickLoop()
        let clock = loop.clock
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            try await clock.sleep(until: clock.now.advanced(by: .seconds(3600)))
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await loop.shutDown()
    }

    @Test func `tasks and their children run on the loop's one thread, after a sleep too`() async throws {
        let loop = TickLoop()
        let (clock, eventLoop) = (loop.clock, loop.eventLoop)
        let task = Task(executorPreference: loop.executor) {
            var seen = [eventLoop.inEventLoop]
            try await clock.sleep(until: clock.now)
            seen.append(eventLoop.inEventLoop)
            await withTaskGroup(of: Bool.self) { group in
                group.addTask { eventLoop.inEventLoop }
                for await isThere in group { seen.append(isThere) }
            }
            return seen
        }
        #expect(try await task.value == [true, true, true])
        #expect(!eventLoop.inEventLoop)
        await loop.shutDown()
    }

    @Test func `all tasks started from many threads run, in their order`() async throws {
        let loop = TickLoop()
        let eventLoop = loop.eventLoop
        let isFinished = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    // Each thread starts its tasks on the loop one after another.
                    var last = -1
                    for number in 0..<100 {
                        let seen = await Task(executorPreference: loop.executor) {
                            await Task.yield()
                            return eventLoop.inEventLoop ? number : -2
                        }.value
                        guard seen == last + 1 else { return false }
                        last = seen
                    }
                    return true
                }
            }
            return await group.allSatisfy { $0 }
        }
        #expect(isFinished)
        await loop.shutDown()
    }
}
