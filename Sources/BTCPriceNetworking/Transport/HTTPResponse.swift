/// An answer, whole.
public struct HTTPAnswer: Sendable, Hashable {
    /// The status code, 200 to 999.
    public let status: Int
    /// The body; its transfer coding is taken off, a content coding is not.
    public let body: [UInt8]
    /// The lines of the fields, each with its line end.
    let fields: [UInt8]
    /// Where each stands in them.
    let lines: [FieldLines.Line]

    /// The value of the first field of a name.
    /// - Parameter name: In lower case.
    public func field(_ name: StaticString) -> String? {
        guard let line = lines.first(where: { $0.isNamed(name, in: fields) }) else { return nil }
        return String(decoding: fields[line.value], as: UTF8.self)
    }
}

/// Why there is no answer.
public enum HTTPError: Error, Sendable {
    /// Whoever asked does not want it any more.
    case cancelled
    /// The name has no address, or nobody says which. In a person's words.
    case unresolved(String)
    /// No connection came to be in time.
    case connectTimedOut
    /// No connection could be made: why, where the system says so.
    case notConnected(errno: Int32?)
    /// The connection went: why.
    case lost(errno: Int32)
    /// The connection was closed before the answer was whole.
    case closedEarly
    /// More than a body may have, bytes.
    case tooLong(limit: Int)
    /// Not HTTP/1.1 as RFC 9112 has it: what is wrong.
    case malformed(String)
    /// The proxy wants to know who we are.
    case proxyWantsPassword
    /// The proxy does not let us through: its word.
    case proxyRefused(String)
    /// What a library threw: TLS.
    case other(any Error)
}
