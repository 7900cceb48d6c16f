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
        case 408, 500...: throw .unavailable(reason(message))
        case 300..<400: throw .unavailable("HTTP \(status): it redirects, which is not followed")
        // Asking again the same way brings the same answer: key, region, protocol, or an endpoint that is gone.
        case 400..<500: throw .refused(reason(message))
        default: throw .invalidData("HTTP \(status)")
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

    private func reason(_ message: (ExchangeAnswer) -> String?) -> String {
        guard let text = message(self), !text.isEmpty else { return "HTTP \(status)" }
        return "HTTP \(status), \(oneLine(text))"
    }

    /// `Retry-After` in seconds (RFC 9110, section 10.2.3), at most thirty days.
    private var pause: Duration? {
        guard let retryAfter, let seconds = Int(retryAfter), (0...2_592_000).contains(seconds) else { return nil }
        return .seconds(seconds)
    }

    private var bodyShape: String {
        switch body.first(where: { ![0x20, 0x0A, 0x0D, 0x09].contains($0) }) {
        case nil: "an empty body"
        case UInt8(ascii: "<"): "a page of HTML instead of JSON"
        case UInt8(ascii: "{"), UInt8(ascii: "["): "JSON of another shape"
        default: "no JSON"
        }
    }
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
            // JSONDecoder reads a Decimal from the number's digits, without a Double in between.
            value = try container.decode(Decimal.self)
        }
    }
}
