import BTCPriceCore
import CLinux
import Glibc

/// What a server grants its clients, so that none can take it from the others.
package struct ServerLimits: Sendable, Hashable {
    /// Connections in all; the next one is closed.
    package var connections: Int
    /// Connections of one user; the next one is closed.
    package var connectionsPerUser: Int
    /// The longest message a client may send, bytes. Calls of this interface take less than a hundred. Past it the connection ends.
    package var messageBytes: Int
    /// Replies waiting for a client that pipelines calls without reading; past it no further call of it is read, bytes.
    package var queuedBytes: Int
    /// Calls in all that wait for an answer which is not at hand, as of a fetch; the next one gets the error `Busy`, unless
    /// it is an administrator's to pause or resume.
    package var pendingCalls: Int
    /// How long a connection may be without a call, unless it watches; `nil` for ever. Then it is closed.
    package var idleTimeout: Duration?
    /// How long a call may take from its first byte to its last; `nil` for ever. Then the connection is closed.
    package var messageTimeout: Duration?
    /// How long a client may leave its replies lying; `nil` for ever. Then the connection is closed.
    package var writeTimeout: Duration?
    /// The socket's own send buffer (SO_SNDBUF), bytes. Small, since what lies in it is old by the time a slow reader gets
    /// to it: with the default a stopped `watch` had 167 old replies ahead of the newest.
    var sendBufferBytes: Int32
    /// Watchers served in one turn of the loop, so that a call in between does not wait for all of them.
    var watchersPerTurn: Int

    /// Limits of which those that are not given are the defaults.
    package init(
        connections: Int, connectionsPerUser: Int, messageBytes: Int = 8 * 1024, queuedBytes: Int = 16 * 1024,
        pendingCalls: Int = 4096, idleTimeout: Duration? = .seconds(600), messageTimeout: Duration? = .seconds(30),
        writeTimeout: Duration? = .seconds(60), sendBufferBytes: Int32 = 4096, watchersPerTurn: Int = 256
    ) {
        self.connections = connections
        self.connectionsPerUser = connectionsPerUser
        self.messageBytes = messageBytes
        self.queuedBytes = queuedBytes
        self.pendingCalls = pendingCalls
        self.idleTimeout = idleTimeout
        self.messageTimeout = messageTimeout
        self.writeTimeout = writeTimeout
        self.sendBufferBytes = sendBufferBytes
        self.watchersPerTurn = watchersPerTurn
    }

    /// The file descriptors that a daemon has use for.
    private static let usefulDescriptors: rlim_t = 32_768

    /// Raises this process's soft limit on file descriptors towards what it has use for. The usual one of 1024 is for programs that
    /// use select(2) (systemd.exec(5), LimitNOFILE=); under the unit it is high enough already.
    package static func raiseDescriptors() {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < min(limit.rlim_max, usefulDescriptors) else { return }
        limit.rlim_cur = min(limit.rlim_max, usefulDescriptors)
        setrlimit(resource, &limit)
    }

    /// The limits that fit this process: three quarters of the file descriptors it may have, of which one user gets three
    /// quarters, as in systemd's sd-varlink.
    package static func fitting() -> ServerLimits {
        let connections = max(16, min(descriptors, 1 << 20) / 4 * 3)
        return ServerLimits(connections: connections, connectionsPerUser: connections / 4 * 3)
    }

    /// How many files this process may have open.
    package static var descriptors: Int {
        var limit = rlimit()
        return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
            ? Int(clamping: limit.rlim_cur) : 1024
    }

    /// With fewer files the daemon can't work: it has some twenty of its own, and sources and clients need theirs.
    package static let fewestDescriptors = 64

    /// How many calls of one user may wait for an answer: three quarters of all, so that others find room.
    var pendingCallsPerUser: Int { pendingCalls - pendingCalls / 4 }

    /// How long a connection may be as it is.
    func timeout(_ patience: Connection.Patience) -> Duration? {
        switch patience {
        case .idle: idleTimeout
        case .message: messageTimeout
        case .write: writeTimeout
        }
    }

    /// How often the connections are looked at for one that has taken too long: then each is found within a quarter more than its
    /// time. `nil` where none can.
    var sweepPeriod: Duration? {
        [idleTimeout, messageTimeout, writeTimeout].compactMap(\.self).min().map { max(.milliseconds(100), $0 / 4) }
    }
}

/// Who asks, and which limits were hit since the start: what the loop knows of its clients.
package struct ClientCounts: Sendable, Hashable {
    /// Open connections.
    package var connections = 0
    /// Users who have some.
    package var users = 0
    /// Connections that watch.
    package var watchers = 0
    /// Calls since the start.
    package var calls: Int64 = 0
    /// The limits that are in force.
    package var limits: ServerLimits
    /// Connections refused because of ``ServerLimits/connections``.
    package var refused: Int64 = 0
    /// Connections refused because of ``ServerLimits/connectionsPerUser``.
    package var refusedOfUser: Int64 = 0
    /// Connections ended because of ``ServerLimits/messageBytes``.
    package var tooLong: Int64 = 0
    /// Clients held back because of ``ServerLimits/queuedBytes``.
    package var heldBack: Int64 = 0
    /// Calls refused because of ``ServerLimits/pendingCalls``.
    package var refusedCalls: Int64 = 0
    /// Connections ended because of ``ServerLimits/idleTimeout``.
    package var idle: Int64 = 0
    /// Connections ended because of ``ServerLimits/messageTimeout``.
    package var slowMessages: Int64 = 0
    /// Connections ended because of ``ServerLimits/writeTimeout``.
    package var slowReaders: Int64 = 0
}

/// Something about the socket that is worth telling an operator.
package enum ServerEvent: Sendable, Hashable {
    /// A connection was refused since there are too many in all.
    case tooManyConnections(limit: Int)
    /// A connection was refused since its user has too many.
    case tooManyConnectionsOfUser(uid: UInt32, limit: Int)
    /// No connection can be accepted for the moment. The ticks go on.
    case acceptFailed(reason: String)
}
