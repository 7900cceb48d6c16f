import Glibc

/// An exact decimal number: a price of one bitcoin, or an amount of money.
///
/// It holds `digits · 10^-scale` with at most ``mostDigits`` digits. More digits are rounded half to even. Each number has one
/// representation, so equal numbers compare equal: fractions have no trailing zeros, and ``scale`` is below zero only if the digits do
/// not fit otherwise.
package struct Price: Sendable, Hashable {
    /// The maximum number of significant digits.
    package static let mostDigits = 18
    /// The smallest whole number with more than ``mostDigits`` digits.
    private static let bound: Int64 = 1_000_000_000_000_000_000
    /// The accepted scales. They exceed those of any real price by far.
    private static let scales = -128...128

    /// The number without its decimal point.
    package let digits: Int64
    /// The number of digits after the decimal point; below zero for numbers with more than ``mostDigits`` digits before it.
    package let scale: Int

    package static let zero = Price(0)

    package init(_ whole: Int64) {
        self.init(rounding: Int128(whole), scale: 0)
    }

    /// `digits · 10^-scale`.
    package init(_ digits: Int64, scale: Int) {
        self.init(rounding: Int128(digits), scale: scale)
    }

    /// `digits · 10^-scale`, rounded half to even to ``mostDigits`` digits.
    private init(rounding wide: Int128, scale wideScale: Int) {
        var excess = 0
        while wide.magnitude >= UInt128(Self.bound) * Self.power(excess) { excess += 1 }
        // Rounding up all nines adds a digit.
        var digits = Int64(excess > 0 ? Self.divide(wide, by: Int128(Self.power(excess))) : wide)
        var scale = digits == 0 ? 0 : wideScale - excess
        while scale > 0, digits % 10 == 0 { (digits, scale) = (digits / 10, scale - 1) }
        while scale < 0, digits.magnitude < Self.bound.magnitude / 10 { (digits, scale) = (digits * 10, scale + 1) }
        if digits.magnitude == Self.bound.magnitude { (digits, scale) = (digits / 10, scale - 1) }
        self.digits = digits
        self.scale = scale
    }

    /// Parses a decimal number, with an exponent if there is one: `75500.99`, `1E-8`.
    ///
    /// Reads any number of digits, and rounds to ``mostDigits``.
    /// - Returns: `nil` for any other text, and for magnitudes from about `10^128` up or from about `10^-128` down.
    package init?(_ text: String) {
        self.init(utf8: Array(text.utf8)[...])
    }

    /// Parses a number as ``init(_:)-(String)`` does, from bytes.
    package init?(utf8 bytes: ArraySlice<UInt8>) {
        var reader = Reader(rest: bytes)
        guard let price = reader.number() else { return nil }
        self = price
    }

    // MARK: - Arithmetic

    package var isNegative: Bool { digits < 0 }

    package var magnitude: Price { isNegative ? -self : self }

    package static prefix func - (value: Price) -> Price { Price(-value.digits, scale: value.scale) }

    /// The sum, rounded to ``mostDigits`` digits.
    package static func + (lhs: Price, rhs: Price) -> Price {
        let (fine, coarse) = lhs.scale > rhs.scale ? (lhs, rhs) : (rhs, lhs)
        var (digits, scale) = (Int128(coarse.digits), coarse.scale)
        while scale < fine.scale, digits.magnitude < Self.power(37) { (digits, scale) = (digits * 10, scale + 1) }
        // The scales are so far apart that the smaller number changes no digit of the larger one.
        guard scale == fine.scale else { return coarse }
        return Price(rounding: digits + Int128(fine.digits), scale: scale)
    }

    package static func - (lhs: Price, rhs: Price) -> Price { lhs + -rhs }

    /// The product, rounded to ``mostDigits`` digits.
    package static func * (lhs: Price, rhs: Price) -> Price {
        Price(rounding: Int128(lhs.digits) * Int128(rhs.digits), scale: lhs.scale + rhs.scale)
    }

    /// The quotient, rounded half to even to `places` digits after the decimal point.
    /// - Parameters:
    ///   - divisor: Not zero.
    ///   - places: At least 0.
    package func divided(by divisor: Price, places: Int) -> Price {
        // One decimal digit at a time, because the whole dividend may not fit.
        let shift = places + divisor.scale - scale
        // The quotient is far below half a unit of the last place.
        if -shift > Self.mostDigits { return .zero }
        let divider = Int128(divisor.digits.magnitude) * Int128(Self.power(max(0, -shift)))
        var (quotient, remainder) = Int128(digits.magnitude).quotientAndRemainder(dividingBy: divider)
        var left = max(0, shift)
        // Further digits do not fit and are not needed.
        while left > 0, quotient < Int128(Self.bound) * 1000 {
            let next = (remainder * 10).quotientAndRemainder(dividingBy: divider)
            (quotient, remainder) = (quotient * 10 + next.quotient, next.remainder)
            left -= 1
        }
        let twice = remainder * 2
        if twice > divider || (twice == divider && quotient % 2 == 1) { quotient += 1 }
        return Price(rounding: isNegative == divisor.isNegative ? quotient : -quotient, scale: places - left)
    }

    /// The number, rounded half to even to `places` digits after the decimal point.
    package func rounded(toPlaces places: Int) -> Price {
        guard scale > places else { return self }
        guard scale - places <= Self.mostDigits else { return .zero }
        return Price(rounding: Self.divide(Int128(digits), by: Int128(Self.power(scale - places))), scale: places)
    }

    /// The number in units of the last of `places` digits after the decimal point, rounded half to even: 6890123 for 68901.23 and 2.
    /// - Returns: `nil` if it does not fit.
    package func units(ofPlaces places: Int) -> Int64? {
        let rounded = rounded(toPlaces: places)
        let shift = places - rounded.scale
        guard rounded.digits != 0 else { return 0 }
        guard shift <= Self.mostDigits else { return nil }
        return Int64(exactly: Int128(rounded.digits) * Int128(Self.power(shift)))
    }

    private static func divide(_ dividend: Int128, by divisor: Int128) -> Int128 {
        let (quotient, remainder) = dividend.quotientAndRemainder(dividingBy: divisor)
        let twice = remainder.magnitude * 2
        let roundsUp = twice > divisor.magnitude || (twice == divisor.magnitude && quotient % 2 != 0)
        return roundsUp ? quotient + (dividend < 0 ? -1 : 1) : quotient
    }

    /// Ten to the power of `exponent`, from 0 to 38.
    private static func power(_ exponent: Int) -> UInt128 {
        var power: UInt128 = 1
        for _ in 0..<exponent { power *= 10 }
        return power
    }

    /// The nearest `Double`.
    package var double: Double {
        // Both operands are exact up to 2^53 and 10^22, so the single division rounds correctly.
        if digits.magnitude <= 1 << 53, (0...22).contains(scale) {
            var divisor = 1.0
            for _ in 0..<scale { divisor *= 10 }
            return Double(digits) / divisor
        }
        return Double(description) ?? .nan
    }
}

extension Price: Comparable {
    package static func < (lhs: Price, rhs: Price) -> Bool {
        lhs.scale == rhs.scale ? lhs.digits < rhs.digits : (lhs - rhs).digits < 0
    }
}

extension Price: ExpressibleByIntegerLiteral {
    package init(integerLiteral value: Int64) {
        self.init(value)
    }
}

extension Price: CustomStringConvertible {
    /// Every digit, without an exponent: `68901.23`.
    package var description: String {
        var bytes: [UInt8] = []
        write(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    package func write(to bytes: inout [UInt8]) {
        if isNegative { bytes.append(UInt8(ascii: "-")) }
        let start = bytes.count
        var rest = digits.magnitude
        var written = 0
        // From the last digit to the first, with at least one before the point.
        while rest > 0 || written <= scale {
            if written == scale, written > 0 { bytes.append(UInt8(ascii: ".")) }
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
            written += 1
        }
        bytes[start...].reverse()
        if scale < 0 { bytes.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: -scale)) }
    }
}

extension Price {
    private struct Reader {
        private var rest: ArraySlice<UInt8>
        private var digits: Int64 = 0
        private var scale = 0
        /// The first digit that does not fit, and whether a digit other than zero follows it.
        private var (dropped, isMore): (UInt8?, Bool) = (nil, false)

        init(rest: ArraySlice<UInt8>) {
            self.rest = rest
        }

        mutating func number() -> Price? {
            let isNegative = take("-")
            guard takeDigits(after: 0) else { return nil }
            if take("."), !takeDigits(after: 1) { return nil }
            if take("e") || take("E") {
                guard let exponent = exponent() else { return nil }
                scale -= exponent
            }
            guard rest.isEmpty, digits == 0 || Price.scales.contains(scale) else { return nil }
            if let dropped, dropped > 5 || (dropped == 5 && (isMore || digits % 2 == 1)) { digits += 1 }
            return Price(isNegative ? -digits : digits, scale: digits == 0 ? 0 : scale)
        }

        private mutating func take(_ character: Unicode.Scalar) -> Bool {
            guard rest.first == UInt8(ascii: character) else { return false }
            rest = rest.dropFirst()
            return true
        }

        /// - Parameter places: How much each digit adds to the scale: 0 before the point, 1 after it.
        private mutating func takeDigits(after places: Int) -> Bool {
            var isEmpty = true
            while let digit = rest.first, digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") {
                let value = digit - UInt8(ascii: "0")
                if digits < Price.bound / 10 {
                    digits = digits * 10 + Int64(value)
                    scale += places
                } else {
                    if dropped == nil { dropped = value } else if value > 0 { isMore = true }
                    scale += places - 1
                }
                isEmpty = false
                rest = rest.dropFirst()
            }
            return !isEmpty
        }

        private mutating func exponent() -> Int? {
            let isNegative = take("-")
            if !isNegative { _ = take("+") }
            let text = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            guard (1...3).contains(text.count) else { return nil }
            rest = rest.dropFirst(text.count)
            let value = text.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
            return isNegative ? -value : value
        }
    }
}

extension Price {
    /// The digits with commas between groups of three, as the C locale writes them: `68,901.23`.
    /// - Parameter places: The digits after the point, rounded half to even; `nil` for all.
    package func grouped(places: Int? = nil) -> String {
        let digits = Array((places.map { rounded(toPlaces: $0) } ?? self).description.utf8)
        let whole = digits.firstIndex(of: UInt8(ascii: ".")) ?? digits.count
        var bytes: [UInt8] = []
        for (index, digit) in digits[..<whole].enumerated() {
            if index > 0, (whole - index) % 3 == 0 { bytes.append(UInt8(ascii: ",")) }
            bytes.append(digit)
        }
        guard let places else { return String(decoding: bytes + digits[whole...], as: UTF8.self) }
        if places > 0 {
            bytes.append(UInt8(ascii: "."))
            for index in whole + 1...whole + places {
                bytes.append(index < digits.count ? digits[index] : UInt8(ascii: "0"))
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension Price {
    /// The natural logarithm; minus infinity for a number that is not above zero.
    var logarithm: Double {
        let value = double
        return value > 0 ? Glibc.log(value) : -.infinity
    }
}

extension Currency {
    /// The price with a natural logarithm, in whole coins; at most e^36.
    func price(logarithm: Double) -> Price {
        let coins = exp(Swift.min(logarithm, 36)) / Price(1, scale: places).double
        return Price(Int64(coins.rounded()), scale: places)
    }
}
