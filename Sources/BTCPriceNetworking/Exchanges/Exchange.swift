public import BTCPriceCore

/// An exchange that can be a source: what is known of it, and how its loader is made.
public struct Exchange: Sendable {
    /// What a loader is made of.
    public struct Access: Sendable {
        /// Asks.
        public let client: ExchangeClient
        /// The base address to use.
        public let baseURL: String
        /// The base address to use where the first one refuses this region.
        public let secondURL: String?
        /// The key, where the exchange needs one.
        public let key: String?

        /// Everything that a loader is made of.
        public init(client: ExchangeClient, baseURL: String, secondURL: String? = nil, key: String? = nil) {
            self.client = client
            self.baseURL = baseURL
            self.secondURL = secondURL
            self.key = key
        }
    }

    /// Name, market, currency and limits.
    public let source: PriceSource
    /// The base of its public address: scheme and host, without a path.
    public let baseURL: String
    /// The base of its second address, where it has one.
    public let secondURL: String?
    /// The name of the credential that holds its key, where it needs one.
    public let credential: String?
    /// Makes its loader.
    public let loader: @Sendable (Access) -> any PriceLoader

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
    public static let all: [Exchange] = [
        BinancePriceLoader.exchange,
        CryptoComparePriceLoader.exchange,
        CoinbasePriceLoader.exchange,
        BitstampPriceLoader.exchange,
        KrakenPriceLoader.exchange,
    ]
}
