import NIOCore

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
    /// While more bytes than this are unsent in a connection, the next request waits and events of a stream are left out.
    var queuedBytes = 64 * 1024
    /// The maximum number of unsent bytes in all connections. Above it, those whose clients have not read for longest are closed.
    var queuedBytesInAll = 8 * 1024 * 1024
}
