public import BTCPriceCore

/// Bitstamp, `GET /api/v2/ticker/btcusd/` (www.bitstamp.net/api, Ticker).
///
/// 400 requests a second and 10,000 in ten minutes an address; cached for 1 s. The body carries the time in whole seconds. An
/// exceeded limit comes with status 429, or with 400 and the code 400.002.
public struct BitstampPriceLoader: PriceLoader {
    private struct Body: Decodable {
        var last: ExactDecimal
        var timestamp: ExactInteger
    }

    private struct Failure: Decodable {
        var reason: String?
        var code: String?
        var response_code: String?

        var isLimit: Bool { [code, response_code].contains("400.002") }
    }

    /// Bitstamp as a source.
    public static let exchange = Exchange(
        source: PriceSource(
            name: "bitstamp", market: "BTC/USD",
            limits: [RequestLimit(400, per: .seconds(1)), RequestLimit(10_000, per: .seconds(600))],
            cacheTime: .seconds(1), tells: .time),
        baseURL: "https://www.bitstamp.net"
    ) { BitstampPriceLoader(client: $0.client, baseURL: $0.baseURL) }

    private let client: ExchangeClient
    private let question: ExchangeQuestion

    init(client: ExchangeClient, baseURL: String) {
        self.client = client
        question = ExchangeQuestion("\(baseURL)/api/v2/ticker/btcusd/")
    }

    /// What is asked.
    public var source: PriceSource { Self.exchange.source }

    /// Asks for the last trade's price.
    public func load() async throws(PriceLoadingError) -> LoadedPrice {
        try await client.get(question).price(Self.read)
    }

    static func read(_ answer: ExchangeAnswer) throws(PriceLoadingError) -> LoadedPrice {
        if answer.status == 400, let failure = answer.decodedIfPossible(Failure.self), failure.isLimit {
            throw .rateLimited(answer.reason { _ in failure.reason }, retryAfter: answer.pause)
        }
        let answer = try answer.success { $0.decodedIfPossible(Failure.self)?.reason }
        try answer.refuseOtherMarket(than: "BTCUSD")
        let body = try answer.decoded(Body.self)
        guard let time = VenueTime.milliseconds(fromEpoch: body.timestamp.value) else {
            throw .invalidData("a time that can't be")
        }
        return LoadedPrice(value: body.last.value, mark: VenueMark(time: Timestamp(milliseconds: time)))
    }
}
