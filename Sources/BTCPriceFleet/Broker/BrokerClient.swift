import BTCPriceCore

/// What a client of a broker is to do.
enum BrokerAction<Effect: Sendable>: Sendable {
    case publish(BrokerMessage)
    /// The messages of a topic filter (MQTT 3.1.1, section 4.7).
    case subscribe(String)
    /// What is not the broker's.
    case effect(Effect)
}

/// What a connection to a broker is used for. A pure value: it returns actions, and the loop performs them.
protocol BrokerClient: Sendable {
    associatedtype Effect: Sendable

    /// What the broker publishes if the connection ends without a word; `nil` for nothing.
    var will: BrokerMessage? { get }

    /// When ``proceed(canPublish:at:)`` is to be called, `CLOCK_BOOTTIME` in milliseconds; `nil` for never.
    var deadline: Int64? { get }

    /// The broker has accepted the connection.
    mutating func connected(at now: ObservationTime) -> [BrokerAction<Effect>]

    /// There is no connection.
    /// - Parameter reason: Why, in one line.
    mutating func disconnected(_ reason: String, at now: ObservationTime) -> [BrokerAction<Effect>]

    mutating func received(_ message: BrokerMessage, at now: ObservationTime) -> [BrokerAction<Effect>]

    /// Time has passed, or another thread has woken the loop.
    /// - Parameter canPublish: Whether the broker has taken all that was published.
    mutating func proceed(canPublish: Bool, at now: ObservationTime) -> [BrokerAction<Effect>]

    /// The program ends.
    mutating func farewell() -> [BrokerMessage]
}
