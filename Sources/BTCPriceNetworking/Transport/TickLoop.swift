public import NIOCore
import NIOPosix

/// The one thread on which the price is kept: it asks the exchanges, sleeps between the ticks, and runs what lies between the two.
///
/// A tick that hops between a pool of threads costs a wake-up at every hop. On one thread it costs two: its time has come, and the
/// answer is there.
public final class TickLoop: Sendable {
    private let group: MultiThreadedEventLoopGroup
    /// For I/O on this thread.
    public let eventLoop: any EventLoop
    /// Runs tasks on this thread.
    public let executor: any TaskExecutor
    /// Wakes them there.
    public let clock: TickClock

    /// Starts the thread.
    /// - Throws: ``TickLoopError`` if the system grants no timer.
    public init() throws(TickLoopError) {
        let alarm = try Alarm()
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        eventLoop = group.next()
        executor = TickLoopExecutor(eventLoop, alarm)
        clock = TickClock(alarm)
        alarm.start(on: eventLoop)
    }

    /// Ends the thread. What still runs on it stands still for ever: to be called when all of that is over, and from elsewhere.
    public func shutDown() async {
        // It throws only if it was shut down before.
        do { try await group.shutdownGracefully() } catch {}
    }
}

/// The loop can't be made.
public struct TickLoopError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What the system does not grant, and its word for why.
    public let description: String
}
