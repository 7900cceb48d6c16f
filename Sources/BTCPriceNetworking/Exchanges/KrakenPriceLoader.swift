package import BTCPriceCore
import Varlink

/// Kraken, `GET /0/public/Ticker?pair=XBTUSD,USDTUSD` (docs.kraken.com, REST API, Get Ticker Information).
///
/// The same request returns USDT/USD, the only market here with the rate of USDT.
///
/// At most one request a second per IP address; cached for 2 s, so there is one request in 2 s. Errors have status 200. The body
/// has no time and no trade number, and its name of the pair differs from the requested one.
package struct KrakenPriceLoader: PriceLoader {
    /// The names of BTC/USD: the old one, the requested one, and the one with `assetVersion=1`.
    private static let pairs: [StaticString] = ["XXBTZUSD", "XBTUSD", "BTC/USD"]
    /// The same names for USDT/USD.
    private static let tetherPairs: [StaticString] = ["USDTZUSD", "USDTUSD", "USDT/USD"]

    /// Kraken with its markets.
    package static let exchange = Exchange(
        venue: Venue("kraken", limits: [RequestLimit(1, per: .seconds(1))], cacheTime: .seconds(2)),
        pairs: ["BTC/USD", Market.pegPair],
        baseURL: "https://api.kraken.com"
    ) { KrakenPriceLoader(client: $0.client, baseURL: $0.baseURL) }

    private let client: ExchangeClient
    private let request: ExchangeRequest

    init(client: ExchangeClient, baseURL: String) {
        self.client = client
        request = ExchangeRequest("\(baseURL)/0/public/Ticker?pair=XBTUSD,USDTUSD")
    }

    package var venue: Venue { Self.exchange.venue }
    package var market: Market { Self.exchange.market }
    package var companions: [Market] { Array(Self.exchange.markets.dropFirst()) }

    /// Requests the last trade's price.
    package func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        try await client.get(request).prices(Self.read)
    }

    static func read(_ response: ExchangeResponse) throws(PriceLoadingError) -> [LoadedPrice] {
        let message = { (body: JSONValue) in body["error"]?.arrayValue?.first?.stringValue }
        let body = try response.successBody(message)
        if let failure = message(body) { throw error(oneLine(failure), response) }
        guard body["error"]?.arrayValue != nil else { throw response.unexpectedBody }
        guard let result = body["result"], let ticker = Self.ticker(of: pairs, in: result) else {
            let names = body["result"]?.members.compactMap(\.name.stringValue).sorted() ?? []
            throw .invalidData("the price of \(oneLine(names.joined(separator: ", ")))")
        }
        guard let last = ticker["c"]?.arrayValue?.first else { throw .invalidData("a ticker without a last trade") }
        guard let price = last.decimal else { throw response.unexpectedBody }
        let peg = Self.ticker(of: tetherPairs, in: result)?["c"]?.arrayValue?.first?.decimal
        return [LoadedPrice(exchange.market, price)] + (peg.map { [LoadedPrice(exchange.markets[1], $0)] } ?? [])
    }

    private static func ticker(of names: [StaticString], in result: JSONValue) -> JSONValue? {
        names.lazy.compactMap { result[$0] }.first
    }

    /// The meaning of an error: `EAPI:Rate limit exceeded`, `EService:Unavailable`, `EQuery:Unknown asset pair`
    /// (docs.kraken.com, API error messages).
    private static func error(_ text: String, _ response: ExchangeResponse) -> PriceLoadingError {
        let lower = text.lowercased()
        if ["rate limit", "too many requests", "temporary lockout", "throttled"].contains(where: lower.contains) {
            return .rateLimited(text, retryAfter: response.pause)
        }
        return lower.hasPrefix("eservice:") || lower.contains("internal error") ? .unavailable(text) : .refused(text)
    }
}
