public import FoundationEssentials

/// What a `Decimal` is made of, where that can be told: `digits · 10^exponent`.
///
/// FoundationEssentials tells it by a text alone, and makes that through some twenty thousand instructions; a price is looked at several
/// times a tick. So its storage is read, after a look at numbers that are known: where those read wrongly, the layout is another one, and
/// the text is taken.
struct DecimalParts: Equatable {
    var isNegative: Bool
    var digits: UInt64
    var exponent: Int

    /// `nil` for what has more digits than fit, for what is no number, and where the layout is not known.
    init?(_ value: Decimal) {
        guard Self.isLayoutKnown, let parts = Self(storageOf: value) else { return nil }
        self = parts
    }

    init(isNegative: Bool, digits: UInt64, exponent: Int) {
        self.isNegative = isNegative
        self.digits = digits
        self.exponent = exponent
    }

    /// A signed byte with the exponent; a byte with the count of words in its upper half, and the sign in its fourth bit; two bytes for
    /// nothing; and eight words of sixteen bits, the lowest first.
    private init?(storageOf value: Decimal) {
        let parts: Self? = withUnsafeBytes(of: value) { bytes in
            let flags = bytes[1]
            let length = Int(flags >> 4)
            let isNegative = flags & 0x08 != 0
            // Without a word it is zero, or with a sign no number.
            guard length <= 4, length > 0 || !isNegative else { return nil }
            var digits: UInt64 = 0
            for word in 0..<length {
                digits |= UInt64(bytes.loadUnaligned(fromByteOffset: 4 + 2 * word, as: UInt16.self)) << (16 * word)
            }
            return Self(
                isNegative: isNegative, digits: digits, exponent: Int(bytes.load(fromByteOffset: 0, as: Int8.self)))
        }
        guard let parts else { return nil }
        self = parts
    }

    /// Whether the storage is what it was when this was written.
    static let isLayoutKnown: Bool = {
        guard MemoryLayout<Decimal>.size == 20 else { return false }
        let known: [(String, Self)] = [
            ("0", Self(isNegative: false, digits: 0, exponent: 0)),
            ("68901.23", Self(isNegative: false, digits: 6_890_123, exponent: -2)),
            ("-0.00000001", Self(isNegative: true, digits: 1, exponent: -8)),
            ("-12345678.12345678", Self(isNegative: true, digits: 1_234_567_812_345_678, exponent: -8)),
            ("18446744073709551615", Self(isNegative: false, digits: .max, exponent: 0)),
        ]
        return known.allSatisfy { text, parts in Decimal(string: text).flatMap(Self.init(storageOf:)) == parts }
    }()
}

extension Decimal {
    /// Reads digits with at most one point among them, as `Decimal(exactly:)` does, in a fiftieth of the time.
    /// - Parameter bytes: `68901.23`.
    /// - Returns: `nil` for whatever else stands there, and for more than 18 digits, which fit into 64 bits.
    public init?(digits bytes: ArraySlice<UInt8>) {
        var digits: UInt64 = 0
        var point: Int?
        var count = 0
        for byte in bytes {
            if byte == UInt8(ascii: "."), point == nil, count > 0 {
                point = count
                continue
            }
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9"), count < 18 else { return nil }
            digits = digits * 10 + UInt64(byte - UInt8(ascii: "0"))
            count += 1
        }
        guard count > point ?? 0 else { return nil }
        var exponent = (point ?? count) - count
        // As few digits as say it, as `Decimal(string:)` has them.
        while exponent < 0, digits % 10 == 0 { (digits, exponent) = (digits / 10, exponent + 1) }
        self = Decimal(sign: .plus, exponent: exponent, significand: Decimal(digits))
    }

    /// Its digits without an exponent, as `description` has them: `68901.23`.
    public var text: String {
        guard let parts = DecimalParts(self)?.written, parts.exponent >= -18 else { return description }
        return parts.text
    }

    /// The nearest `Double`; not a number where it is none.
    var double: Double {
        // Both whole numbers are exact, so that the one division rounds rightly.
        if let parts = DecimalParts(self)?.written, parts.digits <= 1 << 53, parts.exponent >= -22 {
            let magnitude = Double(parts.digits) / Self.powersOfTen[-parts.exponent]
            return parts.isNegative ? -magnitude : magnitude
        }
        return Double(description) ?? .nan
    }

    private static let powersOfTen: [Double] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22,
    ]
}

extension DecimalParts {
    /// With the zeros before the point among the digits; `nil` where there is no room for them.
    fileprivate var written: DecimalParts? {
        if digits == 0 { return DecimalParts(isNegative: false, digits: 0, exponent: 0) }
        var parts = self
        while parts.exponent > 0 {
            let (digits, isOverflow) = parts.digits.multipliedReportingOverflow(by: 10)
            if isOverflow { return nil }
            (parts.digits, parts.exponent) = (digits, parts.exponent - 1)
        }
        return parts
    }

    /// For an exponent from -18 to 0.
    fileprivate var text: String {
        // Twenty digits, a zero before the point, the point and the sign.
        String(unsafeUninitializedCapacity: 24) { buffer in
            var rest = digits
            var place = 24
            var written = 0
            while rest > 0 || written <= -exponent {
                if written == -exponent, written > 0 {
                    place -= 1
                    buffer[place] = UInt8(ascii: ".")
                }
                place -= 1
                buffer[place] = UInt8(ascii: "0") + UInt8(rest % 10)
                rest /= 10
                written += 1
            }
            if isNegative {
                place -= 1
                buffer[place] = UInt8(ascii: "-")
            }
            let count = 24 - place
            for index in 0..<count { buffer[index] = buffer[place + index] }
            return count
        }
    }
}
