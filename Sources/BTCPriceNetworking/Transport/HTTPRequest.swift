import FoundationEssentials
import NIOCore

/// What is asked again and again with GET: taken apart once.
public struct HTTPQuestion: Sendable, Hashable {
    /// Whom a connection leads to.
    struct Origin: Sendable, Hashable {
        /// Whether TLS is spoken.
        let isSecure: Bool
        /// As a resolver takes it: without the brackets of an IPv6 address.
        let host: String
        let port: Int

        /// As it stands in a `Host` field, with its port where that is not the scheme's (RFC 9110, section 7.2).
        var hostField: String { port == (isSecure ? 443 : 80) ? bracketedHost : authority }

        /// As `CONNECT` names it, always with its port (RFC 9110, section 9.3.6).
        var authority: String { "\(bracketedHost):\(port)" }

        private var bracketedHost: String { host.contains(":") ? "[\(host)]" : host }
    }

    let origin: Origin
    /// All but the User-Agent and the empty line at the end.
    private let head: String

    /// - Parameters:
    ///   - url: The whole address, `http` or `https`.
    ///   - fields: What is told beside who asks.
    /// - Returns: `nil` where the address is none, or a field could not be sent as it is.
    public init?(_ url: String, fields: [(name: String, value: String)] = []) {
        guard let parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased(),
            scheme == "http" || scheme == "https", parts.user == nil, parts.password == nil,
            let host = parts.percentEncodedHost.map({ String($0.drop { $0 == "[" }.prefix { $0 != "]" }) }),
            // No name is longer (RFC 1035, section 2.3.4).
            !host.isEmpty, host.utf8.count <= 253,
            (1...65_535).contains(parts.port ?? 80)
        else { return nil }
        let isSecure = scheme == "https"
        origin = Origin(isSecure: isSecure, host: host, port: parts.port ?? (isSecure ? 443 : 80))
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        let query = parts.percentEncodedQuery.map { "?\($0)" } ?? ""
        var head = "GET \(path)\(query) HTTP/1.1\r\nHost: \(origin.hostField)\r\n"
        for field in fields {
            guard Self.isSendable(field.name), Self.isSendable(field.value) else { return nil }
            head += "\(field.name): \(field.value)\r\n"
        }
        self.head = head
    }

    /// The request as it goes out.
    func bytes(userAgent: String) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.reserveCapacity(head.utf8.count + userAgent.utf8.count + 16)
        buffer.writeString(head)
        buffer.writeString("User-Agent: ")
        buffer.writeString(userAgent)
        buffer.writeString("\r\n\r\n")
        return buffer
    }

    /// Whether a text leaves a field where it is: no line end, no control character.
    static func isSendable(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
}
