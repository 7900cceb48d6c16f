public import BTCPriceCore
public import FoundationEssentials

/// `$68,901.23`, as in the C locale whatever the reader's is. Cents are rounded half to even, for display only.
public struct DollarFormatter: PriceFormatter {
    /// A formatter.
    public init() {}

    /// - Parameters:
    ///   - value: The exact price.
    ///   - currency: ISO 4217; other than USD stands in front as it is.
    public func string(from value: Decimal, currency: String) -> String {
        var digits = value.magnitude.description.split(separator: ".").map { Array($0.utf8) }
        if digits.count == 1 { digits.append([]) }
        var cents = digits[0] + digits[1].prefix(2)
        cents += repeatElement(UInt8(ascii: "0"), count: max(0, 2 - digits[1].count))
        if Self.roundsUp(digits[1].dropFirst(2), after: cents.last ?? 0) { Self.increment(&cents) }

        let whole = cents.dropLast(2)
        var text = value < 0 ? "-" : ""
        text += currency == "USD" ? "$" : "\(currency) "
        for (index, digit) in whole.enumerated() {
            if index > 0, (whole.count - index) % 3 == 0 { text += "," }
            text.unicodeScalars.append(Unicode.Scalar(digit))
        }
        return text + "." + String(decoding: cents.suffix(2), as: UTF8.self)
    }

    private static func roundsUp(_ rest: ArraySlice<UInt8>, after last: UInt8) -> Bool {
        guard let first = rest.first else { return false }
        if first != UInt8(ascii: "5") { return first > UInt8(ascii: "5") }
        // Exactly half goes to the even neighbour; the codes of even digits are even.
        return rest.dropFirst().contains { $0 != UInt8(ascii: "0") } || last % 2 == 1
    }

    private static func increment(_ digits: inout [UInt8]) {
        for index in digits.indices.reversed() {
            if digits[index] < UInt8(ascii: "9") {
                digits[index] += 1
                return
            }
            digits[index] = UInt8(ascii: "0")
        }
        digits.insert(UInt8(ascii: "1"), at: 0)
    }
}
