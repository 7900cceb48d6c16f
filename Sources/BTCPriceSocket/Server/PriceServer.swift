package import BTCPriceCore
import CLinux
import Glibc
import Synchronization

/// Serves the Unix socket: an epoll loop on its own thread.
package final class PriceServer: StateSubscriber {
    /// Handles a call that needs more than the cached price. `uid` is the client's user, `clients` the loop's counts.
    package typealias Answer =
        @Sendable (_ call: PriceCall, _ uid: UInt32, _ clients: ClientCounts) async -> CallAnswer

    private enum Phase {
        case new(SocketLoop.Environment)
        case running(pthread_t, ListeningSocket)
        case stopped
    }

    private final class ThreadBody {
        var loop: SocketLoop
        init(_ loop: consuming SocketLoop) { self.loop = loop }
    }

    private let inbox: Inbox
    private let phase: Mutex<Phase>

    /// - Parameters:
    ///   - listener: The socket that clients connect to. The server closes it.
    ///   - now: The clock that decides whether a reply is fresh.
    ///   - administrators: Who may change the daemon. Such calls from other users never reach `answer`.
    ///   - answer: Handles the calls that need more than the cached price.
    ///   - changesAreWatched: Called when a client begins to watch changes between the ticks.
    ///   - wake: Called when a client wants a price while the ticks wait for a client.
    ///   - report: Reports an event to the operator. Called on the loop's thread; must not block.
    /// - Throws: ``SocketError`` if the system provides no descriptor.
    package init(
        listener: ListeningSocket, instance: String, limits: ServerLimits = .fitting(), now: @escaping TimeSource,
        activity: ClientActivity, administrators: Administrators = Administrators(), answer: @escaping Answer,
        changesAreWatched: @escaping @Sendable () async -> Void = {}, wake: @escaping @Sendable () async -> Void = {},
        report: @escaping @Sendable (ServerEvent) -> Void
    ) throws(SocketError) {
        inbox = try Inbox(instance: instance)
        phase = Mutex(
            .new(
                SocketLoop.Environment(
                    listener: listener, inbox: inbox, instance: instance, limits: limits, now: now,
                    activity: activity, administrators: administrators, answer: answer, wake: wake,
                    changesAreWatched: changesAreWatched, report: report)))
    }

    /// Starts the thread. Clients that connected before are served now.
    /// - Throws: ``SocketError`` if the system provides no descriptor or no thread.
    package func start() throws(SocketError) {
        try phase.withLock { phase throws(SocketError) in
            guard case .new(let environment) = phase else { return }
            let body = Unmanaged.passRetained(ThreadBody(try SocketLoop(environment)))
            var thread = pthread_t()
            let result = pthread_create(&thread, nil, runLoop, body.toOpaque())
            guard result == 0 else {
                body.release()
                throw SocketError(description: "cannot start the socket's thread: \(systemError(result))")
            }
            phase = .running(thread, environment.listener)
        }
    }

    /// Replies to calls with the state from now on, and sends it to the watchers. A change between the ticks goes only to those of changes.
    package func receive(_ state: PriceState, _ publication: Publication, isFirst: Bool, kept: KeptState?) {
        inbox.publish(state, isForAll: publication.isForAllWatchers)
    }

    /// Sets the currencies and their order. The first one is the default if a client names none. Watches of others end with an error.
    package func change(_ currencies: [Currency]) {
        inbox.change(currencies.map(\.rawValue))
    }

    /// Sets the daemon, or the start of it, whose states are published from now on.
    package func change(instance: String) {
        inbox.change(instance: instance)
    }

    /// Applies new limits. Open connections stay open.
    package func change(_ limits: ServerLimits) {
        inbox.change(limits)
    }

    /// Requests a sign of life from the loop, which sets ``lastBeat`` to `number`.
    /// - Parameter number: Counts up from 1.
    package func ping(_ number: UInt64) {
        inbox.ping(number)
    }

    /// The number of the last ``ping(_:)`` that the loop has processed; 0 before.
    package var lastBeat: UInt64 { inbox.lastBeat }

    /// Closes every connection, ends the thread and removes the socket's file if it is the server's own. Returns when this is done.
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

/// The reply to a call that was handled outside the loop. It is encoded there, since it may be long.
package struct CallAnswer: Sendable {
    /// The encoded reply, NUL included.
    let bytes: [UInt8]
    let isError: Bool
    /// The call that produces the next reply. It is handled once the client has taken this reply; `nil` if this one is the last.
    let next: PriceCall?

    /// - Parameter next: Produces the next reply. This reply then announces that others follow.
    package init(_ reply: Reply, next: PriceCall? = nil) {
        var reply = reply
        if next != nil { reply.continues = true }
        bytes = reply.encoded()
        isError = reply.error != nil
        self.next = next
    }
}
