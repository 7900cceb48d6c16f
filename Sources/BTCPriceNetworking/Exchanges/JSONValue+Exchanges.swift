import BTCPriceCore
import BTCPriceSocket

/// What a description's places lead to.
extension JSONValue {
    /// The text of an error, of a long one the beginning; `nil` for no error: an empty text, zero, `null` or another type.
    var errorText: String? {
        // Words are looked for in it, which takes about a second for a text of 4 MiB.
        if let text = stringValue { return text.isEmpty ? nil : String(text.unicodeScalars.prefix(1000)) }
        return integerValue.flatMap { $0 == 0 ? nil : "error \($0)" }
    }

    /// Milliseconds since 1970, from a number or text of seconds to nanoseconds since then, or from ISO 8601; `nil` for anything else.
    var venueTime: Int64? {
        if let whole = wholeNumber { return VenueTime.milliseconds(fromEpoch: whole) }
        if let text = stringValue, text.contains("-") { return VenueTime.milliseconds(fromISO8601: text) }
        return decimal.flatMap { $0.units(ofPlaces: 3) }.flatMap(VenueTime.milliseconds(fromEpoch:))
    }

    /// The value for a message, short and on one line.
    var summary: String {
        switch self {
        case _ where isArray: "an array"
        case _ where objectValue != nil: "an object"
        default: oneLine(String(decoding: text.prefix(200), as: UTF8.self))
        }
    }
}
