import BTCPriceNetworking

/// The rules for URLs in the configuration.
enum URLRule {
    /// `http` or `https` and a host, with an optional port and path.
    static func isExchange(_ text: String) -> Bool {
        guard let (scheme, rest) = split(text), ["http", "https"].contains(scheme) else { return false }
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), !text.contains(where: { "?#@\\\"".contains($0) })
        else { return false }
        let authority = rest.prefix { $0 != "/" }
        return hostAndPort(authority) != nil
    }

    /// `ws` or `wss` and a host, with an optional port, without a path.
    static func isStream(_ text: String) -> Bool {
        guard let (scheme, rest) = split(text), ["ws", "wss"].contains(scheme) else { return false }
        return hostAndPort(withoutTrailingSlash(rest)[...]) != nil
    }

    static func proxy(_ text: String) -> HTTPTransportSettings.Proxy? {
        guard let (scheme, rest) = split(text), let (host, port) = hostAndPort(withoutTrailingSlash(rest)[...]),
            let port
        else { return nil }
        switch scheme {
        case "http": return .http(host: host, port: port)
        case "socks5": return .socks5(host: host, port: port)
        default: return nil
        }
    }

    static func withoutTrailingSlash(_ text: some StringProtocol) -> String {
        String(text.hasSuffix("/") ? text.dropLast() : text[...])
    }

    private static func split(_ text: String) -> (scheme: Substring, rest: Substring)? {
        let parts = text.split(separator: "://", maxSplits: 1)
        return parts.count == 2 ? (parts[0], parts[1]) : nil
    }

    /// `host`, `host:port`, `[::1]:port`
    private static func hostAndPort(_ authority: Substring) -> (host: String, port: Int?)? {
        var host = authority
        var port: Int?
        if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") {
            guard let number = Int(authority[authority.index(after: colon)...]), (1...65535).contains(number) else {
                return nil
            }
            host = authority[..<colon]
            port = number
        }
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        let allowed: (UInt8) -> Bool = { byte in
            (0x30...0x3A).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || [UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_")].contains(byte)
        }
        // The longest host name has 253 characters (RFC 1035, section 2.3.4).
        guard (1...253).contains(host.utf8.count), host.utf8.allSatisfy(allowed) else { return nil }
        return (String(host), port)
    }
}
