import BTCPriceCore
import BTCPriceSocket

/// What the loaders read from an exchange's response.
extension HTTPResponse {
    /// The `Date` header: the exchange's clock, if it sends one.
    var date: String? { header("date") }

    /// The error that a status means, if it is none of 200, 418 and 429.
    /// - Parameter reason: The status, with the exchange's message if there is one.
    func failure(_ reason: String) -> PriceLoadingError {
        switch status {
        case 408, 500...: .unavailable(reason, retryAfter: pause)
        case 300..<400: .unavailable("HTTP \(status): it redirects, which is not followed")
        // A retry gets the same response: wrong key, region or protocol, or a removed endpoint.
        case 400..<500: .refused(reason)
        default: .invalidData("HTTP \(status)")
        }
    }

    /// The body as JSON; `nil` if it is not valid.
    var json: JSONValue? {
        do { return try JSONValue(parsing: text) } catch { return nil }
    }

    /// The body without a byte order mark (RFC 8259, section 8.1).
    private var text: ArraySlice<UInt8> { body.starts(with: "\u{FEFF}".utf8) ? body.dropFirst(3) : body }

    /// The error for an unexpected body, with a description of the body.
    var unexpectedBody: PriceLoadingError { .invalidData(bodyShape) }

    /// The longest time that a cache may have kept a price, seconds: as old as an exchange's own time may be.
    static let oldest: Int64 = 60

    /// The prices that `read` returns, the first one with the exchange's clock.
    func prices(_ read: (HTTPResponse) throws(PriceLoadingError) -> [LoadedPrice]) throws(PriceLoadingError)
        -> [LoadedPrice]
    {
        // How long a cache has kept the response (RFC 9111, section 5.1): none if invalid, the longest if it has too many digits.
        let text = header("age") ?? ""
        let isNumber = !text.isEmpty && text.utf8.allSatisfy { (48...57).contains($0) }
        let age = isNumber ? Int64(text) ?? .max : 0
        var prices = try read(self)
        guard age <= Self.oldest else { throw .staleData("a cache has kept it for \(age) s") }
        for index in prices.indices { prices[index].bodyBytes = body.count }
        prices[0].venueClock = date.flatMap(VenueTime.milliseconds(fromHTTPDate:))
            .map { Timestamp(milliseconds: $0 + age * 1000) }
        return prices
    }

    /// The status, with the exchange's message if there is one.
    func reason(_ message: (JSONValue) -> String?) -> String {
        guard var text = json.flatMap(message), !text.isEmpty else { return "HTTP \(status)" }
        // The caller adds punctuation.
        if text.hasSuffix(".") { text.removeLast() }
        return "HTTP \(status), \(oneLine(text))"
    }

    /// The exchange's clock if the response has it, else the local one.
    var time: Timestamp {
        date.flatMap(VenueTime.milliseconds(fromHTTPDate:)).map(Timestamp.init(milliseconds:))
            ?? ObservationTime.now().wall
    }

    /// The wait that `Retry-After` demands (RFC 9110, section 10.2.3), as far as accepted. A date is on the exchange's clock.
    var pause: Duration? {
        let longest = CooldownRule.longestTold.components.seconds
        guard let retryAfter = header("retry-after") else { return nil }
        if let seconds = Int64(retryAfter) { return seconds < 0 ? nil : .seconds(min(seconds, longest)) }
        guard let end = VenueTime.milliseconds(fromHTTPDate: retryAfter) else { return nil }
        let left = end - time.milliseconds
        return left > 0 ? .milliseconds(min(left, longest * 1000)) : nil
    }

    private var bodyShape: String {
        // No content coding was requested.
        if let encoding = header("content-encoding"), encoding.lowercased() != "identity" {
            return "a body encoded as \(oneLine(encoding))"
        }
        switch text.first(where: { ![0x20, 0x0A, 0x0D, 0x09].contains($0) }) {
        case nil: return "an empty body"
        case UInt8(ascii: "<"): return "a page of HTML instead of JSON"
        default: break
        }
        do throws(JSONError) {
            _ = try JSONValue(parsing: text)
            return "JSON of another shape"
        } catch {
            return "not JSON: \(error.description(in: text))"
        }
    }
}

extension JSONValue {
    /// An exact decimal, as a string or as a number: exchanges use both, some in one body.
    var decimal: Price? { (rawString ?? number).flatMap { Price(utf8: $0) } }

    /// A whole number, as a string or as a number.
    var wholeNumber: Int64? { integerValue ?? stringValue.flatMap { Int64($0) } }
}
