package import BTCPriceCore

/// Formats `$68,901.23` as the C locale does, independent of the reader's locale. Rounds cents half to even, for display only.
package struct DollarFormatter: PriceFormatter {
    package init() {}

    /// - Parameters:
    ///   - value: The exact price.
    ///   - currency: ISO 4217 code. A code other than USD is written before the number.
    package func string(from value: Price, currency: String) -> String {
        let digits = Array(value.magnitude.rounded(toPlaces: 2).description.utf8)
        let whole = digits.firstIndex(of: UInt8(ascii: ".")) ?? digits.count
        var bytes = Array((value.isNegative ? "-" : "").utf8)
        bytes.append(contentsOf: (currency == "USD" ? "$" : "\(currency) ").utf8)
        bytes.appendGrouped(digits[..<whole])
        bytes.append(UInt8(ascii: "."))
        for index in whole + 1...whole + 2 { bytes.append(index < digits.count ? digits[index] : UInt8(ascii: "0")) }
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
