import BTCPriceCore
import BTCPriceNetworking

/// The rules for URLs in the configuration. Whether a host and a port can be used, ``WebAddress`` decides.
enum URLRule {
    /// `http` or `https` and a host, with an optional port and path.
    static func isExchange(_ text: String) -> Bool { parts(text, ["http", "https"]) != nil }

    /// `ws` or `wss` and a host, with an optional port, without a path.
    static func isStream(_ text: String) -> Bool { parts(text, ["ws", "wss"])?.hasPath == false }

    static func proxy(_ text: String) -> HTTPTransportSettings.Proxy? {
        guard let (scheme, host, port, hasPath) = parts(text, ["http", "socks5"]), let port, !hasPath else {
            return nil
        }
        return scheme == "http" ? .http(host: host, port: port) : .socks5(host: host, port: port)
    }

    static func withoutTrailingSlash(_ text: some StringProtocol) -> String {
        String(text.hasSuffix("/") ? text.dropLast() : text[...])
    }

    /// The parts of a URL with one of these schemes, and without user, query and fragment; `nil` if it is not valid.
    private static func parts(
        _ text: String, _ schemes: [String]
    ) -> (scheme: String, host: String, port: Int?, hasPath: Bool)? {
        guard let address = WebAddress(text), let scheme = schemes.first(where: { text.hasPrefix("\($0)://") }),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), !text.contains(where: { "?#@\\\"".contains($0) })
        else { return nil }
        return (scheme, address.host, address.port, !["", "/"].contains(address.path))
    }
}
