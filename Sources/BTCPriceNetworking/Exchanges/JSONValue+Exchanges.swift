import BTCPriceCore
import BTCPriceSocket

/// What a description's places lead to.
extension JSONValue {
    /// The text of an error, of a long one the beginning; `nil` if the value means that there is none: an empty text, zero, `null` or
    /// another type.
    var errorText: String? {
        // Words are looked for in it, which takes about a second for a text of 4 MiB.
        if let text = stringValue { return text.isEmpty ? nil : String(text.unicodeScalars.prefix(1000)) }
        return integerValue.flatMap { $0 == 0 ? nil : "error \($0)" }
    }

    /// A time, milliseconds since 1970: a number or text of seconds, milliseconds, microseconds or nanoseconds since then, with a
    /// fraction or not, or ISO 8601. `nil` for anything else.
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
