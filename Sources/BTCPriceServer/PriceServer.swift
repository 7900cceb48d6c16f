package import BTCPriceCore
package import BTCPriceAPI
import CLinux
import Glibc
import Synchronization
package import Varlink

/// Answers the socket: an epoll loop on a thread of its own.
package final class PriceServer: Sendable {
    /// Answers a call that the held price does not answer: for whom, and with what the loop knows of its clients.
    package typealias Answer = @Sendable (_ call: PriceCall, _ uid: UInt32, _ clients: ClientCounts) async -> Reply

    private enum Phase {
        case new(EventLoop.Environment)
        case running(pthread_t, ListeningSocket)
        case stopped
    }

    private final class ThreadBody {
        var loop: EventLoop
        init(_ loop: consuming EventLoop) { self.loop = loop }
    }

    private let inbox: Inbox
    private let phase: Mutex<Phase>

    /// - Parameters:
    ///   - listener: Where clients connect. The server closes it.
    ///   - instance: Changes at every start of the daemon.
    ///   - limits: What clients are granted.
    ///   - now: Reads the clock that a reply's freshness is judged by.
    ///   - activity: Is told when a client wants a price.
    ///   - administrators: Who may change the daemon. Others never get such a call to `answer`.
    ///   - answer: Answers the calls that the held price does not.
    ///   - wake: Called when a client comes for whom the activity says that it is waited.
    ///   - report: Tells the operator; called on the loop's thread, must not block.
    /// - Throws: ``SocketError`` if the system grants no descriptor.
    package init(
        listener: ListeningSocket, instance: String, limits: ServerLimits = .fitting(), now: @escaping TimeSource,
        activity: ClientActivity, administrators: Administrators = Administrators(), answer: @escaping Answer,
        wake: @escaping @Sendable () async -> Void = {}, report: @escaping @Sendable (ServerEvent) -> Void
    ) throws(SocketError) {
        inbox = try Inbox()
        let service = ServiceInterface(
            info: Product.info, descriptions: [(PriceInterface.name, PriceInterface.description)])
        phase = Mutex(
            .new(
                EventLoop.Environment(
                    listener: listener, inbox: inbox, service: service, instance: instance, limits: limits, now: now,
                    activity: activity, administrators: administrators, answer: answer, wake: wake, report: report)))
    }

    /// Starts the thread. Clients that connected before are answered now.
    /// - Throws: ``SocketError`` if the system grants no descriptor or no thread.
    package func start() throws(SocketError) {
        try phase.withLock { phase throws(SocketError) in
            guard case .new(let environment) = phase else { return }
            let body = Unmanaged.passRetained(ThreadBody(try EventLoop(environment)))
            var thread = pthread_t()
            let result = pthread_create(&thread, nil, runLoop, body.toOpaque())
            guard result == 0 else {
                body.release()
                throw SocketError("cannot start the socket's thread: \(systemError(result))")
            }
            phase = .running(thread, environment.listener)
        }
    }

    /// Shows `state` to whoever asks from now on, and to the watchers where `toWatchers` is true.
    package func publish(_ state: PriceState, toWatchers: Bool) {
        inbox.publish(state, toWatchers: toWatchers)
    }

    /// Has other limits hold from now on. Connections that are open stay.
    package func change(_ limits: ServerLimits) {
        inbox.change(limits)
    }

    /// Asks the loop for a sign of life; ``lastBeat`` becomes `number` once it has given it.
    /// - Parameter number: Counts up from 1.
    package func ping(_ number: UInt64) {
        inbox.ping(number)
    }

    /// The number of the last ``ping(_:)`` that the loop has answered; 0 before.
    package var lastBeat: UInt64 { inbox.lastBeat }

    /// Ends every connection and the thread, and removes the socket's file where it is ours. Returns when that is done.
    package func stop() {
        let stopped: Phase = phase.withLock { phase in
            defer { phase = .stopped }
            return phase
        }
        switch stopped {
        case .stopped: break
        case .new(let environment): environment.listener.shutDown()
        case .running(let thread, let listener):
            inbox.stop()
            pthread_join(thread, nil)
            listener.shutDown()
        }
    }

    private let runLoop: @convention(c) @Sendable (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { pointer in
        guard let pointer else { return nil }
        let body = Unmanaged<ThreadBody>.fromOpaque(pointer).takeRetainedValue()
        clinux_name_thread("varlink")
        body.loop.run()
        return nil
    }
}
