/// Where a broker listens: `mqtts://broker.example:8883`, or `mqtt://` without encryption.
struct BrokerAddress: Sendable, Hashable, CustomStringConvertible {
    /// A name, an IPv4 or an IPv6 address, without brackets.
    let host: String
    let port: UInt16
    let isEncrypted: Bool

    /// - Parameter text: A URL with the scheme `mqtts` or `mqtt`. The default port is 8883 or 1883 (the ports that IANA has registered for
    ///   MQTT).
    /// - Returns: `nil` for another URL, or if it has a user, a path or a query.
    init?(_ text: String) {
        let pattern = /(mqtts?):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([0-9]{1,5}))?\/?/
        guard let match = text.wholeMatch(of: pattern), let host = match.2 ?? match.3 else { return nil }
        isEncrypted = match.1 == "mqtts"
        self.host = String(host)
        guard let digits = match.4 else {
            port = isEncrypted ? 8883 : 1883
            return
        }
        guard let port = UInt16(digits), port > 0 else { return nil }
        self.port = port
    }

    /// Whether the broker can only be on this machine.
    var isLocal: Bool { host == "localhost" || host == "::1" || host.wholeMatch(of: /127(\.[0-9]{1,3}){3}/) != nil }

    /// `broker.example:8883`
    var description: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }
}
