package import BTCPriceCore

/// An exchange that can be a source: its venue, its markets, and a factory for its loaders.
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
    /// Its market for each currency that it has one for.
    package let markets: [Currency: Market]
    /// Its public base URL: scheme and host, without a path.
    package let baseURL: String
    /// Its second base URL, if it has one.
    package let secondURL: String?
    /// The name of the credential with its key, if it requires one.
    package let credential: String?
    /// Its candles; `nil` if it has none that are requested.
    package let candles: CandleSource?
    /// Its stream; `nil` if it has none that needs no key.
    private let stream: StreamSource?
    private let makeLoaders: @Sendable (Access, [Market], @escaping TimeSource) -> [any PriceLoader]

    /// - Parameters:
    ///   - pairs: Its pair for each currency.
    ///   - candles: Its candles.
    ///   - stream: Its stream.
    ///   - makeLoaders: Makes the loaders of some of its markets, in their order.
    init(
        venue: Venue, pairs: [Currency: String], baseURL: String, secondURL: String? = nil, credential: String? = nil,
        candles: CandleSource? = nil, stream: StreamSource? = nil,
        makeLoaders: @escaping @Sendable (Access, [Market], @escaping TimeSource) -> [any PriceLoader]
    ) {
        self.venue = venue
        markets = pairs.mapValues { Market(venue.name, $0) }
        self.baseURL = baseURL
        self.secondURL = secondURL
        self.credential = credential
        self.candles = candles
        self.stream = stream
        self.makeLoaders = makeLoaders
    }

    /// An exchange with a request for each market.
    init(
        venue: Venue, pairs: [Currency: String], baseURL: String, secondURL: String? = nil, credential: String? = nil,
        candles: CandleSource? = nil, stream: StreamSource? = nil,
        loader: @escaping @Sendable (Access, Market) -> any PriceLoader
    ) {
        self.init(
            venue: venue, pairs: pairs, baseURL: baseURL, secondURL: secondURL, credential: credential,
            candles: candles,
            stream: stream
        ) {
            access, markets, _ in markets.map { loader(access, $0) }
        }
    }

    /// Its name in the configuration.
    package var name: String { venue.name }

    /// Loaders of its markets for some currencies; they may share requests.
    /// - Parameters:
    ///   - currencies: Currencies that it has a market for.
    ///   - now: Reads the clocks.
    package func loaders(
        _ access: Access, for currencies: [Currency], now: @escaping TimeSource = { .now() }
    ) -> [Currency: any PriceLoader] {
        let known = currencies.filter { markets[$0] != nil }
        let loaders = makeLoaders(access, known.compactMap { markets[$0] }, now)
        return Dictionary(uniqueKeysWithValues: zip(known, loaders))
    }

    /// A loader of its candles for a currency; `nil` if it has none, or only in USDT, which is not the dollar.
    package func candleLoader(_ access: Access, for currency: Currency) -> (any CandleLoader)? {
        guard let candles, let market = markets[currency], !market.isInTether else { return nil }
        return ExchangeCandleLoader(client: access.client, baseURL: access.baseURL, market: market, source: candles)
    }

    /// The addresses of its stream, the preferred one first: scheme and host. None if it has no stream.
    package var streamURLs: [String] { [stream?.baseURL, stream?.secondURL].compactMap(\.self) }

    /// Its streams for some currencies, which share one connection; none if it has no stream.
    /// - Parameters:
    ///   - client: Opens the connections.
    ///   - urls: The addresses to use, the preferred one first; at least one.
    ///   - currencies: Currencies that it has a market for.
    ///   - now: Reads the clocks.
    ///   - record: Of earlier runs.
    ///   - keep: Keeps a record over a restart. Must not block.
    ///   - report: Reports to the operator. Must not block.
    package func streams(
        _ client: ExchangeClient, urls: [String], for currencies: [Currency], now: @escaping TimeSource,
        record: StreamRecord = StreamRecord(), keep: @escaping @Sendable (StreamRecord) -> Void = { _ in },
        report: @escaping @Sendable (StreamEvent) -> Void
    ) -> [Market: any PriceStream] {
        let markets = currencies.compactMap { self.markets[$0] }
        guard let stream, !markets.isEmpty else { return [:] }
        let feed = StreamFeed(
            stream, urls: urls, markets: markets, client: client, now: now, record: record, keep: keep, report: report)
        return Dictionary(
            uniqueKeysWithValues: markets.map {
                ($0, MarketStream(feed: feed, market: $0, cacheTime: venue.cacheTime))
            })
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
