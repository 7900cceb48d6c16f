package import BTCPriceCore
import Varlink

/// Coinbase Exchange, `GET /products/BTC-USD/ticker`, `BTC-EUR`, `BTC-GBP` (docs.cdp.coinbase.com, Exchange API, Get product ticker).
///
/// 10 requests a second per IP address, burst 15; cached for 1 s. The body has the last trade's time and number, which reveal a
/// response from a stale cache node. Without a User-Agent the response is 400.
package struct CoinbasePriceLoader: PriceLoader {
    /// Coinbase with its markets.
    package static let exchange = Exchange(
        venue: Venue(
            "coinbase", limits: [RequestLimit(10, per: .seconds(1))], cacheTime: .seconds(1),
            provides: [.time, .sequence]), pairs: [.usd: "BTC/USD", .eur: "BTC/EUR", .gbp: "BTC/GBP"],
        baseURL: "https://api.exchange.coinbase.com", candles: .coinbase, stream: .coinbase
    ) { CoinbasePriceLoader(client: $0.client, market: $1, baseURL: $0.baseURL) }

    package let market: Market
    private let client: ExchangeClient
    private let request: HTTPRequest?

    init(client: ExchangeClient, market: Market, baseURL: String) {
        self.client = client
        self.market = market
        request = HTTPRequest.json("\(baseURL)/products/\(market.pair.replacing("/", with: "-"))/ticker")
    }

    package var venue: Venue { Self.exchange.venue }

    /// Requests the last trade's price.
    package func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        try await client.get(request).prices { (response) throws(PriceLoadingError) in try Self.read(response, market) }
    }

    static func read(_ response: HTTPResponse, _ market: Market) throws(PriceLoadingError) -> [LoadedPrice] {
        let body = try response.successBody { $0["message"]?.stringValue }
        try body.refuseOtherMarket(than: market.pair.replacing("/", with: ""))
        guard let price = body["price"]?.decimal, let text = body["time"]?.stringValue,
            let trade = body["trade_id"]?.integerValue
        else { throw response.unexpectedBody }
        guard let time = VenueTime.milliseconds(fromRFC3339: text) else {
            throw .invalidData("a time that can't be read: \(oneLine(text))")
        }
        return [
            LoadedPrice(
                market, price, position: FeedPosition(time: Timestamp(milliseconds: time), sequence: trade))
        ]
    }
}
