package import BTCPriceCore
import Synchronization
import Varlink

/// Binance spot, `GET /api/v3/ticker/price?symbol=BTCUSDT`, `BTCEUR` (developers.binance.com, REST API, Symbol price ticker).
///
/// Weight 2 of 6,000 a minute per IP address. The body has no time and no trade number, so a single response does not show whether
/// it is frozen. A client that ignores a 429 is banned with 418, for two minutes to three days. The first host responds with 451 to
/// regions that it does not serve; the second one, for market data only, serves them.
package final class BinancePriceLoader: PriceLoader {
    /// Binance with its markets. It lists no pair with the dollar itself.
    package static let exchange = Exchange(
        venue: Venue("binance", limits: [RequestLimit(3000, per: .seconds(60))]),
        pairs: [.usd: "BTC/USDT", .eur: "BTC/EUR", .jpy: "BTC/JPY"],
        baseURL: "https://api.binance.com", secondURL: "https://data-api.binance.vision", candles: .binance,
        stream: .binance
    ) { access, market in
        BinancePriceLoader(
            client: access.client, market: market,
            baseURLs: [access.baseURL] + (access.secondURL.map { [$0] } ?? []))
    }

    /// The longest ban (REST API, IP limits).
    private static let longestBan = Duration.seconds(3 * 86_400)
    /// The shortest ban, used if a response does not state its length.
    private static let shortestBan = Duration.seconds(120)

    package let market: Market
    private let client: ExchangeClient
    private let baseURLs: [String]
    private let requests: [HTTPRequest?]
    /// The index of the base URL in use.
    private let current = Atomic(0)

    init(client: ExchangeClient, market: Market, baseURLs: [String]) {
        self.client = client
        self.market = market
        self.baseURLs = baseURLs
        let symbol = Self.symbol(of: market)
        requests = baseURLs.map { HTTPRequest.json("\($0)/api/v3/ticker/price?symbol=\(symbol)") }
    }

    private static func symbol(of market: Market) -> String { market.pair.replacing("/", with: "") }

    package var venue: Venue { Self.exchange.venue }

    /// Requests the last trade's price.
    package func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        let index = current.load(ordering: .relaxed)
        let response = try await client.get(requests[index])
        do {
            return try response.prices { (response) throws(PriceLoadingError) in try Self.read(response, market) }
        } catch {
            guard response.status == 451, index + 1 < baseURLs.count else { throw error }
            // A source gets one request per tick: the second URL is used from the next one on.
            current.store(index + 1, ordering: .relaxed)
            throw .unavailable("HTTP 451, not served in this region; \(baseURLs[index + 1]) is used from now on")
        }
    }

    static func read(_ response: HTTPResponse, _ market: Market) throws(PriceLoadingError) -> [LoadedPrice] {
        let message = { (body: JSONValue) in body["msg"]?.stringValue }
        if response.status == 418 || response.status == 429 {
            let told = response.json.flatMap(message).flatMap { ban($0, at: response.time) }
            throw .rateLimited(
                response.reason(message),
                retryAfter: response.pause ?? told ?? (response.status == 418 ? shortestBan : nil))
        }
        let body = try response.successBody(message)
        guard let symbol = body["symbol"]?.stringValue, let price = body["price"]?.decimal else {
            throw response.unexpectedBody
        }
        guard symbol == Self.symbol(of: market) else { throw .invalidData("the price of \(oneLine(symbol))") }
        return [LoadedPrice(market, price)]
    }

    /// The remaining time of a ban, from a message such as `IP banned until 1785050129644.`
    private static func ban(_ text: String, at now: Timestamp) -> Duration? {
        guard let range = text.firstRange(of: "banned until ") else { return nil }
        let digits = text[range.upperBound...].prefix { $0.isASCII && $0.isNumber }
        guard let number = Int64(digits), let end = VenueTime.milliseconds(fromEpoch: number) else { return nil }
        let left = Duration.milliseconds(end - now.milliseconds)
        return left > .zero ? min(left, longestBan) : nil
    }
}
