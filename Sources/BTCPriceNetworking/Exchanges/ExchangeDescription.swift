package import BTCPriceCore
import BTCPriceSocket

/// How an exchange's price is requested and read: data, so that an exchange needs no code.
///
/// Placeholders in texts: `{BASE}` and `{base}` are BTC and btc, `{QUOTE}`, `{quote}` and `{Quote}` the currency, `{name}` the
/// exchange's name of the market, `{names}` those of all wanted markets with commas, `{key}` a market's name in the body.
/// docs/exchanges.md describes every key.
package struct ExchangeDescription: Sendable {
    /// The meaning of a time in a body.
    package enum TimeMeaning: String, Sendable, CaseIterable {
        /// When the last trade was.
        case trade
        /// When the exchange made its ticker or its order book.
        case book
        /// When the response was made: it does not show whether the price is old.
        case reply
    }

    /// When the offset is added to a time.
    package enum TimeOffsetMeaning: String, Sendable, CaseIterable {
        case always
        /// Only if the time is then nearer to the present: the exchange may mend its clock.
        case sometimes
    }

    /// A market, with the exchange's names for it.
    struct DescribedMarket: Sendable {
        let market: Market
        let base: String
        let quote: String
        /// The name in requests.
        let name: String
        /// The names in bodies, of which the first one that is there counts; at least one.
        let keys: [String]

        /// Whether its price is the rate of USDT, and not one of a bitcoin.
        var isRate: Bool { market.pair == Market.pegPair }

        /// What the placeholders of this market stand for.
        func placeholders(key: String? = nil) -> Placeholders {
            var placeholders = Placeholders(base: base, quote: quote)
            placeholders["name"] = name
            placeholders["key"] = key
            return placeholders
        }
    }

    /// One object of an array: that whose value at `place` is `value`, which has placeholders.
    struct Row: Sendable {
        let array: JSONPointer
        let place: JSONPointer
        let value: String
    }

    /// A value that the body must have; a text has placeholders.
    enum Required: Sendable, Hashable, CustomStringConvertible {
        case text(String)
        case integer(Int64)
        case flag(Bool)

        func filled(_ placeholders: Placeholders) -> Required {
            if case .text(let text) = self { .text(placeholders.fill(text)) } else { self }
        }

        func matches(_ value: JSONValue) -> Bool {
            switch self {
            case .text(let text): value.isString(equalTo: text)
            case .integer(let number): value.integerValue == number
            case .flag(let isOn): value.boolValue == isOn
            }
        }

        var hasPlaceholder: Bool {
            if case .text(let text) = self { text.contains("{") } else { false }
        }

        var description: String {
            switch self {
            case .text(let text): "\"\(text)\""
            case .integer(let number): "\(number)"
            case .flag(let isOn): "\(isOn)"
            }
        }
    }

    package let name: String
    /// Scheme, host and port of its requests.
    package let baseURL: String
    /// The path and the query, with placeholders.
    package let target: String
    /// The path and the query of the rates of past days, with placeholders; `nil` if a source of rates has none.
    let history: String?
    /// The base URL to use if the first one responds with status 451.
    package let secondURL: String?
    let headers: [(name: String, value: String)]
    /// The name of the credential that `{credential}` in a header stands for.
    package let credential: String?
    package let venue: Venue
    let longestBody: Int
    /// The elements of the body whose attributes are read, if it is XML.
    let element: String?
    let markets: [DescribedMarket]
    /// The object of the market, if the body has several in an array; the places below start there.
    let row: Row?
    /// The places of the values, with placeholders.
    let price: String?
    let bid: String?
    let ask: String?
    let time: String?
    package var timeMeaning: TimeMeaning?
    /// Milliseconds that are added to the time in the body, whose zone is wrong.
    let timeOffset: Int64
    let timeOffsetMeaning: TimeOffsetMeaning
    package let sequence: String?
    let required: [(place: String, value: Required)]
    /// Values that the body must have if there is one at their place.
    let expected: [(place: String, value: Required)]
    /// Where an error's text may be.
    let errors: [JSONPointer]
    /// Words in an error that mean that a limit was exceeded, in lower case.
    let limited: [String]
    /// Words in an error that mean that the exchange can't respond now, in lower case.
    let unavailable: [String]

    /// Its market for a currency, if it has one.
    func market(of currency: Currency) -> DescribedMarket? {
        markets.first { $0.market.currency == currency && !$0.isRate }
    }

    /// Whether one request has the prices of all its markets.
    package var sharesRequests: Bool { target.holds("{names}") || !target.contains("{") }

    /// The URL of a request for some markets.
    func url(for markets: [DescribedMarket], at baseURL: String) -> String {
        var placeholders = markets[0].placeholders()
        placeholders["names"] = markets.map { Self.encoded($0.name) }.joined(separator: ",")
        for name in Placeholders.ofNames + ["name"] { placeholders[name] = placeholders[name].map(Self.encoded) }
        return baseURL + placeholders.fill(target)
    }

    /// A text as a part of a path or query (RFC 3986, section 2.3).
    private static func encoded(_ text: String) -> String {
        text.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
                String(UnicodeScalar(byte))
            default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }.joined()
    }

    /// The body of a response; `nil` if it is not what the description says.
    func parsed(_ response: HTTPResponse) -> JSONValue? {
        element.map { XMLAttributes.json(response.body, of: $0) } ?? response.json
    }

    /// The body of a response that is not an error: some exchanges send errors with status 200.
    /// - Throws: The meaning of an error, or ``PriceLoadingError/invalidData(_:)`` if the body is not JSON.
    func body(of response: HTTPResponse) throws(PriceLoadingError) -> JSONValue {
        let isOK = response.status == 200
        let body = parsed(response)
        let texts = body.map { body in errors.compactMap { $0.value(in: body)?.errorText } } ?? []
        if isOK && texts.isEmpty {
            guard let body else { throw response.unexpectedBody }
            return body
        }
        let reason = isOK ? oneLine(texts[0]) : response.reason { _ in texts.first }
        if isOK, let error = meaning(of: reason, texts, response) { throw error }
        let all = ([reason] + texts).joined(separator: "\n").lowercased()
        // A client that ignored a limit is banned: Binance, and the exchanges with its software, say until when.
        if response.status == 418 || response.status == 429 || limited.contains(where: all.holds) {
            let ban = texts.lazy.compactMap { BanText.remaining(in: $0, at: response.time) }.first
            let shortest = response.status == 418 ? BanText.shortest : nil
            throw .rateLimited(reason, retryAfter: response.pause ?? ban ?? shortest)
        }
        throw isOK ? .refused(reason) : response.failure(reason)
    }

    /// What a body without a price means that came with status 200, by its words; `nil` if they say nothing.
    func meaning(of reason: String, _ texts: [String], _ response: HTTPResponse) -> PriceLoadingError? {
        let all = ([reason] + texts).joined(separator: "\n").lowercased()
        if (limited + Self.limitedWords).contains(where: all.holds) {
            let ban = texts.lazy.compactMap { BanText.remaining(in: $0, at: response.time) }.first
            return .rateLimited(reason, retryAfter: response.pause ?? ban)
        }
        return (unavailable + Self.unavailableWords).contains(where: all.holds) ? .unavailable(reason) : nil
    }

    /// The words of many exchanges, besides those that a description has.
    private static let limitedWords = ["too many requests", "too_many_requests", "rate limit", "banned until"]
    private static let unavailableWords = ["maintenance", "temporarily unavailable", "busy", "internal error"]
}

/// The end of a ban in the text of an error: `IP banned until 1785050129644.` Binance says so, and the exchanges with its software.
enum BanText {
    /// The shortest ban, used if a response with status 418 does not state its length.
    static let shortest = Duration.seconds(120)

    /// The remaining time of a ban; `nil` if the text states none.
    static func remaining(in text: String, at now: Timestamp) -> Duration? {
        let mark = "banned until "
        guard let place = text.start(of: mark) else { return nil }
        let digits = text[place...].dropFirst(mark.count).prefix { $0.isASCII && $0.isNumber }
        guard let number = Int64(digits), let end = VenueTime.milliseconds(fromEpoch: number) else { return nil }
        let left = Duration.milliseconds(end - now.milliseconds)
        return left > .zero ? min(left, CooldownRule.longestTold) : nil
    }
}

/// What the placeholders of a description stand for.
struct Placeholders: Sendable {
    /// Those of a market's name.
    static let ofNames = ["BASE", "base", "QUOTE", "quote", "Quote"]
    /// Those of a URL.
    static let ofRequests = ofNames + ["name", "names"]
    /// Those of a request for the rates of past days.
    static let ofHistory = ["BASE", "FROM", "TO", "QUOTES"]
    /// Those of a place in a body.
    static let ofBodies = ofNames + ["name", "key"]

    private var values: [String: String]

    init(base: String, quote: String) {
        values = [
            "BASE": base, "base": base.lowercased(), "QUOTE": quote, "quote": quote.lowercased(),
            "Quote": quote.prefix(1) + quote.dropFirst().lowercased(),
        ]
    }

    subscript(name: String) -> String? {
        get { values[name] }
        set { values[name] = newValue }
    }

    /// A text with the values.
    /// - Parameter escape: Makes a value fit where it is put.
    func fill(_ text: String, escaping escape: (String) -> String = { $0 }) -> String {
        var filled = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            let name = String(rest[rest.index(after: open)..<close])
            filled += rest[..<open]
            filled += values[name].map(escape) ?? "{\(name)}"
            rest = rest[rest.index(after: close)...]
        }
        return filled + rest
    }

    /// The first placeholder in a text that is not one of these.
    static func unknown(in text: String, allowed: [String]) -> String? {
        var rest = text[...]
        while let close = rest.firstIndex(of: "}") {
            if let open = rest[..<close].lastIndex(of: "{") {
                let name = String(rest[open..<close].dropFirst())
                if !allowed.contains(name) { return name }
            }
            rest = rest[close...].dropFirst()
        }
        return nil
    }
}
