import EventLoopTasks
package import NIOCore
import NIOPosix

/// The thread that keeps the price: it requests prices from the exchanges, sleeps between the ticks, and runs the tasks of a tick.
///
/// A tick that hops between the threads of a pool costs a wake-up at every hop. On one thread it costs two: for the timer and for the
/// response.
package final class TickLoop: Sendable {
    private let group: MultiThreadedEventLoopGroup
    /// For I/O on this thread.
    package let eventLoop: any EventLoop
    /// Runs tasks on this thread.
    package let executor: any TaskExecutor
    /// A clock whose sleeps end on this thread.
    package let clock: TickClock

    package init() {
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        eventLoop = group.next()
        executor = EventLoopExecutor(eventLoop)
        clock = TickClock(on: eventLoop)
    }

    /// Ends the thread. Tasks still on it never continue: call this after all have ended, from another thread.
    package func shutDown() async {
        // It throws only if it was shut down before.
        do { try await group.shutdownGracefully() } catch {}
    }
}
