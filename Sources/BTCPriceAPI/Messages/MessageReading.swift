import BTCPriceCore
import Varlink

extension JSONValue {
    /// An exact decimal, which the interface sends as a string.
    func decimal(_ field: StaticString) throws(JSONFieldError) -> Price {
        try required(field) { $0.rawString.flatMap { Price(utf8: $0) } }
    }

    /// A price.
    func price(_ field: StaticString) throws(JSONFieldError) -> Price {
        let price = try decimal(field)
        guard price > 0 else { throw JSONFieldError(field: "\(field)") }
        return price
    }

    /// The milliseconds in it, of a clock or a span of time; `nil` for what no clock shows.
    var millisecondsValue: Int64? {
        integerValue.flatMap { Timestamp.possibleMilliseconds.contains($0) ? $0 : nil }
    }

    /// The time in it; `nil` for what no clock shows.
    var timestampValue: Timestamp? { millisecondsValue.map { Timestamp(milliseconds: $0) } }
}
