package import BTCPriceCore
import Varlink

/// Bitstamp, `GET /api/v2/ticker/btcusd/`, `btceur`, `btcgbp` (www.bitstamp.net/api, Ticker).
///
/// 400 requests a second and 10,000 in ten minutes per IP address; cached for 1 s. The body has the time in whole seconds. An
/// exceeded limit has status 429, or 400 with the code 400.002.
package struct BitstampPriceLoader: PriceLoader {
    /// Bitstamp with its markets.
    package static let exchange = Exchange(
        venue: Venue(
            "bitstamp", limits: [RequestLimit(400, per: .seconds(1)), RequestLimit(10_000, per: .seconds(600))],
            cacheTime: .seconds(1), provides: .time),
        pairs: [.usd: "BTC/USD", .eur: "BTC/EUR", .gbp: "BTC/GBP"],
        baseURL: "https://www.bitstamp.net", candles: .bitstamp, stream: .bitstamp
    ) { BitstampPriceLoader(client: $0.client, market: $1, baseURL: $0.baseURL) }

    package let market: Market
    private let client: ExchangeClient
    private let request: HTTPRequest?

    init(client: ExchangeClient, market: Market, baseURL: String) {
        self.client = client
        self.market = market
        let name = market.pair.replacing("/", with: "").lowercased()
        request = HTTPRequest.json("\(baseURL)/api/v2/ticker/\(name)/")
    }

    package var venue: Venue { Self.exchange.venue }

    /// Requests the last trade's price.
    package func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        try await client.get(request).prices { (response) throws(PriceLoadingError) in try Self.read(response, market) }
    }

    static func read(_ response: HTTPResponse, _ market: Market) throws(PriceLoadingError) -> [LoadedPrice] {
        if response.status == 400, let body = response.json,
            body["code"]?.isString("400.002") == true || body["response_code"]?.isString("400.002") == true
        {
            throw .rateLimited(response.reason { $0["reason"]?.stringValue }, retryAfter: response.pause)
        }
        let body = try response.successBody { $0["reason"]?.stringValue }
        try body.refuseOtherMarket(than: market.pair.replacing("/", with: ""))
        guard let price = body["last"]?.decimal, let timestamp = body["timestamp"]?.wholeNumber else {
            throw response.unexpectedBody
        }
        guard let time = VenueTime.milliseconds(fromEpoch: timestamp) else {
            throw .invalidData("a time that can't be")
        }
        return [LoadedPrice(market, price, position: FeedPosition(time: Timestamp(milliseconds: time)))]
    }
}
