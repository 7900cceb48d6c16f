import CEpoll
import Glibc

/// What a server grants its clients, so that none can take it from the others.
public struct ServerLimits: Sendable, Hashable {
    /// Connections in all.
    public var connections: Int
    /// Connections of one user.
    public var connectionsPerUser: Int
    /// The longest message a client may send, bytes. Calls of this interface take less than a hundred.
    public var messageBytes: Int
    /// Replies waiting for a client that pipelines calls without reading; past it no further call of it is read, bytes.
    public var queuedBytes: Int
    /// The socket's own send buffer (SO_SNDBUF), bytes. Small, since what lies in it is old by the time a slow reader gets
    /// to it: with the default a stopped `watch` had 167 old replies ahead of the newest.
    public var sendBufferBytes: Int32
    /// Watchers served in one turn of the loop, so that a call in between does not wait for all of them.
    public var watchersPerTurn: Int

    /// The limits that fit this process: three quarters of the file descriptors it may have, of which one user gets three
    /// quarters, as in systemd's sd-varlink.
    public static func fitting() -> ServerLimits {
        var limit = rlimit()
        let descriptors =
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? Int(clamping: limit.rlim_cur) : 1024
        let connections = max(16, min(descriptors, 1 << 20) / 4 * 3)
        return ServerLimits(
            connections: connections, connectionsPerUser: connections / 4 * 3, messageBytes: 8 * 1024,
            queuedBytes: 16 * 1024, sendBufferBytes: 4096, watchersPerTurn: 256)
    }
}

/// Who asks, and which limits were hit since the start: what the loop knows of its clients.
public struct ClientCounts: Sendable, Hashable {
    /// Open connections.
    public var connections = 0
    /// Users who have some.
    public var users = 0
    /// Connections that watch.
    public var watchers = 0
    /// Calls since the start.
    public var calls: Int64 = 0
    /// The limits that are in force.
    public var limits: ServerLimits
    /// Connections refused because of ``ServerLimits/connections``.
    public var refused: Int64 = 0
    /// Connections refused because of ``ServerLimits/connectionsPerUser``.
    public var refusedOfUser: Int64 = 0
    /// Connections ended because of ``ServerLimits/messageBytes``.
    public var tooLong: Int64 = 0
    /// Clients held back because of ``ServerLimits/queuedBytes``.
    public var heldBack: Int64 = 0
}

/// Something about the socket that is worth telling an operator.
public enum ServerEvent: Sendable, Hashable {
    /// A connection was refused since there are too many in all.
    case tooManyConnections(limit: Int)
    /// A connection was refused since its user has too many.
    case tooManyConnectionsOfUser(uid: UInt32, limit: Int)
    /// No connection can be accepted for the moment. The ticks go on.
    case acceptFailed(reason: String)
}
