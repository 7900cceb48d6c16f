/// A simulated exchange. The raw value is its source name in the daemon.
package enum VenueName: String, Sendable, Hashable, CaseIterable {
    /// Binance spot.
    case binance
    /// CryptoCompare (CoinDesk Data).
    case cryptocompare
    /// Coinbase Exchange.
    case coinbase
    case bitstamp
    case kraken

    /// The published limits of the real exchange for one address: a number of requests in any span of this many seconds.
    ///
    /// Taken from the exchanges' pages and not from the daemon, so that the daemon can be checked against them.
    var limits: [(requests: Int, seconds: Int)] {
        switch self {
        // 6,000 weight per minute, and the ticker has a weight of 2.
        case .binance: [(3000, 60)]
        case .cryptocompare: [(300, 60), (7500, 86_400)]
        case .coinbase: [(10, 1)]
        case .bitstamp: [(400, 1), (10_000, 600)]
        case .kraken: [(1, 1)]
        }
    }
}
