package import BTCPriceCore

/// An exchange that can be a source: what is known of it, and how its loader is made.
package struct Exchange: Sendable {
    /// What a loader is made of.
    package struct Access: Sendable {
        /// Asks.
        package let client: ExchangeClient
        /// The base address to use.
        package let baseURL: String
        /// The base address to use where the first one refuses this region.
        package let secondURL: String?
        /// The key, where the exchange needs one.
        package let key: String?

        /// Everything that a loader is made of.
        package init(client: ExchangeClient, baseURL: String, secondURL: String? = nil, key: String? = nil) {
            self.client = client
            self.baseURL = baseURL
            self.secondURL = secondURL
            self.key = key
        }
    }

    /// Name, market, currency and limits.
    package let source: PriceSource
    /// The base of its public address: scheme and host, without a path.
    package let baseURL: String
    /// The base of its second address, where it has one.
    package let secondURL: String?
    /// The name of the credential that holds its key, where it needs one.
    package let credential: String?
    /// Makes its loader.
    package let loader: @Sendable (Access) -> any PriceLoader

    init(
        source: PriceSource, baseURL: String, secondURL: String? = nil, credential: String? = nil,
        loader: @escaping @Sendable (Access) -> any PriceLoader
    ) {
        self.source = source
        self.baseURL = baseURL
        self.secondURL = secondURL
        self.credential = credential
        self.loader = loader
    }

    /// Every exchange that is known, in the order in which they are asked unless told otherwise. A new one is one file and
    /// one line here.
    package static let all: [Exchange] = [
        BinancePriceLoader.exchange,
        CryptoComparePriceLoader.exchange,
        CoinbasePriceLoader.exchange,
        BitstampPriceLoader.exchange,
        KrakenPriceLoader.exchange,
    ]
}
