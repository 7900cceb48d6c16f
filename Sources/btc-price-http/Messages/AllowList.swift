import CommandLine
import NIOCore

/// The entries of `--hosts` and `--origins`. One that no request can match is refused.
enum AllowList {
    /// Stands for any host name.
    static let anyHost = "*"

    /// Reads an entry of `--hosts`: a name, an address or ``anyHost``. A port may follow, and does not matter.
    static func host(_ text: some StringProtocol) throws(UsageError) -> String {
        let entry = String(text.lowercased().trimmingPrefix { $0 == " " })
        if entry == anyHost { return entry }
        if let address = address(entry) { return address }
        if entry.wholeMatch(of: /[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?(:[0-9]{1,5})?/) != nil || entry.hasPrefix("[") {
            let name = AccessPolicy.name(ofAuthority: entry)
            if !entry.hasPrefix("[") { return name }
            if let address = address(name) { return address }
        }
        var instead = "a name in ASCII such as price.internal, or an address"
        if let url = entry.split(separator: "://").dropFirst().first, let name = try? host(url.prefix { $0 != "/" }) {
            instead = name
        } else if entry.contains("*") || entry.contains("/") {
            instead = "each name or address, or '*' for any host; patterns and networks are not possible"
        }
        throw UsageError("'\(entry)' is not a host name: write \(instead)")
    }

    /// Reads an entry of `--origins`: an origin (RFC 6454) such as `https://shop.example`, one of an extension or an app, or `null`.
    static func origin(_ text: some StringProtocol) throws(UsageError) -> String {
        let entry = text.lowercased().filter { $0 != " " }
        if entry == "null" { return entry }
        let form = /(?<origin>(?<scheme>[a-z][a-z0-9+.-]*):\/\/([a-z0-9._-]+|\[[0-9a-f:.]+\]))(:(?<port>[0-9]{1,5}))?/
        guard let found = entry.wholeMatch(of: form) else {
            let instead =
                entry.contains("*")
                ? "each origin; patterns are not possible"
                : "https://shop.example, without a path, or null for pages of files"
            throw UsageError("'\(entry)' is not an origin: write \(instead)")
        }
        guard !["http 80", "https 443"].contains("\(found.scheme) \(found.port ?? "")") else {
            throw UsageError("'\(entry)' is not an origin: browsers omit this port; write \(found.origin)")
        }
        return entry
    }

    /// An IP address as clients write it.
    private static func address(_ text: String) -> String? {
        (try? SocketAddress(ipAddress: text, port: 0))?.ipAddress
    }
}
