package import BTCPriceCore

extension JSONKind<Price> {
    /// An exact decimal, which is sent as a string.
    package static var decimal: JSONKind<Price> { .init({ .string($0.description) }, \.decimalValue) }

    /// A price, which must be one that a currency can have.
    package static var price: JSONKind<Price> { decimal.only(Currency.pricesOfAny.contains) }
}

extension JSONKind<Int64> {
    /// A clock time or a duration in milliseconds.
    package static var milliseconds: JSONKind<Int64> { .init({ .integer($0) }, \.millisecondsValue) }

    /// The interval of a daemon's ticks in milliseconds.
    package static var interval: JSONKind<Int64> { .init({ .integer($0) }, \.intervalValue) }
}

extension JSONKind<BootTime> {
    package static var boottime: JSONKind<BootTime> {
        .init({ .integer($0.milliseconds) }, { $0.millisecondsValue.map { BootTime(milliseconds: $0) } })
    }
}

extension JSONKind<Timestamp> {
    package static var time: JSONKind<Timestamp> { .init({ .integer($0.milliseconds) }, \.timestampValue) }
}

extension JSONValue {
    /// The value as an exact decimal; `nil` if it is not one in a string.
    package var decimalValue: Price? { rawString.flatMap { Price(utf8: $0) } }

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
