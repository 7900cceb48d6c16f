import BTCPriceCore
import FoundationEssentials

extension ExchangeAnswer {
    /// The body of a successful answer.
    /// - Parameter message: Finds the exchange's own word in the body of an error.
    /// - Throws: What the status stands for.
    func success(_ message: (ExchangeAnswer) -> String?) throws(PriceLoadingError) -> ExchangeAnswer {
        switch status {
        case 200: return self
        // 418 is Binance's: 429 was not heeded.
        case 418, 429: throw .rateLimited(reason(message), retryAfter: pause)
        // Maintenance that says when it is over.
        case 503 where pause != nil: throw .rateLimited(reason(message), retryAfter: pause)
        case 408, 500...: throw .unavailable(reason(message))
        case 300..<400: throw .unavailable("HTTP \(status): it redirects, which is not followed")
        // Asking again the same way brings the same answer: key, region, protocol, or an endpoint that is gone.
        case 400..<500: throw .refused(reason(message))
        default: throw .invalidData("HTTP \(status)")
        }
    }

    /// The price that `read` finds, with the exchange's clock.
    func price(_ read: (ExchangeAnswer) throws(PriceLoadingError) -> LoadedPrice) throws(PriceLoadingError)
        -> LoadedPrice
    {
        var price = try read(self)
        price.venueClock = date.flatMap(VenueTime.milliseconds(fromHTTPDate:)).map(Timestamp.init(milliseconds:))
        return price
    }

    /// Checks what the body says of its market, in whichever of the exchanges' words.
    /// - Parameter market: The market that was asked for, upper-case letters alone: `BTCUSD`.
    /// - Throws: ``PriceLoadingError/invalidData(_:)`` if the body is another market's.
    func refuseOtherMarket(than market: String) throws(PriceLoadingError) {
        guard let claims = decodedIfPossible(MarketClaims.self) else { return }
        for claim in [claims.symbol, claims.pair, claims.product_id, claims.product, claims.market, claims.instrument] {
            guard let text = claim?.text else { continue }
            let letters = text.uppercased().filter { $0.isLetter || $0.isNumber }
            guard letters == market || letters.replacing("XBT", with: "BTC") == market else {
                throw .invalidData("the price of \(oneLine(text))")
            }
        }
    }

    /// Decodes the body as JSON.
    /// - Throws: ``PriceLoadingError/invalidData(_:)``, with what the body looks like instead.
    func decoded<Body: Decodable>(_ type: Body.Type) throws(PriceLoadingError) -> Body {
        do {
            return try JSONDecoder().decode(type, from: Data(body))
        } catch {
            throw .invalidData(bodyShape)
        }
    }

    /// Decodes the body as JSON; `nil` where it does not fit.
    func decodedIfPossible<Body: Decodable>(_ type: Body.Type) -> Body? {
        do { return try decoded(type) } catch { return nil }
    }

    /// The status, and the exchange's own word where it has one.
    func reason(_ message: (ExchangeAnswer) -> String?) -> String {
        guard var text = message(self), !text.isEmpty else { return "HTTP \(status)" }
        // What follows brings its own punctuation.
        if text.hasSuffix(".") { text.removeLast() }
        return "HTTP \(status), \(oneLine(text))"
    }

    /// The exchange's clock, where it tells it; else ours.
    var time: Timestamp {
        date.flatMap(VenueTime.milliseconds(fromHTTPDate:)).map(Timestamp.init(milliseconds:))
            ?? ObservationTime.now().wall
    }

    /// What `Retry-After` asks for, in seconds or as a date (RFC 9110, section 10.2.3), at most thirty days. A date is held
    /// against the exchange's own clock.
    var pause: Duration? {
        let longest: Int64 = 2_592_000
        guard let retryAfter else { return nil }
        if let seconds = Int64(retryAfter) { return seconds < 0 ? nil : .seconds(min(seconds, longest)) }
        guard let end = VenueTime.milliseconds(fromHTTPDate: retryAfter) else { return nil }
        let left = end - time.milliseconds
        return left > 0 ? .milliseconds(min(left, longest * 1000)) : nil
    }

    private var bodyShape: String {
        if let encoding, encoding.lowercased() != "identity" { return "a body encoded as \(oneLine(encoding))" }
        return switch body.first(where: { ![0x20, 0x0A, 0x0D, 0x09].contains($0) }) {
        case nil: "an empty body"
        case UInt8(ascii: "<"): "a page of HTML instead of JSON"
        case UInt8(ascii: "{"), UInt8(ascii: "["): "JSON of another shape"
        default: "no JSON"
        }
    }
}

/// What exchanges call the market in a body.
private struct MarketClaims: Decodable {
    /// A field that may be something else than a text.
    struct Claim: Decodable {
        let text: String?

        init(from decoder: any Decoder) throws {
            text = try? decoder.singleValueContainer().decode(String.self)
        }
    }
    var symbol: Claim?
    var pair: Claim?
    var product_id: Claim?
    var product: Claim?
    var market: Claim?
    var instrument: Claim?
}

/// An exact decimal in JSON, as a string or as a number: exchanges use both, some in one body.
struct ExactDecimal: Decodable {
    let value: Decimal

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            guard let value = Decimal(exactly: text) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a number")
            }
            self.value = value
        } else {
            // JSONDecoder reads a Decimal from the number's digits, without a Double in between. It takes one digit more than whoever
            // reads the price after us.
            guard let value = Decimal(exactly: try container.decode(Decimal.self).description) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "too many digits")
            }
            self.value = value
        }
    }
}

/// A whole number in JSON, as a string or as a number.
struct ExactInteger: Decodable {
    let value: Int64

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            guard let value = Int64(text) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a whole number")
            }
            self.value = value
        } else {
            value = try container.decode(Int64.self)
        }
    }
}
