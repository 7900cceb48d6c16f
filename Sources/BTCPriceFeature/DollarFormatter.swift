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
        let text = string(fromDigits: Array(value.magnitude.description.utf8), currency: currency)
        return value < 0 ? "-\(text)" : text
    }

    /// - Parameters:
    ///   - digits: The exact price as ASCII, not negative: `68901.225`.
    ///   - currency: ISO 4217; other than USD stands in front as it is.
    public func string(fromDigits digits: [UInt8], currency: String) -> String {
        // By index and byte by byte: this stands in the path of every `btcctl current`, and a generic algorithm's first use costs
        // more than the rest of it.
        let point = digits.firstIndex(of: UInt8(ascii: ".")) ?? digits.count
        var cents: [UInt8] = []
        cents.reserveCapacity(digits.count + 2)
        for index in 0..<point { cents.append(digits[index]) }
        for index in point + 1...point + 2 { cents.append(index < digits.count ? digits[index] : UInt8(ascii: "0")) }
        if Self.roundsUp(digits, from: point + 3, after: cents[cents.count - 1]) { Self.increment(&cents) }

        let whole = cents.count - 2
        var bytes = Array((currency == "USD" ? "$" : "\(currency) ").utf8)
        for index in 0..<whole {
            if index > 0, (whole - index) % 3 == 0 { bytes.append(UInt8(ascii: ",")) }
            bytes.append(cents[index])
        }
        bytes.append(UInt8(ascii: "."))
        bytes.append(cents[whole])
        bytes.append(cents[whole + 1])
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func roundsUp(_ digits: [UInt8], from start: Int, after last: UInt8) -> Bool {
        guard start < digits.count else { return false }
        if digits[start] != UInt8(ascii: "5") { return digits[start] > UInt8(ascii: "5") }
        for index in start + 1..<digits.count where digits[index] != UInt8(ascii: "0") { return true }
        // Exactly half goes to the even neighbour; the codes of even digits are even.
        return last % 2 == 1
    }

    private static func increment(_ digits: inout [UInt8]) {
        var index = digits.count - 1
        while index >= 0 {
            if digits[index] < UInt8(ascii: "9") {
                digits[index] += 1
                return
            }
            digits[index] = UInt8(ascii: "0")
            index -= 1
        }
        digits.insert(UInt8(ascii: "1"), at: 0)
    }
}
