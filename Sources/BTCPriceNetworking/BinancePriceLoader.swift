public import BTCPriceCore

/// Binance spot, `GET /api/v3/ticker/price?symbol=BTCUSDT` (developers.binance.com, REST API, Symbol price ticker).
///
/// Weight 2 of 6,000 a minute. The body has no time and no trade number, so a frozen answer can't be told from one alone.
public struct BinancePriceLoader: PriceLoader {
    private struct Body: Decodable {
        var symbol: String
        var price: ExactDecimal
    }

    private struct Failure: Decodable {
        var code: Int
        var msg: String
    }

    /// Binance as a source.
    public static let exchange = Exchange(
        source: PriceSource(name: "binance", market: "BTC/USDT"), baseURL: "https://api.binance.com", credential: nil
    ) { client, baseURL, _ in BinancePriceLoader(client: client, baseURL: baseURL) }

    private let client: ExchangeClient
    private let url: String

    init(client: ExchangeClient, baseURL: String) {
        self.client = client
        url = "\(baseURL)/api/v3/ticker/price?symbol=BTCUSDT"
    }

    /// What is asked.
    public var source: PriceSource { Self.exchange.source }

    /// Asks for the last trade's price.
    public func load() async throws(PriceLoadingError) -> LoadedPrice {
        try Self.read(try await client.get(url))
    }

    static func read(_ answer: ExchangeAnswer) throws(PriceLoadingError) -> LoadedPrice {
        let answer = try answer.success { $0.decodedIfPossible(Failure.self)?.msg }
        let body = try answer.decoded(Body.self)
        guard body.symbol == "BTCUSDT" else { throw .invalidData("the price of \(oneLine(body.symbol))") }
        return LoadedPrice(value: body.price.value)
    }
}
