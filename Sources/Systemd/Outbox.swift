import Dispatch
import Glibc
import Synchronization

/// Sends log entries or notifications to systemd, in order and on a thread of its own.
///
/// A send may block while the other process does not read. A tick never waits for it. If too many sends are waiting, new ones are
/// dropped and counted.
final class Outbox: Sendable {
    /// Log entries. Before the process exits, what is waiting is sent, for at most one second.
    static let log: Outbox = {
        atexit { Outbox.log.flush(within: .seconds(1)) }
        return Outbox()
    }()

    /// Notifications for systemd, which do not wait for a log that is not read. Sent before the exit in the same way.
    static let notifications: Outbox = {
        atexit { Outbox.notifications.flush(within: .seconds(1)) }
        return Outbox()
    }()

    private struct State {
        var waiting = 0
        var dropped = 0
    }

    private let capacity: Int
    private let queue = DispatchQueue(label: "io.btcpriced.outbox")
    private let state = Mutex(State())

    /// - Parameter capacity: The maximum number of sends that may wait.
    init(capacity: Int = 1000) {
        self.capacity = capacity
    }

    /// Sends something soon. Never blocks.
    /// - Parameter body: Performs the send. Its argument is the number of sends that were dropped just before it.
    func send(_ body: @escaping @Sendable (_ dropped: Int) -> Void) {
        let dropped = state.withLock { state -> Int? in
            guard state.waiting < capacity else {
                state.dropped += 1
                return nil
            }
            state.waiting += 1
            defer { state.dropped = 0 }
            return state.dropped
        }
        guard let dropped else { return }
        queue.async { [self] in
            body(dropped)
            state.withLock { $0.waiting -= 1 }
        }
    }

    /// Waits until everything is sent, for at most this time.
    func flush(within longest: Duration) {
        let sent = DispatchSemaphore(value: 0)
        queue.async { sent.signal() }
        let (seconds, attoseconds) = longest.components
        _ = sent.wait(timeout: .now() + .seconds(Int(seconds)) + .nanoseconds(Int(attoseconds / 1_000_000_000)))
    }
}
