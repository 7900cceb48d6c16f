import BTCPriceCore

/// Reads a decimal number. With up to 18 digits the value has exactly the digits of the text. Printed and read again, it is the same.
func decimal(_ text: String) {
    guard let value = Price(text) else { return }
    let digits = Digits(text)
    hold(digits.count > Price.mostDigits || digits == Digits(value.description), "\(text) was read as \(value)")
    hold(Price(value.description) == value, "\(value), read from \(text), is not read again")
    hold(Double(value.description) == value.double, "\(value) is \(value.double)")
}

/// A decimal number as its significant digits and their exponent, found without arithmetic.
private struct Digits: Equatable {
    private var isNegative = false
    private var digits: [UInt8] = []
    private var exponent = 0

    var count: Int { digits.count }

    init(_ text: String) {
        var rest = text.utf8[...]
        isNegative = rest.first == UInt8(ascii: "-")
        if isNegative { rest = rest.dropFirst() }
        let parts = rest.split(maxSplits: 1) { $0 == UInt8(ascii: "e") || $0 == UInt8(ascii: "E") }
        if parts.count == 2 { exponent = Int(String(decoding: parts[1], as: UTF8.self)) ?? .min }
        let numbers = parts[0].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        digits = numbers.flatMap { Array($0) }
        exponent -= numbers.dropFirst().first?.count ?? 0
        while digits.last == UInt8(ascii: "0") {
            digits.removeLast()
            exponent += 1
        }
        digits = Array(digits.drop { $0 == UInt8(ascii: "0") })
        // Zero has no sign and no exponent.
        if digits.isEmpty { (isNegative, exponent) = (false, 0) }
    }
}
