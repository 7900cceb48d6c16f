public import BTCPriceCore

/// Coinbase Exchange, `GET /products/BTC-USD/ticker` (docs.cdp.coinbase.com, Exchange API, Get product ticker).
///
/// 10 requests a second an address, burst 15; cached for 1 s. The body carries the last trade's time and number, by which an
/// answer from a stale cache node is known. Without a User-Agent it answers 400.
public struct CoinbasePriceLoader: PriceLoader {
    private struct Body: Decodable {
        var price: ExactDecimal
        var time: String
        var trade_id: Int64
    }

    private struct Failure: Decodable {
        var message: String
    }

    /// Coinbase as a source.
    public static let exchange = Exchange(
        source: PriceSource(
            name: "coinbase", market: "BTC/USD", limits: [RequestLimit(10, per: .seconds(1))], cacheTime: .seconds(1),
            tells: [.time, .trade]),
        baseURL: "https://api.exchange.coinbase.com"
    ) { CoinbasePriceLoader(client: $0.client, baseURL: $0.baseURL) }

    private let client: ExchangeClient
    private let question: ExchangeQuestion

    init(client: ExchangeClient, baseURL: String) {
        self.client = client
        question = ExchangeQuestion("\(baseURL)/products/BTC-USD/ticker")
    }

    /// What is asked.
    public var source: PriceSource { Self.exchange.source }

    /// Asks for the last trade's price.
    public func load() async throws(PriceLoadingError) -> LoadedPrice {
        try await client.get(question).price(Self.read)
    }

    static func read(_ answer: ExchangeAnswer) throws(PriceLoadingError) -> LoadedPrice {
        let answer = try answer.success { $0.decodedIfPossible(Failure.self)?.message }
        try answer.refuseOtherMarket(than: "BTCUSD")
        let body = try answer.decoded(Body.self)
        guard let time = VenueTime.milliseconds(fromRFC3339: body.time) else {
            throw .invalidData("a time that can't be read: \(oneLine(body.time))")
        }
        return LoadedPrice(
            value: body.price.value, mark: VenueMark(time: Timestamp(milliseconds: time), trade: body.trade_id))
    }
}
