package import NIOCore

/// Runs tasks on the thread of an event loop, so that they need no wake-up to reach its channels.
///
/// One turn of the loop runs all jobs that wait, and those that they enqueue.
package final class EventLoopExecutor: TaskExecutor {
    /// The most jobs of one turn, so that a channel's events do not wait for ever.
    private static let jobsOfTurn = 64

    private let eventLoop: any EventLoop
    /// The jobs that wait, the oldest first.
    private let jobs: NIOLoopBoundBox<[UnownedJob]>

    package init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
        jobs = .makeBoxSendingValue([], eventLoop: eventLoop)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if eventLoop.inEventLoop { add(job) } else { eventLoop.execute { self.add(job) } }
    }

    private func add(_ job: UnownedJob) {
        jobs.value.append(job)
        if jobs.value.count == 1 { eventLoop.execute(runTurn) }
    }

    @Sendable private func runTurn() {
        var done = 0
        while done < min(jobs.value.count, Self.jobsOfTurn) {
            jobs.value[done].runSynchronously(on: asUnownedTaskExecutor())
            done += 1
        }
        jobs.value.removeFirst(done)
        if !jobs.value.isEmpty { eventLoop.execute(runTurn) }
    }
}
