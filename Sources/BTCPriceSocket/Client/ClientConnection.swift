import BTCPriceCore
import Glibc

/// A blocking connection to a service's Unix-domain socket.
package struct ClientConnection: ~Copyable {
    private let descriptor: Int32
    package let path: String
    /// The longest wait for the service, when connecting and at each call.
    package let timeout: Duration

    private var input: MessageBuffer

    /// Connects.
    /// - Parameter longestReply: The longest reply accepted, bytes.
    /// - Throws: ``ClientError/unreachable(path:reason:)`` or ``ClientError/timedOut(path:)``. After ``ClientError/interrupted``
    ///   the caller can try again.
    package init(path: String, timeout: Duration = .seconds(5), longestReply: Int = 1 << 20) throws(ClientError) {
        descriptor = try Self.connected(path, timeout: timeout)
        input = MessageBuffer(limit: longestReply)
        self.path = path
        self.timeout = timeout
    }

    deinit {
        close(descriptor)
    }

    /// Sends a call. ``message(timeout:interruption:outlet:)`` returns the replies, in order. A `oneway` call has none.
    package func send(_ call: Call) throws(ClientError) {
        try send(call.encoded())
    }

    /// Sends an encoded call, NUL included.
    /// - Throws: ``ClientError/timedOut(path:)`` if the service does not read, or ``ClientError/closed(path:)``. A service that has closed
    ///   the connection is no error yet: reading gives its last message, or that error.
    package func send(_ bytes: [UInt8]) throws(ClientError) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.send(descriptor, buffer.baseAddress?.advanced(by: sent), buffer.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            // A service that closes the connection may have written why, which the caller reads next.
            if count < 0, errno == EPIPE { return }
            guard count >= 0 else { throw errno == EAGAIN ? .timedOut(path: path) : .closed(path: path) }
            sent += count
        }
    }

    /// The next reply's bytes, without the NUL, for ``decoded(_:)``.
    /// - Parameters:
    ///   - interruption: A descriptor. When it becomes readable, the wait ends with ``ClientError/interrupted``. -1 for none.
    ///   - outlet: A descriptor that the caller writes to. When its reader is gone, the wait ends with ``ClientError/interrupted``, too.
    /// - Throws: ``ClientError``. After ``ClientError/interrupted``, which a signal causes too, it can be called again.
    package mutating func message(
        timeout: Duration, interruption: Int32 = -1, outlet: Int32 = -1
    ) throws(ClientError) -> ArraySlice<UInt8> {
        let clock = ContinuousClock()
        let deadline = clock.now.advanced(by: timeout)
        while true {
            if let message = try received() { return message }
            let (seconds, attoseconds) = clock.now.duration(to: deadline).components
            // Rounded up, except for a timeout of zero, which takes only what is ready.
            let left =
                timeout == .zero
                ? 0 : max(0, min(seconds, Int64(Int32.max)) * 1000 + attoseconds / 1_000_000_000_000_000 + 1)
            try waitForInput(milliseconds: Int32(clamping: left), interruption: interruption, outlet: outlet)
            try readInput()
        }
    }

    /// Decodes a reply. The text of an error, which may have a key of the peer, is printable.
    /// - Throws: ``ClientError/unintelligible(path:reason:)``
    package func decoded(_ message: ArraySlice<UInt8>) throws(ClientError) -> Reply {
        do throws(MessageError) {
            return try Reply(decoding: message)
        } catch {
            throw .unintelligible(path: path, reason: error.reason.printable)
        }
    }

    private mutating func received() throws(ClientError) -> ArraySlice<UInt8>? {
        do throws(MessageError) {
            return try input.next()
        } catch {
            throw .unintelligible(path: path, reason: error.reason)
        }
    }

    private func waitForInput(milliseconds: Int32, interruption: Int32, outlet: Int32) throws(ClientError) {
        // poll(2) ignores a negative descriptor, and always reports that a pipe's reader is gone.
        var pollers: InlineArray<3, pollfd> = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: interruption, events: Int16(POLLIN), revents: 0), pollfd(fd: outlet, events: 0, revents: 0),
        ]
        var span = pollers.mutableSpan
        let ready = span.withUnsafeMutableBufferPointer { poll($0.baseAddress, nfds_t($0.count), milliseconds) }
        if ready < 0 { throw errno == EINTR ? .interrupted : .closed(path: path) }
        if ready == 0 { throw .timedOut(path: path) }
        if pollers[1].revents != 0 || pollers[2].revents != 0 { throw .interrupted }
    }

    private mutating func readInput() throws(ClientError) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count < 0, errno == EINTR { return }
        guard count > 0 else { throw .closed(path: path) }
        input.append(buffer[..<count])
    }

    private static func connected(_ path: String, timeout: Duration) throws(ClientError) -> Int32 {
        guard let address = UnixSocketAddress(path: path) else {
            throw .unreachable(path: path, reason: "not a valid socket path: empty or too long")
        }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw .unreachable(path: path, reason: systemError(errno)) }
        // Child processes must not keep the connection open.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        // If the backlog is full, connect(2) on a Unix socket waits up to the send timeout.
        let (seconds, attoseconds) = timeout.components
        var patience = timeval(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout.size(ofValue: patience)))
        let result = address.withSocketAddress { connect(descriptor, $0, $1) }
        if result == 0 { return descriptor }
        let number = errno
        close(descriptor)
        if number == EINTR { throw .interrupted }
        throw number == EAGAIN ? .timedOut(path: path) : .unreachable(path: path, reason: systemError(number))
    }
}

/// Why a call to a service failed.
package enum ClientError: Error, Sendable, Hashable {
    /// No service listens at the path. `reason` is the system's message.
    case unreachable(path: String, reason: String)
    /// The service did not reply in time.
    case timedOut(path: String)
    /// The service closed the connection.
    case closed(path: String)
    /// The reply does not match the interface.
    case unintelligible(path: String, reason: String)
    /// The service replied with an error: its fully qualified name, and the reason if given.
    case refused(error: String, reason: String?)
    /// A signal or the caller interrupted the wait.
    case interrupted
}

extension ClientError: CustomStringConvertible {
    /// One line, with the path.
    package var description: String {
        switch self {
        case .unreachable(let path, let reason): "\(path): \(reason)"
        case .timedOut(let path): "\(path): no answer"
        case .closed(let path): "\(path): the connection was closed"
        case .unintelligible(let path, let reason): "\(path): a response that does not match the interface: \(reason)"
        case .refused(let error, let reason?): "\(error): \(reason)"
        case .refused(let error, nil): error
        case .interrupted: "interrupted"
        }
    }
}
