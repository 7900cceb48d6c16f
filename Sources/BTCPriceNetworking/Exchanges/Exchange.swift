package import BTCPriceCore

/// An exchange that can be a source: its venue, its markets, and a factory for its loader.
package struct Exchange: Sendable {
    /// The parameters of a loader.
    package struct Access: Sendable {
        /// Sends the requests.
        package let client: ExchangeClient
        /// The base URL to use.
        package let baseURL: String
        /// The base URL to use if the first one refuses this region.
        package let secondURL: String?
        /// The key, if the exchange requires one.
        package let key: String?

        /// Creates the parameters of a loader.
        package init(client: ExchangeClient, baseURL: String, secondURL: String? = nil, key: String? = nil) {
            self.client = client
            self.baseURL = baseURL
            self.secondURL = secondURL
            self.key = key
        }
    }

    /// Its name and limits.
    package let venue: Venue
    /// Its markets: the one that is requested, and those whose prices come with the same response.
    package let markets: [Market]
    /// Its public base URL: scheme and host, without a path.
    package let baseURL: String
    /// Its second base URL, if it has one.
    package let secondURL: String?
    /// The name of the credential with its key, if it requires one.
    package let credential: String?
    /// Makes its loader.
    package let loader: @Sendable (Access) -> any PriceLoader

    init(
        venue: Venue, pairs: [String], baseURL: String, secondURL: String? = nil, credential: String? = nil,
        loader: @escaping @Sendable (Access) -> any PriceLoader
    ) {
        self.venue = venue
        self.markets = pairs.map { Market(venue.name, $0) }
        self.baseURL = baseURL
        self.secondURL = secondURL
        self.credential = credential
        self.loader = loader
    }

    /// Its name in the configuration.
    package var name: String { venue.name }
    /// The market that is requested.
    package var market: Market { markets[0] }

    /// Its source at an address.
    package func source(at address: String) -> SourceDescription {
        SourceDescription(venue: venue, market: market, companions: Array(markets.dropFirst()), address: address)
    }

    /// All supported exchanges, in the default order of requests. A new one needs one file and one line here.
    package static let all: [Exchange] = [
        BinancePriceLoader.exchange,
        CryptoComparePriceLoader.exchange,
        CoinbasePriceLoader.exchange,
        BitstampPriceLoader.exchange,
        KrakenPriceLoader.exchange,
    ]
}
