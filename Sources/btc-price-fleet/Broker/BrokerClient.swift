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
