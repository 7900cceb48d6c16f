public import BTCPriceCore
import FoundationEssentials
import Synchronization

/// Binance spot, `GET /api/v3/ticker/price?symbol=BTCUSDT` (developers.binance.com, REST API, Symbol price ticker).
///
/// Weight 2 of 6,000 a minute an address. The body has no time and no trade number, so a frozen answer can't be told from one
/// alone. Whoever does not heed a 429 is banned with 418, for two minutes up to three days. Regions that it does not serve get 451
/// from its first host; the second one, for market data only, serves them.
public final class BinancePriceLoader: PriceLoader {
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
        source: PriceSource(
            name: "binance", market: "BTC/USDT", limits: [RequestLimit(3000, per: .seconds(60))]),
        baseURL: "https://api.binance.com", secondURL: "https://data-api.binance.vision"
    ) { BinancePriceLoader(client: $0.client, baseURLs: [$0.baseURL] + ($0.secondURL.map { [$0] } ?? [])) }

    /// The longest ban there is (REST API, IP limits).
    private static let longestBan = Duration.seconds(3 * 86_400)
    /// The shortest one, taken where a ban does not say how long it is.
    private static let shortestBan = Duration.seconds(120)

    private let client: ExchangeClient
    private let baseURLs: [String]
    private let questions: [ExchangeQuestion]
    /// Which of the addresses is asked.
    private let current = Atomic(0)

    init(client: ExchangeClient, baseURLs: [String]) {
        self.client = client
        self.baseURLs = baseURLs
        questions = baseURLs.map { ExchangeQuestion("\($0)/api/v3/ticker/price?symbol=BTCUSDT") }
    }

    /// What is asked.
    public var source: PriceSource { Self.exchange.source }

    /// Asks for the last trade's price.
    public func load() async throws(PriceLoadingError) -> LoadedPrice {
        let index = current.load(ordering: .relaxed)
        let answer = try await client.get(questions[index])
        do {
            return try answer.price(Self.read)
        } catch {
            guard answer.status == 451, index + 1 < baseURLs.count else { throw error }
            // Within a tick a source is asked once: the second address has its turn at the next.
            current.store(index + 1, ordering: .relaxed)
            throw .unavailable("HTTP 451, not served in this region; \(baseURLs[index + 1]) is asked from now on")
        }
    }

    static func read(_ answer: ExchangeAnswer) throws(PriceLoadingError) -> LoadedPrice {
        if answer.status == 418 || answer.status == 429 {
            let text = answer.decodedIfPossible(Failure.self)?.msg
            let told = answer.pause ?? text.flatMap { ban($0, at: answer.time) }
            throw .rateLimited(
                answer.reason { _ in text }, retryAfter: told ?? (answer.status == 418 ? shortestBan : nil))
        }
        let answer = try answer.success { $0.decodedIfPossible(Failure.self)?.msg }
        if let value = usualPrice(in: answer.body) { return LoadedPrice(value: value) }
        let body = try answer.decoded(Body.self)
        try answer.refuseOtherMarket(than: "BTCUSDT")
        guard body.symbol == "BTCUSDT" else { throw .invalidData("the price of \(oneLine(body.symbol))") }
        return LoadedPrice(value: body.price.value)
    }

    /// The answer as it comes every second, to the byte: the parser is for what looks otherwise, an exponent or very many digits too.
    static func usualPrice(in body: [UInt8]) -> Decimal? {
        let count = body.count - usualBeginning.count - usualEnd.count
        guard count > 0, body.starts(with: usualBeginning), body.suffix(usualEnd.count).elementsEqual(usualEnd) else {
            return nil
        }
        return Decimal(digits: body[usualBeginning.count..<usualBeginning.count + count])
    }

    private static let usualBeginning = Array(#"{"symbol":"BTCUSDT","price":""#.utf8)
    private static let usualEnd = Array(#""}"#.utf8)

    /// What is left of a ban whose end stands in prose: `IP banned until 1785050129644.`
    private static func ban(_ text: String, at now: Timestamp) -> Duration? {
        guard let range = text.firstRange(of: "banned until ") else { return nil }
        let digits = text[range.upperBound...].prefix { $0.isASCII && $0.isNumber }
        guard let number = Int64(digits), let end = VenueTime.milliseconds(fromEpoch: number) else { return nil }
        let left = Duration.milliseconds(end - now.milliseconds)
        return left > .zero ? min(left, longestBan) : nil
    }
}
