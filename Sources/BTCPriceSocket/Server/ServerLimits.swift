import BTCPriceCore
import CLinux
import Glibc

/// The limits for a server's clients, so that none can take the others' share.
package struct ServerLimits: Sendable, Hashable {
    /// Connections in total; the next one is closed. Root and the daemon's user may have ``reserve`` more.
    package var connections: Int
    /// Connections of one user: three quarters of all, as in sd-varlink. The next one is closed.
    package var connectionsPerUser: Int
    /// The longest message from a client, bytes; usual calls take less than a hundred. A longer one ends the connection.
    package var messageBytes: Int
    /// The memory for the replies that clients have not read and the calls that wait for them, of all connections together, bytes; of one
    /// user three quarters. Above this, of the user who holds most, the connections that have been unread longest are closed.
    package var queuedBytes: Int
    /// Pending calls in total, such as fetches. The next gets the error `Busy`, unless it is an administrator's that changes the daemon.
    package var pendingCalls: Int
    /// The work of one user's calls in the long run, in units of about 0.1 ms (``PriceCall/cost``) a second: a fifth of a processor. Above
    /// it, calls wait.
    package static let costPerSecond: Int64 = 2000
    /// The work that a user's calls may save up: it suffices for a million candles.
    static let costAtOnce: Int64 = 50_000
    /// How long a call may wait for that, milliseconds: less than the timeouts of usual clients. The next gets the error `Busy`.
    static let longestWait: Int64 = 2000
    /// How long a call may take from its first byte to its last before the connection is closed.
    package var timeout: Duration
    /// The socket's send buffer (SO_SNDBUF), bytes. It is small because a slow reader gets its contents late: with the default a
    /// stopped `watch` had 167 old replies ahead of the newest.
    var sendBufferBytes: Int32
    /// Watchers served in one turn of the loop, so that a call does not wait for all of them.
    var watchersPerTurn: Int
    /// Calls of a connection that are processed before another one has its turn.
    static let callsPerTurn = 8
    /// Connections that have a turn before the loop looks for new events: another user's call is one of these.
    static let connectionsPerTurn = 16

    package init(
        connections: Int, messageBytes: Int = 8 * 1024, queuedBytes: Int = 64 << 20, pendingCalls: Int = 4096,
        timeout: Duration = .seconds(30), sendBufferBytes: Int32 = 4096, watchersPerTurn: Int = 256
    ) {
        self.connections = connections
        connectionsPerUser = max(1, connections / 4 * 3)
        self.messageBytes = messageBytes
        self.queuedBytes = queuedBytes
        self.pendingCalls = pendingCalls
        self.timeout = timeout
        self.sendBufferBytes = sendBufferBytes
        self.watchersPerTurn = watchersPerTurn
    }

    /// The soft limit that ``raiseDescriptors()`` aims for.
    private static let usefulDescriptors: rlim_t = 32_768

    /// Raises this process's soft limit on file descriptors to 32,768 or the hard limit, if lower. The usual 1024 is for programs
    /// that use select(2) (systemd.exec(5), LimitNOFILE=). Under the unit the limit is already high enough.
    package static func raiseDescriptors() {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < min(limit.rlim_max, usefulDescriptors) else { return }
        limit.rlim_cur = min(limit.rlim_max, usefulDescriptors)
        setrlimit(resource, &limit)
    }

    /// Connections kept for root and the daemon's user when there are too many others: they can always ask why, and pause the daemon.
    package static let reserve = 8

    /// The limits that fit this process: with the reserve, three quarters of its file descriptors.
    package static func fitting() -> ServerLimits {
        ServerLimits(connections: max(16, min(descriptors, 1 << 20) / 4 * 3 - reserve))
    }

    /// How many files this process may have open; 1024 if unknown.
    package static var descriptors: Int {
        var limit = rlimit()
        return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
            ? Int(clamping: limit.rlim_cur) : 1024
    }

    /// The minimum number of descriptors. The daemon itself needs about twenty, and sources and clients need more.
    package static let fewestDescriptors = 64

    /// The memory for one user's connections, bytes: three quarters of ``queuedBytes``.
    var queuedBytesPerUser: Int { queuedBytes - queuedBytes / 4 }

    /// Pending calls of one user: three quarters of the total, so that others find room.
    var pendingCallsPerUser: Int { pendingCalls - pendingCalls / 4 }

    /// How long a client may leave its replies unread before the connection is closed.
    package var writeTimeout: Duration { timeout * 2 }
    /// How long a connection may go without a call, unless it watches, before it is closed.
    package var idleTimeout: Duration { timeout * 20 }

    /// The value of a limit, in its unit.
    package func most(of limit: ClientLimit) -> Int64 {
        switch limit {
        case .connections: Int64(connections)
        case .connectionsPerUser: Int64(connectionsPerUser)
        case .messageBytes: Int64(messageBytes)
        case .queuedBytes: Int64(queuedBytes)
        case .pendingCalls: Int64(pendingCalls)
        case .costPerSecond: Self.costPerSecond
        case .idleTimeout: idleTimeout.wholeMilliseconds
        case .messageTimeout: timeout.wholeMilliseconds
        case .writeTimeout: writeTimeout.wholeMilliseconds
        }
    }

    func timeout(_ patience: Connection.Patience) -> Duration {
        switch patience {
        case .idle: idleTimeout
        case .message: timeout
        case .write: writeTimeout
        }
    }

    /// How often connections are checked for timeouts: each ends at most a quarter of ``timeout`` late.
    var sweepPeriod: Duration { max(.milliseconds(100), timeout / 4) }
}

/// A limit for the clients, by its name in the interface.
package enum ClientLimit: String, Sendable, CaseIterable {
    case connections
    case connectionsPerUser
    case messageBytes
    case queuedBytes
    case pendingCalls
    case costPerSecond
    case idleTimeout = "idleTimeoutMs"
    case messageTimeout = "messageTimeoutMs"
    case writeTimeout = "writeTimeoutMs"
}

/// The loop's counts of its clients, and of the limits hit since the start.
package struct ClientCounts: Sendable, Hashable {
    package var connections = 0
    /// Users with open connections.
    package var users = 0
    /// Connections that watch.
    package var watchers = 0
    /// Calls since the start.
    package var calls: Int64 = 0
    /// Calls that were replied to, by their methods.
    package var replied = CallTally()
    /// Calls that want a price.
    var priceCalls: Int64 = 0
    package var limits: ServerLimits
    private var hits: [ClientLimit: Int64] = [:]

    init(limits: ServerLimits) {
        self.limits = limits
    }

    /// How often a limit was hit since the start.
    package func hits(of limit: ClientLimit) -> Int64 { hits[limit, default: 0] }

    mutating func hit(_ limit: ClientLimit) { hits[limit, default: 0] += 1 }
}
