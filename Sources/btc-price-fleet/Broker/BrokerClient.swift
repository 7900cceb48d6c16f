import BTCPriceCore

/// What the loop does for a client of a broker.
enum BrokerAction<Effect: Sendable>: Sendable {
    case publish(BrokerMessage)
    /// The messages of a topic filter (MQTT 3.1.1, section 4.7).
    case subscribe(String)
    case unsubscribe(String)
    /// An effect that does not concern the broker.
    case effect(Effect)
}

/// What a connection to a broker is used for. A pure value: it returns actions, and the loop performs them.
protocol BrokerClient: Sendable {
    associatedtype Effect: Sendable

    /// The MQTT last will, which the broker publishes if the connection ends without a goodbye; `nil` for none.
    var will: BrokerMessage? { get }

    /// The time by which ``proceed(canPublish:at:)`` must be called; `nil` for never.
    var deadline: BootTime? { get }

    /// Called when the broker has accepted the connection.
    mutating func connected(at now: ObservationTime) -> [BrokerAction<Effect>]

    /// Called when there is no connection.
    /// - Parameter reason: Why, in one line.
    mutating func disconnected(_ reason: String, at now: ObservationTime) -> [BrokerAction<Effect>]

    mutating func received(_ message: BrokerMessage, at now: ObservationTime) -> [BrokerAction<Effect>]

    /// Called when time has passed, or when another thread has woken the loop.
    /// - Parameter canPublish: Whether there is a connection, and all that was published has been sent.
    mutating func proceed(canPublish: Bool, at now: ObservationTime) -> [BrokerAction<Effect>]

    /// Called when the program ends. Returns the last messages to publish.
    mutating func farewell() -> [BrokerMessage]
}

/// A message to or from a broker.
struct BrokerMessage: Sendable, Hashable {
    /// How it is delivered (MQTT 3.1.1, section 4.3).
    enum Delivery: Int32, Sendable {
        /// Quality of service 0.
        case atMostOnce = 0
        /// Quality of service 1.
        case atLeastOnce = 1
    }

    var topic: String
    var payload: [UInt8]
    var delivery = Delivery.atMostOnce
    /// For a sent message, whether the broker keeps it for later subscribers. For a received one, whether the broker had kept it.
    var isRetained = true
}

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
        guard let address = WebAddress(text), ["mqtt", "mqtts"].contains(address.scheme), !text.contains("#"),
            ["", "/"].contains(address.path), address.query == nil
        else { return nil }
        isEncrypted = address.scheme == "mqtts"
        host = address.host
        port = address.port.map(UInt16.init) ?? (isEncrypted ? 8883 : 1883)
    }

    /// Whether the broker can only be on this machine.
    var isLocal: Bool { host.isLoopbackHost }

    /// `broker.example:8883`
    var description: String { "\(host.bracketedHost):\(port)" }
}
