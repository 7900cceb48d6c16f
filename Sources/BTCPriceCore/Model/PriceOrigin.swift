/// Where a peer got its price.
package struct PriceOrigin: Sendable, Hashable {
    /// The peer's source: `binance`.
    package let source: String
    /// The pair that the peer's source was read from: `BTC/USDT`; `BTC/USD` if the peer has converted it.
    package let pair: String
    /// Identifies the run of the peer's daemon: two sockets of one daemon are one peer.
    package let instance: String

    package init(source: String, pair: String, instance: String) {
        self.source = source
        self.pair = pair
        self.instance = instance
    }
}

/// How a price reaches this machine.
package enum PriceWay: String, Sendable, Hashable, CaseIterable {
    /// In the response to a request.
    case poll
    /// In a message of a stream.
    case stream
    /// From another daemon.
    case peer
}
