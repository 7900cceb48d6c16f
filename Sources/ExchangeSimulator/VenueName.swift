/// An exchange that is simulated. The raw value is its name as a source of the daemon.
public enum VenueName: String, Sendable, Hashable, CaseIterable {
    /// Binance spot.
    case binance
    /// CryptoCompare (CoinDesk Data).
    case cryptocompare
    /// Coinbase Exchange.
    case coinbase
}
