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
