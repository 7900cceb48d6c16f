package import BTCPriceCore
import Varlink

/// Kraken, `GET /0/public/Ticker?pair=XBTUSD,USDTUSD` (docs.kraken.com, REST API, Get Ticker Information).
///
/// USDT/USD comes with the same request: the one market here that tells what a USDT is worth.
///
/// One request a second or less an address; cached for 2 s, so it is asked once in two. Errors come with status 200. The body has
/// neither a time nor a trade number, and names the pair otherwise than it was asked for.
package struct KrakenPriceLoader: PriceLoader {
    /// The names of BTC/USD: the old one, the one that is asked for, and the one with `assetVersion=1`.
    private static let pairs: [StaticString] = ["XXBTZUSD", "XBTUSD", "BTC/USD"]
    /// The same of USDT/USD.
    private static let tetherPairs: [StaticString] = ["USDTZUSD", "USDTUSD", "USDT/USD"]

    /// Kraken as a source.
    package static let exchange = Exchange(
        source: PriceSource(
            name: "kraken", market: "BTC/USD", limits: [RequestLimit(1, per: .seconds(1))], cacheTime: .seconds(2),
            tells: .tetherRate),
        baseURL: "https://api.kraken.com"
    ) { KrakenPriceLoader(client: $0.client, baseURL: $0.baseURL) }

    private let client: ExchangeClient
    private let request: ExchangeRequest

    init(client: ExchangeClient, baseURL: String) {
        self.client = client
        request = ExchangeRequest("\(baseURL)/0/public/Ticker?pair=XBTUSD,USDTUSD")
    }

    /// What is asked.
    package var source: PriceSource { Self.exchange.source }

    /// Asks for the last trade's price.
    package func load() async throws(PriceLoadingError) -> LoadedPrice {
        try await client.get(request).price(Self.read)
    }

    static func read(_ response: ExchangeResponse) throws(PriceLoadingError) -> LoadedPrice {
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
        return LoadedPrice(
            value: price, tetherRate: Self.ticker(of: tetherPairs, in: result)?["c"]?.arrayValue?.first?.decimal)
    }

    private static func ticker(of names: [StaticString], in result: JSONValue) -> JSONValue? {
        names.lazy.compactMap { result[$0] }.first
    }

    /// What an error stands for: `EAPI:Rate limit exceeded`, `EService:Unavailable`, `EQuery:Unknown asset pair`
    /// (docs.kraken.com, API error messages).
    private static func error(_ text: String, _ response: ExchangeResponse) -> PriceLoadingError {
        let lower = text.lowercased()
        if ["rate limit", "too many requests", "temporary lockout", "throttled"].contains(where: lower.contains) {
            return .rateLimited(text, retryAfter: response.pause)
        }
        return lower.hasPrefix("eservice:") || lower.contains("internal error") ? .unavailable(text) : .refused(text)
    }
}
