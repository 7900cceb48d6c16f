import BTCPriceSocket

/// What a client of the event stream subscribes to.
struct EventSubscription: Sendable, Hashable {
    /// ISO 4217; `nil` for all currencies.
    var currencies: Set<String>?
    /// Whether changes between the ticks are sent, too.
    var updates = WatchUpdates.ticks
    /// The id of the last event that the client has received.
    var lastEventID: String?
}
