/// How a price reaches this machine.
package enum PriceWay: String, Sendable, Hashable, CaseIterable {
    /// In the response to a request.
    case poll
    /// In a message of a stream.
    case stream
    /// From another daemon.
    case peer
}
