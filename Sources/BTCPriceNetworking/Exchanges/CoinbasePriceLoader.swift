package import BTCPriceCore
import Varlink

/// Coinbase Exchange, `GET /products/BTC-USD/ticker` (docs.cdp.coinbase.com, Exchange API, Get product ticker).
///
/// 10 requests a second per IP address, burst 15; cached for 1 s. The body has the last trade's time and number, which reveal a
/// response from a stale cache node. Without a User-Agent the response is 400.
package struct CoinbasePriceLoader: PriceLoader {
    /// Coinbase with its market.
    package static let exchange = Exchange(
        venue: Venue(
            "coinbase", limits: [RequestLimit(10, per: .seconds(1))], cacheTime: .seconds(1),
            provides: [.time, .sequence]), pairs: ["BTC/USD"],
        baseURL: "https://api.exchange.coinbase.com"
    ) { CoinbasePriceLoader(client: $0.client, baseURL: $0.baseURL) }

    private let client: ExchangeClient
    private let request: ExchangeRequest

    init(client: ExchangeClient, baseURL: String) {
        self.client = client
        request = ExchangeRequest("\(baseURL)/products/BTC-USD/ticker")
    }

    package var venue: Venue { Self.exchange.venue }
    package var market: Market { Self.exchange.market }

    /// Requests the last trade's price.
    package func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        try await client.get(request).prices(Self.read)
    }

    static func read(_ response: ExchangeResponse) throws(PriceLoadingError) -> [LoadedPrice] {
        let body = try response.successBody { $0["message"]?.stringValue }
        try body.refuseOtherMarket(than: "BTCUSD")
        guard let price = body["price"]?.decimal, let text = body["time"]?.stringValue,
            let trade = body["trade_id"]?.integerValue
        else { throw response.unexpectedBody }
        guard let time = VenueTime.milliseconds(fromRFC3339: text) else {
            throw .invalidData("a time that can't be read: \(oneLine(text))")
        }
        return [
            LoadedPrice(
                exchange.market, price, position: FeedPosition(time: Timestamp(milliseconds: time), sequence: trade))
        ]
    }
}
