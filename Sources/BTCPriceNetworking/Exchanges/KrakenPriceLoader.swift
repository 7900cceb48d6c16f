public import BTCPriceCore

/// Kraken, `GET /0/public/Ticker?pair=XBTUSD,USDTUSD` (docs.kraken.com, REST API, Get Ticker Information).
///
/// USDT/USD comes with the same request: the one market here that tells what a USDT is worth.
///
/// One request a second or less an address; cached for 2 s, so it is asked once in two. Errors come with status 200. The body has
/// neither a time nor a trade number, and names the pair otherwise than it was asked for.
public struct KrakenPriceLoader: PriceLoader {
    private struct Body: Decodable {
        struct Ticker: Decodable {
            /// Price and volume of the last trade.
            var c: [ExactDecimal]
        }
        var error: [String]
        var result: [String: Ticker]?
    }

    private struct Failure: Decodable {
        var error: [String]
    }

    /// The names of BTC/USD: the old one, the one that is asked for, and the one with `assetVersion=1`.
    private static let pairs = ["XXBTZUSD", "XBTUSD", "BTC/USD"]
    /// The same of USDT/USD.
    private static let tetherPairs = ["USDTZUSD", "USDTUSD", "USDT/USD"]

    /// Kraken as a source.
    public static let exchange = Exchange(
        source: PriceSource(
            name: "kraken", market: "BTC/USD", limits: [RequestLimit(1, per: .seconds(1))], cacheTime: .seconds(2),
            tells: .tetherRate),
        baseURL: "https://api.kraken.com"
    ) { KrakenPriceLoader(client: $0.client, baseURL: $0.baseURL) }

    private let client: ExchangeClient
    private let question: ExchangeQuestion

    init(client: ExchangeClient, baseURL: String) {
        self.client = client
        question = ExchangeQuestion("\(baseURL)/0/public/Ticker?pair=XBTUSD,USDTUSD")
    }

    /// What is asked.
    public var source: PriceSource { Self.exchange.source }

    /// Asks for the last trade's price.
    public func load() async throws(PriceLoadingError) -> LoadedPrice {
        try await client.get(question).price(Self.read)
    }

    static func read(_ answer: ExchangeAnswer) throws(PriceLoadingError) -> LoadedPrice {
        let answer = try answer.success { $0.decodedIfPossible(Failure.self)?.error.first }
        if let failure = answer.decodedIfPossible(Failure.self)?.error.first { throw error(oneLine(failure), answer) }
        let result = try answer.decoded(Body.self).result ?? [:]
        guard let ticker = pairs.lazy.compactMap({ result[$0] }).first else {
            throw .invalidData("the price of \(oneLine(result.keys.sorted().joined(separator: ", ")))")
        }
        guard let price = ticker.c.first else { throw .invalidData("a ticker without a last trade") }
        return LoadedPrice(
            value: price.value, tetherRate: tetherPairs.lazy.compactMap({ result[$0]?.c.first?.value }).first)
    }

    /// What an error stands for: `EAPI:Rate limit exceeded`, `EService:Unavailable`, `EQuery:Unknown asset pair`
    /// (docs.kraken.com, API error messages).
    private static func error(_ text: String, _ answer: ExchangeAnswer) -> PriceLoadingError {
        let lower = text.lowercased()
        if ["rate limit", "too many requests", "temporary lockout", "throttled"].contains(where: lower.contains) {
            return .rateLimited(text, retryAfter: answer.pause)
        }
        return lower.hasPrefix("eservice:") || lower.contains("internal error") ? .unavailable(text) : .refused(text)
    }
}
