package import BTCPriceCore
import Varlink

/// CryptoCompare (CoinDesk Data), `GET /data/generateAvg?fsym=BTC&tsym=USD&e=coinbase` (min-api.cryptocompare.com/documentation).
///
/// Requires a key since 21 May 2026. The key is sent in a header, since URLs end up in logs. Responses are cached for 10 s, so there
/// is one request in 10 s. The limits of a key depend on its plan; the limits here are those of the former free tier. Errors may have
/// status 200 too, in two forms: `{"Response":"Error",…}` and `{"Err":{…}}`.
package struct CryptoComparePriceLoader: PriceLoader {
    /// CryptoCompare with its market.
    package static let exchange = Exchange(
        venue: Venue(
            "cryptocompare", limits: [RequestLimit(300, per: .seconds(60)), RequestLimit(7500, per: .seconds(86_400))],
            cacheTime: .seconds(10), provides: .time, upstream: "coinbase"), pairs: [.usd: "BTC/USD"],
        baseURL: "https://min-api.cryptocompare.com", credential: "cryptocompare-api-key"
    ) { access, market in
        CryptoComparePriceLoader(client: access.client, market: market, baseURL: access.baseURL, key: access.key)
    }

    package let market: Market
    private let client: ExchangeClient
    private let request: HTTPRequest?

    init(client: ExchangeClient, market: Market, baseURL: String, key: String?) {
        self.client = client
        self.market = market
        request = HTTPRequest.json(
            "\(baseURL)/data/generateAvg?fsym=BTC&tsym=USD&e=coinbase",
            headers: key.map { [("Authorization", "Apikey \($0)")] } ?? [])
    }

    package var venue: Venue { Self.exchange.venue }

    /// Requests the average over the markets in the address: Coinbase alone.
    package func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        try await client.get(request).prices { (response) throws(PriceLoadingError) in try Self.read(response, market) }
    }

    static func read(_ response: HTTPResponse, _ market: Market) throws(PriceLoadingError) -> [LoadedPrice] {
        let body = try response.successBody(Self.message)
        if body["Response"]?.isString("Error") == true || body["Err"]?["message"]?.stringValue != nil {
            throw error(body, response)
        }
        guard let raw = body["RAW"], let from = raw["FROMSYMBOL"]?.stringValue,
            let to = raw["TOSYMBOL"]?.stringValue, let price = raw["PRICE"]?.decimal,
            let updated = raw["LASTUPDATE"]?.integerValue
        else { throw response.unexpectedBody }
        guard from == "BTC", to == "USD" else {
            throw .invalidData("the price of \(oneLine(from)) in \(oneLine(to))")
        }
        guard let time = VenueTime.milliseconds(fromEpoch: updated) else {
            throw .invalidData("a time that can't be")
        }
        return [LoadedPrice(market, price, position: FeedPosition(time: Timestamp(milliseconds: time)))]
    }

    private static func message(_ body: JSONValue) -> String? {
        [body["Err"]?["message"], body["Message"], body["ErrorsSummary"]]
            .compactMap { $0?.stringValue }.first { !$0.isEmpty }
    }

    /// The meaning of an error with status 200. Type 99 is a rate limit, 1 an internal error, 2 an invalid request.
    private static func error(_ body: JSONValue, _ response: HTTPResponse) -> PriceLoadingError {
        let text = oneLine(message(body) ?? "an error without a message")
        return switch body["Type"]?.integerValue {
        case 99: .rateLimited(text, retryAfter: response.pause)
        case 1: .unavailable(text)
        default: .refused(text)
        }
    }
}
