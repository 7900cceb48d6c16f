import NIOCore

/// The open connections. Use only on the event loop.
final class GatewayConnections {
    private struct Entry {
        let connection: GatewayConnection
        let address: String?

        var idleSince: NIODeadline { connection.idleSince ?? .distantFuture }
    }

    private let limits: GatewayLimits
    private var entries: [ObjectIdentifier: Entry] = [:]
    private var ofAddress: [String: Int] = [:]
    /// Bytes of responses that are not sent yet.
    private var queued = 0

    init(limits: GatewayLimits) {
        self.limits = limits
    }

    /// Adds a connection. Another one may be closed to make room.
    /// - Parameter address: The client's address; `nil` if the limit per address does not apply to it.
    /// - Returns: Whether there is room for it.
    func enter(_ connection: GatewayConnection, from address: String?) -> Bool {
        if let address, ofAddress[address, default: 0] >= limits.connectionsPerAddress,
            !makeRoom(where: { $0 == address })
        {
            return false
        }
        if entries.count >= limits.connections, !makeRoom(where: { _ in true }) { return false }
        entries[ObjectIdentifier(connection)] = Entry(connection: connection, address: address)
        if let address { ofAddress[address, default: 0] += 1 }
        return true
    }

    func leave(_ connection: GatewayConnection) {
        guard let entry = entries.removeValue(forKey: ObjectIdentifier(connection)), let address = entry.address else {
            return
        }
        ofAddress[address] = ofAddress[address].flatMap { $0 > 1 ? $0 - 1 : nil }
    }

    /// Counts a written response. If too many bytes are unsent, closes the connections whose clients have not read for longest.
    func queue(_ bytes: Int) {
        queued += bytes
        while queued > limits.queuedBytesInAll {
            let waiting = entries.values.filter { $0.connection.unsentBytes > 0 && $0.connection.idleSince != nil }
            guard let longest = waiting.min(by: { $0.idleSince < $1.idleSince }) else { return }
            close(longest)
        }
    }

    /// Removes a response from the count because it was sent, or never will be.
    func sent(_ bytes: Int) { queued -= bytes }

    /// Closes the connection that has been idle for the longest time. One that has never had a response is closed before all others.
    private func makeRoom(where isChosen: (String?) -> Bool) -> Bool {
        let oldest = entries.values.filter { isChosen($0.address) && $0.connection.idleSince != nil }
            .min { $0.connection.isKept != $1.connection.isKept ? !$0.connection.isKept : $0.idleSince < $1.idleSince }
        guard let oldest else { return false }
        close(oldest)
        return true
    }

    private func close(_ entry: Entry) {
        leave(entry.connection)
        entry.connection.close()
    }

    var isEmpty: Bool { entries.isEmpty }

    /// Ends all connections: idle ones and streams at once, the others after their response.
    func endAll() {
        for entry in entries.values { entry.connection.end() }
    }
}

/// The limits on clients of the gateway.
struct GatewayLimits: Sendable {
    /// The maximum number of open connections. To make room for a new one, an idle connection is closed.
    let connections: Int
    /// The maximum number of open connections from one address, except this machine's and Unix sockets, which reverse proxies use.
    var connectionsPerAddress: Int { max(1, connections / 16) }
    /// The maximum number of open event streams.
    var streams: Int { connections / 2 }
    /// The maximum size of the request line and all headers together, bytes.
    var headerBytes = 8192
    var headerCount = 64
    /// The time from a request's first byte to its last, and from the connection to the first byte.
    var requestTimeout = TimeAmount.seconds(10)
    /// The time for which a kept connection may have no request.
    var idleTimeout = TimeAmount.seconds(60)
    /// The time for which a client may leave a response unread.
    var writeTimeout = TimeAmount.seconds(30)
    /// The time from the end of the last response to the end of the connection, if the client does not close it.
    var lingerTimeout = TimeAmount.seconds(1)
    /// While more bytes than this are unsent in a connection, the next request waits.
    var queuedBytes = 64 * 1024
    /// The size of the kernel's send buffer of an event stream (SO_SNDBUF; Linux doubles it and counts its own structures).
    var streamBuffer: SocketOptionValue = 4096
    /// The maximum number of unsent bytes in all connections. Above it, those whose clients have not read for longest are closed.
    var queuedBytesInAll = 8 * 1024 * 1024
}
