import FoundationEssentials
import NIOHTTP1

/// What is asked again and again with GET: taken apart once.
package struct HTTPRequest: Sendable {
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
    private let target: String
    private let headers: HTTPHeaders

    /// - Parameters:
    ///   - url: The whole address, `http` or `https`.
    ///   - headers: Headers beside Host and User-Agent.
    /// - Returns: `nil` where the address is none, or a field could not be sent as it is.
    package init?(_ url: String, headers: [(name: String, value: String)] = []) {
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
        target = path + query
        var all = HTTPHeaders([("Host", origin.hostField)])
        for header in headers {
            guard Self.isSendable(header.name), Self.isSendable(header.value) else { return nil }
            all.add(name: header.name, value: header.value)
        }
        self.headers = all
    }

    /// The request as it is sent.
    func head(userAgent: String) -> HTTPRequestHead {
        var headers = headers
        headers.add(name: "User-Agent", value: userAgent)
        return HTTPRequestHead(version: .http1_1, method: .GET, uri: target, headers: headers)
    }

    /// Whether a text is allowed in a header: no line end, no control character.
    static func isSendable(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
}
