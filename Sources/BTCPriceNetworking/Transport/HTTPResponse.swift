package import NIOHTTP1

/// A whole response.
package struct HTTPResponse: Sendable {
    /// The status code, 200 to 999.
    package let status: Int
    /// The headers in their order.
    package let headers: HTTPHeaders
    /// The body without its transfer coding; a content coding is left as it is.
    package let body: [UInt8]

    /// The value of the first header of a name, without white space around it.
    package func header(_ name: String) -> String? {
        guard let value = headers.first(name: name) else { return nil }
        var text = value.utf8[...]
        while let byte = text.first, byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") { text.removeFirst() }
        while let byte = text.last, byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") { text.removeLast() }
        return String(Substring(text))
    }
}

/// Why there is no response.
package enum HTTPError: Error, Sendable {
    /// The caller cancelled the request.
    case cancelled
    /// The name has no address, or no name server responds. One line for people.
    case unresolved(String)
    /// There was no connection in time.
    case connectTimedOut
    /// No connection could be made; the system's reason, if there is one.
    case notConnected(errno: Int32?)
    /// The connection broke, with the system's reason.
    case lost(errno: Int32)
    /// The connection was closed before the response was complete.
    case closedEarly
    /// The body has more than this many bytes.
    case tooLong(limit: Int)
    /// Not HTTP/1.1 as RFC 9112 has it: what is wrong.
    case malformed(String)
    /// The proxy requires a user name and a password.
    case proxyWantsPassword
    /// The proxy refuses the connection: its reason.
    case proxyRefused(String)
    /// An error of a library: TLS.
    case other(any Error)
}
