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
