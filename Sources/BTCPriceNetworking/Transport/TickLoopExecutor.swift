import NIOCore
import Synchronization

/// Runs jobs on an event loop, in the order they come in.
///
/// A tick is some fifteen jobs, each begun by the one before. They wait in a queue of their own, which the event loop is asked to empty:
/// asking it for each of them costs ten times as much.
final class TickLoopExecutor: TaskExecutor {
    private struct Queue {
        var waiting: [UnownedJob] = []
        /// Whether the event loop was asked, or is at it.
        var isAwaited = false
    }

    private let eventLoop: any EventLoop
    private let alarm: Alarm
    private let queue = Mutex(Queue())

    init(_ eventLoop: any EventLoop, _ alarm: Alarm) {
        self.eventLoop = eventLoop
        self.alarm = alarm
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isAwaited = queue.withLock { queue in
            queue.waiting.append(job)
            defer { queue.isAwaited = true }
            return queue.isAwaited
        }
        if !isAwaited { eventLoop.execute { self.run() } }
    }

    private func run() {
        // Who lies down and is woken again meanwhile needs no timer.
        alarm.hold()
        var jobs: [UnownedJob] = []
        while take(&jobs) {
            for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
        }
        alarm.release()
    }

    /// Takes all that wait, and leaves the room of those before.
    /// - Returns: Whether there were any. Else the event loop has to be asked again for the next.
    private func take(_ jobs: inout [UnownedJob]) -> Bool {
        jobs.removeAll(keepingCapacity: true)
        return queue.withLock { queue in
            swap(&queue.waiting, &jobs)
            queue.isAwaited = !jobs.isEmpty
            return queue.isAwaited
        }
    }
}
