import BTCPriceCore
import CommandLine
import NIOCore

/// The entries of `--hosts` and `--origins`. One that no request can match is refused.
enum AllowList {
    /// Stands for any host name.
    static let anyHost = "*"

    /// Reads an entry of `--hosts`: a name, an address or ``anyHost``. A port may follow, and does not matter.
    static func host(_ text: some StringProtocol) throws(UsageError) -> String {
        let entry = String(text.lowercased().drop { $0 == " " })
        if entry == anyHost { return entry }
        if let address = address(entry) { return address }
        if let address = WebAddress("http://\(entry)/"), !entry.contains(where: { "/?#".contains($0) }) {
            let name = AccessPolicy.name(ofAuthority: address.host.bracketedHost)
            if let address = self.address(name) { return address }
            if name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy({ !$0.isEmpty }) { return name }
        }
        var instead = "a name in ASCII such as price.internal, or an address"
        if let start = entry.start(of: "://"),
            let name = try? host(entry[start...].dropFirst(3).prefix { $0 != "/" })
        {
            instead = name
        } else if entry.holds("*") || entry.holds("/") {
            instead = "each name or address, or '*' for any host; patterns and networks are not possible"
        }
        throw UsageError("'\(entry)' is not a host name: write \(instead)")
    }

    /// Reads an entry of `--origins`: an origin (RFC 6454) such as `https://shop.example`, one of an extension or an app, or `null`.
    static func origin(_ text: some StringProtocol) throws(UsageError) -> String {
        let entry = text.lowercased().filter { $0 != " " }
        if entry == "null" { return entry }
        let address = WebAddress(entry)
        let withoutPort = address.map { "\($0.scheme)://\($0.host.bracketedHost)" } ?? ""
        guard let address, entry == withoutPort + (address.port.map { ":\($0)" } ?? "") else {
            let instead =
                entry.holds("*")
                ? "each origin; patterns are not possible"
                : "https://shop.example, without a path, or null for pages of files"
            throw UsageError("'\(entry)' is not an origin: write \(instead)")
        }
        guard address.port != ["http": 80, "https": 443][address.scheme, default: 0] else {
            throw UsageError("'\(entry)' is not an origin: browsers omit this port; write \(withoutPort)")
        }
        return entry
    }

    /// An IP address as clients write it.
    private static func address(_ text: String) -> String? {
        (try? SocketAddress(ipAddress: text, port: 0))?.ipAddress
    }
}
