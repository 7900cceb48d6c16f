public import FoundationEssentials

extension Decimal {
    /// Reads a decimal number exactly, or not at all.
    ///
    /// `Decimal(string:)` takes `12abc` for 12 and rounds what has too many digits; here both are `nil`.
    /// - Parameter text: A number as in RFC 8259 section 6, exponents included: `75500.99`, `1E-8`. At most 38 significant digits.
    public init?(exactly text: some StringProtocol) {
        var rest = text.utf8[...]
        if rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
        let whole = rest.prefix(while: Self.isDigit)
        guard !whole.isEmpty else { return nil }
        rest = rest.dropFirst(whole.count)
        var digits = Array(whole)
        if rest.first == UInt8(ascii: ".") {
            let fraction = rest.dropFirst().prefix(while: Self.isDigit)
            guard !fraction.isEmpty else { return nil }
            rest = rest.dropFirst(1 + fraction.count)
            digits += fraction
        }
        if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
            rest = rest.dropFirst()
            if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
            let exponent = rest.prefix(while: Self.isDigit)
            guard (1...3).contains(exponent.count) else { return nil }
            rest = rest.dropFirst(exponent.count)
        }
        guard rest.isEmpty, Self.significant(digits) <= 38, let value = Decimal(string: String(text)), value.isFinite
        else {
            return nil
        }
        self = value
    }

    /// Zeros before the first other digit and after the last one only say where it stands.
    private static func significant(_ digits: [UInt8]) -> Int {
        let isOther = { (digit: UInt8) in digit != UInt8(ascii: "0") }
        guard let first = digits.firstIndex(where: isOther), let last = digits.lastIndex(where: isOther) else {
            return 0
        }
        return last - first + 1
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}
