import BTCPriceCore
import Varlink

extension ExchangeResponse {
    /// The body of a successful response.
    /// - Parameter message: Finds the exchange's message in the body of an error.
    /// - Throws: What the status stands for, and ``PriceLoadingError/invalidData(_:)`` if the body is not JSON.
    func successBody(_ message: (JSONValue) -> String?) throws(PriceLoadingError) -> JSONValue {
        switch status {
        case 200: break
        // 418 is Binance's: 429 was not heeded.
        case 418, 429: throw .rateLimited(reason(message), retryAfter: pause)
        // Maintenance that says when it is over.
        case 503 where pause != nil: throw .rateLimited(reason(message), retryAfter: pause)
        case 408, 500...: throw .unavailable(reason(message))
        case 300..<400: throw .unavailable("HTTP \(status): it redirects, which is not followed")
        // The same request gets the same response: key, region, protocol, or an endpoint that is gone.
        case 400..<500: throw .refused(reason(message))
        default: throw .invalidData("HTTP \(status)")
        }
        guard let json else { throw unexpectedBody }
        return json
    }

    /// The body as JSON; `nil` if it is none.
    var json: JSONValue? {
        do { return try JSONValue(parsing: body[...]) } catch { return nil }
    }

    /// The error for a body that is not what was expected: it says what the body looks like instead.
    var unexpectedBody: PriceLoadingError { .invalidData(bodyShape) }

    /// The price that `read` finds, with the exchange's clock.
    func price(_ read: (ExchangeResponse) throws(PriceLoadingError) -> LoadedPrice) throws(PriceLoadingError)
        -> LoadedPrice
    {
        var price = try read(self)
        price.venueClock = date.flatMap(VenueTime.milliseconds(fromHTTPDate:)).map(Timestamp.init(milliseconds:))
        return price
    }

    /// The status, and the exchange's own word where it has one.
    func reason(_ message: (JSONValue) -> String?) -> String {
        guard var text = json.flatMap(message), !text.isEmpty else { return "HTTP \(status)" }
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

extension JSONValue {
    /// An exact decimal, as a string or as a number: exchanges use both, some in one body.
    var decimal: Price? { (rawString ?? number).flatMap { Price(utf8: $0) } }

    /// A whole number, as a string or as a number.
    var wholeNumber: Int64? { integerValue ?? stringValue.flatMap { Int64($0) } }

    /// Checks what the body says of its market, in the names that exchanges use.
    /// - Parameter market: The market that was requested, in upper case without separators: `BTCUSD`.
    /// - Throws: ``PriceLoadingError/invalidData(_:)`` if the body is another market's.
    func refuseOtherMarket(than market: String) throws(PriceLoadingError) {
        let names: [StaticString] = ["symbol", "pair", "product_id", "product", "market", "instrument"]
        for name in names {
            guard let text = self[name]?.stringValue else { continue }
            let letters = text.uppercased().filter { $0.isLetter || $0.isNumber }
            guard letters == market || letters.replacing("XBT", with: "BTC") == market else {
                throw .invalidData("the price of \(oneLine(text))")
            }
        }
    }
}
