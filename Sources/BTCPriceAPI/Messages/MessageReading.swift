package import BTCPriceCore
package import Varlink

extension JSONValue {
    /// An exact decimal, which the interface sends as a string.
    func decimal(_ field: StaticString) throws(JSONFieldError) -> Price { try required(field, \.decimalValue) }

    /// The value as an exact decimal; `nil` if it is not one in a string.
    var decimalValue: Price? { rawString.flatMap { Price(utf8: $0) } }

    /// A price, which must be one that a currency can have.
    func price(_ field: StaticString) throws(JSONFieldError) -> Price {
        let price = try decimal(field)
        guard Currency.pricesOfAny.contains(price) else { throw JSONFieldError(field: "\(field)") }
        return price
    }

    /// A clock time or duration in milliseconds; `nil` if it is out of range.
    package var millisecondsValue: Int64? {
        integerValue.flatMap { Timestamp.possibleMilliseconds.contains($0) ? $0 : nil }
    }

    /// The interval of a daemon's ticks in milliseconds; `nil` if it is out of range.
    package var intervalValue: Int64? {
        integerValue.flatMap { Timestamp.possibleIntervals.contains($0) ? $0 : nil }
    }

    /// The value as a time; `nil` if it is out of range.
    package var timestampValue: Timestamp? { millisecondsValue.map { Timestamp(milliseconds: $0) } }
}
