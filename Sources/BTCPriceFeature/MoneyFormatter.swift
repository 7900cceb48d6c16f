package import BTCPriceCore

/// Formats `$68,901.23`, `€59,411.02`, `CHF 55,020.10` and `¥10,345,678` as the C locale does, independent of the reader's locale.
/// Rounds half to even, for display only.
package struct MoneyFormatter: PriceFormatter {
    package init() {}

    /// - Parameters:
    ///   - value: The exact price.
    ///   - currency: ISO 4217 code. An unknown one is written before the number, which has two places.
    package func string(from value: Price, currency: String) -> String {
        let symbol = Currency(rawValue: currency)?.symbol ?? "\(currency) "
        return "\(value.isNegative ? "-" : "")\(symbol)\(number(value, currency: currency))"
    }

    /// The magnitude of a value without a symbol: `68,901.23`.
    package func number(_ value: Price, currency: String) -> String {
        let places = Currency(rawValue: currency)?.places ?? 2
        let digits = Array(value.magnitude.rounded(toPlaces: places).description.utf8)
        let whole = digits.firstIndex(of: UInt8(ascii: ".")) ?? digits.count
        var bytes: [UInt8] = []
        bytes.appendGrouped(digits[..<whole])
        if places > 0 {
            bytes.append(UInt8(ascii: "."))
            for index in whole + 1...whole + places {
                bytes.append(index < digits.count ? digits[index] : UInt8(ascii: "0"))
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension [UInt8] {
    /// Appends digits with commas between groups of three.
    mutating func appendGrouped(_ digits: ArraySlice<UInt8>) {
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { append(UInt8(ascii: ",")) }
            append(digit)
        }
    }
}
