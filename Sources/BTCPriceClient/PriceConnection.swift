public import BTCPriceCore
public import BTCPriceVarlink
import Glibc
import Varlink

/// A blocking connection to the daemon's socket.
public struct PriceConnection: ~Copyable {
    /// The longest reply that is taken, bytes.
    private static let longestReply = 1 << 20

    private let descriptor: Int32
    private let path: String
    private var input = MessageBuffer(limit: PriceConnection.longestReply)

    /// Connects.
    /// - Parameters:
    ///   - path: The socket's file.
    ///   - timeout: How long a daemon may leave us waiting, at the connection and at each call.
    /// - Throws: ``ClientError/unreachable(path:reason:)`` or ``ClientError/timedOut(path:)``.
    public init(path: String, timeout: Duration = .seconds(5)) throws(ClientError) {
        descriptor = try Self.connected(path, timeout: timeout)
        self.path = path
    }

    deinit {
        close(descriptor)
    }

    /// Asks for the price.
    /// - Parameters:
    ///   - policy: Where the answer may come from.
    ///   - timeout: How long to wait for it.
    /// - Throws: ``ClientError``; ``ClientError/refused(error:reason:)`` where no source gave a price.
    public mutating func getPrice(
        _ policy: CachePolicy = .localFirst, timeout: Duration = .seconds(5)
    ) throws(ClientError) -> StateMessage {
        try send(PriceCall.getPrice(policy).call)
        return try receive(timeout: timeout)
    }

    /// Asks for the current state and every one after it; ``nextState(timeout:)`` gives them.
    public mutating func watch() throws(ClientError) {
        try send(PriceCall.watchPrice.call)
    }

    /// The next state of a watch.
    /// - Parameter timeout: How long to wait for it; `nil` for ever.
    /// - Throws: ``ClientError``; ``ClientError/interrupted`` when a signal comes in, after which it can be called again.
    public mutating func nextState(timeout: Duration? = nil) throws(ClientError) -> StateMessage {
        try receive(timeout: timeout)
    }

    private func send(_ call: Call) throws(ClientError) {
        let bytes = call.encoded()
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.send(descriptor, buffer.baseAddress?.advanced(by: sent), buffer.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .closed(path: path) }
            sent += count
        }
    }

    private mutating func receive(timeout: Duration?) throws(ClientError) -> StateMessage {
        let clock = ContinuousClock()
        let deadline = timeout.map { clock.now.advanced(by: $0) }
        while true {
            if let reply = try nextReply() { return try state(in: reply) }
            try waitForInput(until: deadline, on: clock)
            try readInput()
        }
    }

    private mutating func nextReply() throws(ClientError) -> Reply? {
        do throws(MessageError) {
            guard let message = try input.next() else { return nil }
            return try Reply(decoding: message)
        } catch {
            throw .unintelligible(path: path, reason: error.reason)
        }
    }

    private func waitForInput(until deadline: ContinuousClock.Instant?, on clock: ContinuousClock) throws(ClientError) {
        let left = deadline.map { max(0, clock.now.duration(to: $0).wholeMilliseconds + 1) }
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        let ready = poll(&poller, 1, left.map { Int32(clamping: $0) } ?? -1)
        if ready < 0 { throw errno == EINTR ? .interrupted : .closed(path: path) }
        if ready == 0 { throw .timedOut(path: path) }
    }

    private mutating func readInput() throws(ClientError) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count < 0, errno == EINTR { return }
        guard count > 0 else { throw .closed(path: path) }
        input.append(buffer[..<count])
    }

    private func state(in reply: Reply) throws(ClientError) -> StateMessage {
        if let error = reply.error { throw .refused(error: error, reason: reply.parameters["reason"]?.stringValue) }
        guard let state = reply.parameters["state"]?.objectValue else {
            throw .unintelligible(path: path, reason: "no state in it")
        }
        do {
            return try StateMessage(json: state)
        } catch {
            throw .unintelligible(path: path, reason: error.description)
        }
    }

    private static func connected(_ path: String, timeout: Duration) throws(ClientError) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let isFitting = withUnsafeMutableBytes(of: &address.sun_path) { buffer in
            guard path.utf8.count < buffer.count else { return false }
            buffer.copyBytes(from: path.utf8)
            return true
        }
        guard isFitting else { throw .unreachable(path: path, reason: "longer than a socket's path can be") }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw .unreachable(path: path, reason: systemError(errno)) }
        // Where the backlog is full, connect(2) on a Unix socket waits as long as sending may take.
        var patience = timeval(tv_sec: Int(timeout.components.seconds), tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout.size(ofValue: patience)))
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        if result == 0 { return descriptor }
        let number = errno
        close(descriptor)
        throw number == EAGAIN ? .timedOut(path: path) : .unreachable(path: path, reason: systemError(number))
    }

    private static func systemError(_ number: Int32) -> String {
        String(cString: strerror(number))
    }
}
