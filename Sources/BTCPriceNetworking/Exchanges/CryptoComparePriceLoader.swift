public import BTCPriceCore

/// CryptoCompare (CoinDesk Data), `GET /data/generateAvg?fsym=BTC&tsym=USD&e=coinbase` (min-api.cryptocompare.com/documentation).
///
/// Needs a key since 21 May 2026; it goes into a header, since an address ends up in logs. Answers are cached for 10 s, so it is
/// asked once in ten. What a key allows depends on its plan; the limits here are those of the free tier that was. Errors come with
/// status 200 too, of two shapes: `{"Response":"Error",…}` and `{"Err":{…}}`.
public struct CryptoComparePriceLoader: PriceLoader {
    private struct Body: Decodable {
        struct Raw: Decodable {
            var FROMSYMBOL: String
            var TOSYMBOL: String
            var PRICE: ExactDecimal
            var LASTUPDATE: Int64
        }
        var RAW: Raw
    }

    private struct Failure: Decodable {
        struct Detail: Decodable {
            var message: String?
        }
        var Response: String?
        var Message: String?
        var ErrorsSummary: String?
        var `Type`: Int?
        var Err: Detail?

        var text: String? {
            [Err?.message, Message, ErrorsSummary].compactMap { $0 }.first { !$0.isEmpty }
        }
    }

    /// CryptoCompare as a source.
    public static let exchange = Exchange(
        source: PriceSource(
            name: "cryptocompare", market: "BTC/USD",
            limits: [RequestLimit(300, per: .seconds(60)), RequestLimit(7500, per: .seconds(86_400))],
            cacheTime: .seconds(10), tells: .time),
        baseURL: "https://min-api.cryptocompare.com", credential: "cryptocompare-api-key"
    ) { CryptoComparePriceLoader(client: $0.client, baseURL: $0.baseURL, key: $0.key) }

    private let client: ExchangeClient
    private let question: ExchangeQuestion

    init(client: ExchangeClient, baseURL: String, key: String?) {
        self.client = client
        question = ExchangeQuestion(
            "\(baseURL)/data/generateAvg?fsym=BTC&tsym=USD&e=coinbase",
            headers: key.map { [("Authorization", "Apikey \($0)")] } ?? [])
    }

    /// What is asked.
    public var source: PriceSource { Self.exchange.source }

    /// Asks for the average it makes of its markets.
    public func load() async throws(PriceLoadingError) -> LoadedPrice {
        try await client.get(question).price(Self.read)
    }

    static func read(_ answer: ExchangeAnswer) throws(PriceLoadingError) -> LoadedPrice {
        let answer = try answer.success { $0.decodedIfPossible(Failure.self)?.text }
        if let failure = answer.decodedIfPossible(Failure.self),
            failure.Response == "Error" || failure.Err?.message != nil
        {
            throw error(failure, answer)
        }
        let raw = try answer.decoded(Body.self).RAW
        guard raw.FROMSYMBOL == "BTC", raw.TOSYMBOL == "USD" else {
            throw .invalidData("the price of \(oneLine(raw.FROMSYMBOL)) in \(oneLine(raw.TOSYMBOL))")
        }
        guard let time = VenueTime.milliseconds(fromEpoch: raw.LASTUPDATE) else {
            throw .invalidData("a time that can't be")
        }
        return LoadedPrice(value: raw.PRICE.value, mark: VenueMark(time: Timestamp(milliseconds: time)))
    }

    /// What an error with status 200 stands for. Type 99 is its rate limit, 1 its own trouble, 2 a wrong question.
    private static func error(_ failure: Failure, _ answer: ExchangeAnswer) -> PriceLoadingError {
        let text = oneLine(failure.text ?? "an error without a message")
        return switch failure.Type {
        case 99: .rateLimited(text, retryAfter: answer.pause)
        case 1: .unavailable(text)
        default: .refused(text)
        }
    }
}
