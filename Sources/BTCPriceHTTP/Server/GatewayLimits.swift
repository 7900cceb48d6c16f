import NIOCore

/// The limits on clients of the gateway.
struct GatewayLimits: Sendable {
    /// Open connections in all. For one more, the one that has been idle longest is closed.
    var connections = 2048
    /// Open connections of one address. Addresses of this machine and Unix sockets, which reverse proxies use, have no such limit.
    var connectionsPerAddress = 128
    /// Open event streams.
    var streams = 1000
    /// The longest request line and all headers together, bytes.
    var headerBytes = 8192
    var headerCount = 64
    /// From a request's first byte to its last, and from the connection to the first byte.
    var requestTimeout = TimeAmount.seconds(10)
    /// A kept connection without a request.
    var idleTimeout = TimeAmount.seconds(60)
    /// A reply that is not read.
    var writeTimeout = TimeAmount.seconds(30)
    /// From the end of the last response to the end of the connection, if the client does not close it.
    var lingerTimeout = TimeAmount.seconds(1)
    /// Bytes that wait in one connection before it is asked for more.
    var queuedBytes = 64 * 1024
    /// Bytes of responses that wait in all connections. Above it, those whose clients have not read for longest are closed.
    var queuedBytesInAll = 8 * 1024 * 1024
}
