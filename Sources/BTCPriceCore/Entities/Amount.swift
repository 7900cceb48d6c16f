public import FoundationEssentials

/// An amount of money, in bitcoin or in dollars.
public struct Amount: Sendable, Hashable {
    /// What an amount is counted in.
    public enum Unit: String, Sendable, Hashable, CaseIterable {
        /// A bitcoin.
        case btc
        /// A satoshi, the hundred millionth part of a bitcoin.
        case sat
        /// A US dollar.
        case usd
    }

    /// How many; not negative, at most ``mostDigits`` digits.
    public let value: Decimal
    /// Of what.
    public let unit: Unit

    /// With so many digits, and the 20 of a price at most, a product is exact in the 38 of a `Decimal`.
    public static let mostDigits = 18

    /// The satoshis in a bitcoin.
    private static let satoshis: Decimal = 100_000_000

    /// Reads an amount.
    /// - Parameter text: A decimal number that is not negative, and its unit in small or capital letters: `0.05btc`, `250usd`,
    ///   `$250`, `100000sat`, `1sats`.
    /// - Returns: `nil` for anything else, and for one of more than ``mostDigits`` digits.
    public init?(_ text: some StringProtocol) {
        let lower = text.lowercased()
        let number: Substring
        if lower.hasPrefix("$") {
            (number, unit) = (lower.dropFirst(), .usd)
        } else {
            let end = lower.firstIndex { !($0.isASCII && ($0.isNumber || $0 == ".")) } ?? lower.endIndex
            let name = lower[end...] == "sats" ? "sat" : String(lower[end...])
            guard let unit = Unit(rawValue: name) else { return nil }
            (number, self.unit) = (lower[..<end], unit)
        }
        let point = UInt8(ascii: ".")
        let digits = number.utf8.count { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard digits <= Self.mostDigits, number.utf8.count(where: { $0 != point }) == digits,
            let value = Decimal(exactly: number)
        else { return nil }
        self.value = value
    }

    /// - Parameters:
    ///   - value: How many; not negative.
    ///   - unit: Of what.
    public init(_ value: Decimal, _ unit: Unit) {
        self.value = value
        self.unit = unit
    }

    /// The amount in every unit.
    /// - Parameter price: What one bitcoin costs in dollars; positive.
    public func converted(at price: Decimal) -> ConvertedAmount {
        switch unit {
        case .btc: return ConvertedAmount(btc: value, sat: value * Self.satoshis, usd: value * price)
        case .sat: return ConvertedAmount(btc: value / Self.satoshis, sat: value, usd: value * price / Self.satoshis)
        case .usd:
            // There is nothing smaller than a satoshi to pay with.
            let sat = (value / price * Self.satoshis).rounded(toPlaces: 0)
            return ConvertedAmount(btc: sat / Self.satoshis, sat: sat, usd: value)
        }
    }
}

/// An amount in every unit: exact in all, except that what dollars buy is rounded half to even to whole satoshis.
public struct ConvertedAmount: Sendable, Hashable {
    /// In bitcoin.
    public let btc: Decimal
    /// In satoshis.
    public let sat: Decimal
    /// In US dollars.
    public let usd: Decimal

    /// The amount in one of them.
    public subscript(unit: Amount.Unit) -> Decimal {
        switch unit {
        case .btc: btc
        case .sat: sat
        case .usd: usd
        }
    }
}
