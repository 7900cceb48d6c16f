/// An exchange that is simulated. The raw value is its name as a source of the daemon.
public enum VenueName: String, Sendable, Hashable, CaseIterable {
    /// Binance spot.
    case binance
    /// CryptoCompare (CoinDesk Data).
    case cryptocompare
    /// Coinbase Exchange.
    case coinbase
    /// Bitstamp.
    case bitstamp
    /// Kraken.
    case kraken

    /// What the real exchange publishes as its limit for one address: so many requests in any span of so many seconds.
    ///
    /// Declared here once more, from the exchanges' pages and not from the daemon, so that one can be held against the other.
    var limits: [(requests: Int, seconds: Int)] {
        switch self {
        // 6,000 weight a minute, and the ticker weighs 2.
        case .binance: [(3000, 60)]
        case .cryptocompare: [(300, 60), (7500, 86_400)]
        case .coinbase: [(10, 1)]
        case .bitstamp: [(400, 1), (10_000, 600)]
        case .kraken: [(1, 1)]
        }
    }
}
