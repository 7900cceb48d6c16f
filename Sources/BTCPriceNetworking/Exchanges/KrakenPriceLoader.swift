package import BTCPriceCore
import Synchronization
import Varlink

/// Kraken, `GET /0/public/Ticker?pair=XBTUSD,USDTUSD` (docs.kraken.com, REST API, Get Ticker Information).
///
/// One request returns the pairs of all currencies, and with the dollar's USDT/USD, the only market here with the rate of USDT.
///
/// At most one request a second per IP address; cached for 2 s, so there is one request in 2 s. Errors have status 200. The body
/// has no time and no trade number, and its names of the pairs differ from the requested ones.
package final class KrakenPriceLoader: PriceLoader {
    /// The names of a pair: the requested one, and those in responses. An old pair has a letter before each half, `XXBTZUSD`; with
    /// `assetVersion=1` it is `BTC/USD`.
    static func names(of pair: String) -> [String] {
        let halves = pair.split(separator: "/").map { $0 == "BTC" ? "XBT" : String($0) }
        let (base, quote) = (halves[0], halves[1])
        let isOld = ["USD", "EUR", "GBP", "CAD", "JPY"].contains(quote)
        let old = base == "XBT" ? "X\(base)\(isOld ? "Z" : "")\(quote)" : "\(base)Z\(quote)"
        return ["\(base)\(quote)", old, pair]
    }

    private static let kraken = Venue(
        "kraken", limits: [RequestLimit(1, per: .seconds(1))], cacheTime: .seconds(2))

    /// Kraken with its markets.
    package static let exchange = Exchange(
        venue: kraken, pairs: Dictionary(uniqueKeysWithValues: Currency.allCases.map { ($0, $0.pair) }),
        baseURL: "https://api.kraken.com", candles: .kraken, stream: .kraken
    ) { access, markets, now in
        let (client, wanted) = (access.client, requested(markets))
        let pairs = wanted.map { names(of: $0.pair)[0] }.joined(separator: ",")
        let request = HTTPRequest.json("\(access.baseURL)/0/public/Ticker?pair=\(pairs)")
        let shared = SharedRequest(cacheTime: kraken.cacheTime, now: now) { () throws(PriceLoadingError) in
            try await client.get(request).prices { (response) throws(PriceLoadingError) in try read(response, wanted) }
        }
        return markets.map { KrakenPriceLoader($0, shared) }
    }

    package let market: Market
    private let request: SharedRequest
    /// When the response came that was returned last, `CLOCK_BOOTTIME` in milliseconds.
    private let returned = Atomic(Int64.min)

    private init(_ market: Market, _ request: SharedRequest) {
        self.market = market
        self.request = request
    }

    package var venue: Venue { Self.kraken }
    package var companions: [Market] { Array(Self.requested([market]).dropFirst()) }
    package var needsRequest: Bool { request.isNeeded(after: returned.load(ordering: .relaxed)) }

    package func begin() { request.begin() }

    /// These markets, plus USDT/USD if BTC/USD is among them.
    private static func requested(_ markets: [Market]) -> [Market] {
        markets + (markets.contains { $0.pair == Currency.usd.pair } ? [Market("kraken", Market.pegPair)] : [])
    }

    /// Requests the last trades' prices.
    package func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        let prices = try await request.load(after: returned.load(ordering: .relaxed))
        guard let price = prices.first(where: { $0.market == market }) else {
            throw .invalidData("no price of \(market.pair)")
        }
        if let observed = price.observed { returned.store(observed.boottime, ordering: .relaxed) }
        return prices
    }

    /// - Throws: If the first of the markets has no price in it. The others may be missing.
    static func read(_ response: HTTPResponse, _ markets: [Market]) throws(PriceLoadingError) -> [LoadedPrice] {
        let message = { (body: JSONValue) in body["error"]?.arrayValue?.first?.stringValue }
        let body = try response.successBody(message)
        if let failure = message(body) { throw error(oneLine(failure), response) }
        guard body["error"]?.arrayValue != nil else { throw response.unexpectedBody }
        guard let result = body["result"] else { throw response.unexpectedBody }
        var prices: [LoadedPrice] = []
        for market in markets {
            guard let ticker = Self.ticker(of: names(of: market.pair), in: result) else { continue }
            guard let last = ticker["c"]?.arrayValue?.first else { throw .invalidData("a ticker without a last trade") }
            guard let price = last.decimal else { throw response.unexpectedBody }
            prices.append(LoadedPrice(market, price))
        }
        guard !prices.isEmpty else {
            let names = result.members.compactMap(\.name.stringValue).sorted()
            throw .invalidData("the price of \(oneLine(names.joined(separator: ", ")))")
        }
        return prices
    }

    private static func ticker(of names: [String], in result: JSONValue) -> JSONValue? {
        result.members.first { member in names.contains(member.name.stringValue ?? "") }?.value
    }

    /// The meaning of an error: `EAPI:Rate limit exceeded`, `EService:Unavailable`, `EQuery:Unknown asset pair`
    /// (docs.kraken.com, API error messages).
    static func error(_ text: String, _ response: HTTPResponse) -> PriceLoadingError {
        let lower = text.lowercased()
        if ["rate limit", "too many requests", "temporary lockout", "throttled"].contains(where: lower.contains) {
            return .rateLimited(text, retryAfter: response.pause)
        }
        return lower.hasPrefix("eservice:") || lower.contains("internal error") ? .unavailable(text) : .refused(text)
    }
}
