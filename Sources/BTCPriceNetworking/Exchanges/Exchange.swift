package import BTCPriceCore
import Configuration
import Synchronization

/// An exchange that can be a source: its description, and what data can't express.
package struct Exchange: Sendable {
    package struct Access: Sendable {
        package let client: ExchangeClient
        let urls: BaseURLs
        /// The key, if the exchange requires one.
        package let key: String?

        /// - Parameter secondURL: The base URL to use if the first one refuses this region.
        package init(client: ExchangeClient, baseURL: String, secondURL: String? = nil, key: String? = nil) {
            self.client = client
            urls = BaseURLs(baseURL, secondURL)
            self.key = key
        }
    }

    package let description: ExchangeDescription
    /// Its market for each currency that it has one for.
    package let markets: [Currency: Market]
    /// Its candles; `nil` if it has none that are requested.
    package let candles: CandleSource?
    /// Its stream; `nil` if it has none without a key.
    private let stream: StreamSource?

    init(_ description: ExchangeDescription, candles: CandleSource?, stream: StreamSource?) {
        self.description = description
        self.candles = candles
        self.stream = stream
        let known = description.markets.filter { !$0.isRate }
        markets = Dictionary(
            known.compactMap { each in each.market.currency.map { ($0, each.market) } },
            uniquingKeysWith: { first, _ in first })
    }

    package var name: String { description.name }
    package var venue: Venue { description.venue }
    /// Its public base URL: scheme and host, without a path.
    package var baseURL: String { description.baseURL }
    package var secondURL: String? { description.secondURL }
    /// The name of the credential with its key, if it requires one.
    package var credential: String? { description.credential }

    /// Loaders of its markets for some currencies; they may share requests.
    /// - Parameter currencies: Currencies that it has a market for.
    package func loaders(
        _ access: Access, for currencies: [Currency], now: @escaping TimeSource = { .now() }
    ) -> [any PriceLoader] {
        DescribedPriceLoader.loaders(description, access, currencies.compactMap(description.market(of:)), now: now)
    }

    /// A loader of its candles for a currency; `nil` if it has none, or only in USDT, which is not the dollar.
    package func candleLoader(_ access: Access, for currency: Currency) -> (any CandleLoader)? {
        guard let candles, let market = description.market(of: currency), !market.market.isInTether else { return nil }
        return ExchangeCandleLoader(
            client: access.client, urls: access.urls, description: description, described: market, source: candles)
    }

    /// The addresses of its stream, the preferred one first: scheme and host. None if it has no stream.
    package var streamURLs: [String] { [stream?.baseURL, stream?.secondURL].compactMap(\.self) }

    /// Its streams for some currencies, which share one connection; none if it has no stream.
    /// - Parameters:
    ///   - urls: The addresses to use, the preferred one first; at least one.
    ///   - currencies: Currencies that it has a market for.
    ///   - report: Reports to the operator. Must not block.
    package func streams(
        _ client: ExchangeClient, urls: [String], for currencies: [Currency], now: @escaping TimeSource,
        report: @escaping @Sendable (StreamEvent) -> Void
    ) -> [Market: any PriceStream] {
        let markets = currencies.compactMap { self.markets[$0] }
        guard let stream, !markets.isEmpty else { return [:] }
        let feed = StreamFeed(stream, urls: urls, markets: markets, client: client, now: now, report: report)
        return Dictionary(uniqueKeysWithValues: markets.map { ($0, MarketStream(feed: feed, market: $0)) })
    }

    package init(_ description: ExchangeDescription) {
        self.init(description, candles: nil, stream: nil)
    }

    /// The exchanges that are built in, in the default order of requests. CONTRIBUTING.md says how to add one.
    package static let all: [Exchange] = {
        do throws(SettingsError) {
            let file = try ConfigurationFile(
                text: String(decoding: PackageResources.exchanges_toml, as: UTF8.self), path: "exchanges.toml")
            return try file.tables(in: "exchange").map { name, table throws(SettingsError) in
                Exchange(try ExchangeDescription(name, table), candles: candles[name], stream: streams[name])
            }
        } catch {
            // A unit test reads the file, too.
            preconditionFailure("\(error)")
        }
    }()

    /// The currencies of the exchanges that are built in.
    package static let currencies = Currency.known.filter { currency in all.contains { $0.markets[currency] != nil } }

    private static let candles: [String: CandleSource] = [
        "binance": .binance, "bitstamp": .bitstamp, "coinbase": .coinbase, "kraken": .kraken,
    ]
    private static let streams: [String: StreamSource] = [
        "binance": .binance, "bitstamp": .bitstamp, "coinbase": .coinbase, "kraken": .kraken,
    ]
}

/// The base URLs of an exchange, shared by its requests. After status 451, which refuses the region, the second one is used.
final class BaseURLs: Sendable {
    /// The base URLs, the preferred one first.
    let all: [String]
    private let index = Atomic(0)

    init(_ first: String, _ second: String?) {
        all = [first] + [second].compactMap(\.self)
    }

    /// The index of the base URL in use.
    var used: Int { index.load(ordering: .relaxed) }

    /// Checks that a response does not refuse the region, or that there is no other base URL.
    /// - Parameter used: The index of the base URL that was requested.
    func check(_ response: HTTPResponse, from used: Int) throws(PriceLoadingError) {
        guard response.status == 451, used + 1 < all.count else { return }
        // A source gets one request per tick: the second URL is used from the next one on.
        index.store(used + 1, ordering: .relaxed)
        throw .unavailable("HTTP 451, not served in this region; \(all[used + 1]) is used from now on")
    }
}
