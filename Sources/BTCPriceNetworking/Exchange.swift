public import BTCPriceCore

/// An exchange that can be a source: what is known of it, and how its loader is made.
public struct Exchange: Sendable {
    /// Name, market and currency.
    public let source: PriceSource
    /// The base of its public address: scheme and host, without a path.
    public let baseURL: String
    /// The name of the credential that holds its key, where it needs one.
    public let credential: String?
    /// Makes its loader from the client, the base address to use, and the key.
    public let loader: @Sendable (_ client: ExchangeClient, _ baseURL: String, _ key: String?) -> any PriceLoader

    /// Every exchange that is known, in the order in which they are asked unless told otherwise. A new one is one file and
    /// one line here.
    public static let all: [Exchange] = [
        BinancePriceLoader.exchange,
        CryptoComparePriceLoader.exchange,
        CoinbasePriceLoader.exchange,
    ]
}
