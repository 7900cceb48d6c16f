import Glibc
import NIOCore

/// Where the gateway listens.
struct ListenAddress: Sendable, Hashable, CustomStringConvertible {
    enum Kind: Sendable, Hashable {
        /// A numeric address and a port.
        case tcp(String, Int)
        /// A socket's file.
        case unix(String)
    }

    let kind: Kind
    /// `127.0.0.1:8340`, `[::1]:8340` or `unix:/run/btc-price-http/http.sock`
    let description: String

    static let standard = "127.0.0.1:8340"

    /// - Parameter text: A numeric address with a port, or `unix:` with an absolute path.
    init?(_ text: String) {
        description = text
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst("unix:".count))
            // sun_path of unix(7), with its NUL.
            guard path.hasPrefix("/"), path.utf8.count < 108 else { return nil }
            kind = .unix(path)
            return
        }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard (try? SocketAddress(ipAddress: String(host), port: Int(port))) != nil else { return nil }
        kind = .tcp(String(host), Int(port))
    }
}

extension SocketAddress {
    /// The IP address; the IPv4 address if it is mapped to IPv6 (RFC 4291, section 2.5.5.2). `nil` for a Unix socket.
    var plainAddress: String? {
        ipAddress.map { $0.hasPrefix("::ffff:") && $0.contains(".") ? String($0.dropFirst("::ffff:".count)) : $0 }
    }

    /// Whether only programs on this machine can use it.
    var isLocal: Bool { plainAddress.map { $0.hasPrefix("127.") || $0 == "::1" } ?? true }
}
