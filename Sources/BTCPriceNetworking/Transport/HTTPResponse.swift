package struct HTTPResponse: Sendable {
    /// The status code, 101 or 200 to 999.
    package let status: Int
    package var fields = HTTPFields()
    /// The body without its transfer coding. A content coding is not decoded.
    package let body: ArraySlice<UInt8>

    /// The value of the first header with this name, without surrounding white space.
    /// - Parameter name: In lower case.
    package func header(_ name: StaticString) -> String? { fields.first(name) }
}

/// Why there is no response.
package enum HTTPError: Error, Sendable {
    case cancelled
    /// The name has no address, or no name server responds. A one-line description.
    case unresolved(String)
    case connectTimedOut
    /// No connection could be made, with the system's reason if there is one.
    case notConnected(errno: Int32?)
    /// The connection broke, with the system's reason.
    case lost(errno: Int32)
    /// The connection was closed before the response was complete.
    case closedEarly
    /// A kept connection was closed before a byte of the response. The request may be sent again (RFC 9112, section 9.3.1).
    case keptConnectionClosed
    /// The body has more than this many bytes.
    case tooLong(limit: Int)
    /// Not valid HTTP/1.1 (RFC 9112), with a description of what is wrong.
    case malformed(String)
    /// The proxy requires a user name and a password.
    case proxyWantsPassword
    /// The proxy refuses the connection, with its reason.
    case proxyRefused(String)
    /// Another error, such as one of TLS.
    case other(any Error)
}
