import BTCPriceCore
import NIOCore

/// A GET request that is parsed once and sent many times.
package struct HTTPRequest: Sendable {
    /// The server that a connection leads to.
    package struct Origin: Sendable, Hashable {
        let isSecure: Bool
        /// In a resolver's form: without the brackets of an IPv6 address.
        package let host: String
        let port: Int

        /// The value of the `Host` field, with the port if it is not the scheme's default (RFC 9110, section 7.2).
        var hostField: String { port == (isSecure ? 443 : 80) ? host.bracketedHost : authority }

        /// The target of `CONNECT`, always with the port (RFC 9110, section 9.3.6).
        var authority: String { "\(host.bracketedHost):\(port)" }

        /// Whether it is this machine, which no proxy is asked for: a proxy would connect to its own.
        var isLoopback: Bool { host.isLoopbackHost }
    }

    /// The default for the longest body of a response, bytes. The largest body with a price has less than 3,000.
    package static let usualBody = 64 * 1024

    package let origin: Origin
    /// The longest body of the response, bytes.
    let longestBody: Int
    /// The request line and the headers, except for the last ones and the empty line.
    private let head: ByteBuffer

    /// - Parameters:
    ///   - url: The complete URL, `http` or `https`.
    ///   - headers: Headers in addition to Host, Accept-Encoding and User-Agent.
    /// - Returns: `nil` if the URL is invalid, or a header contains a character that is not allowed.
    package init?(_ url: String, headers: [(name: String, value: String)] = [], longestBody: Int = usualBody) {
        guard let address = WebAddress(url), ["http", "https"].contains(address.scheme) else { return nil }
        let isSecure = address.scheme == "https"
        origin = Origin(isSecure: isSecure, host: address.host, port: address.port ?? (isSecure ? 443 : 80))
        let target = (address.path.isEmpty ? "/" : address.path) + (address.query.map { "?\($0)" } ?? "")
        // Without Accept-Encoding, a server may use any coding (RFC 9110, section 12.5.3).
        var head = ByteBuffer(
            string: "GET \(target) HTTP/1.1\r\nHost: \(origin.hostField)\r\nAccept-Encoding: identity\r\n")
        for header in headers {
            guard Self.isSendable(header.name), Self.isSendable(header.value) else { return nil }
            head.writeString("\(header.name): \(header.value)\r\n")
        }
        self.head = head
        self.longestBody = longestBody
    }

    /// The request as sent.
    /// - Parameter more: Headers after the others.
    func bytes(userAgent: String, more: KeyValuePairs<String, String> = [:]) -> ByteBuffer {
        var bytes = head
        bytes.writeString("User-Agent: ")
        bytes.writeString(userAgent)
        for (name, value) in more { bytes.writeString("\r\n\(name): \(value)") }
        bytes.writeStaticString("\r\n\r\n")
        return bytes
    }

    /// Whether a text is allowed in a header: it contains no control character, such as a line end.
    static func isSendable(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
}
