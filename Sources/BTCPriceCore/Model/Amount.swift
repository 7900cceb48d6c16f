/// An amount of money, in bitcoin or in dollars.
package struct Amount: Sendable, Hashable {
    /// What an amount is counted in.
    package enum Unit: String, Sendable, Hashable, CaseIterable {
        /// A bitcoin.
        case btc
        /// A satoshi, the hundred millionth part of a bitcoin.
        case sat
        /// A US dollar.
        case usd
    }

    /// How many; not negative, at most ``mostDigits`` digits.
    package let value: Price
    /// Of what.
    package let unit: Unit

    /// As many as a ``Price`` holds.
    package static let mostDigits = Price.mostDigits

    /// The satoshis in a bitcoin.
    private static let satoshis: Price = 100_000_000
    /// A satoshi in bitcoin.
    private static let satoshi = Price(1, scale: 8)

    /// Reads an amount.
    /// - Parameters:
    ///   - text: A decimal number that is not negative, and its unit in small or capital letters: `0.05btc`, `.5 BTC`, `250usd`,
    ///     `$70,000`, `70k`, `100000sat`, `1sats`. `k` stands for a thousand, `m` for a million; a comma may stand before each three digits.
    ///   - unit: The unit of a number without one; `nil` if it must have one.
    /// - Returns: `nil` for anything else, and for one of more than ``mostDigits`` digits.
    package init?(_ text: some StringProtocol, unit: Unit? = nil) {
        var rest = text.lowercased().filter { $0 != " " }[...]
        var named = unit
        let hasSign = rest.first == "$"
        if hasSign {
            rest.removeFirst()
            named = .usd
        }
        let end = rest.firstIndex { !($0.isASCII && ($0.isNumber || $0 == "." || $0 == ",")) } ?? rest.endIndex
        let number = rest[..<end]
        var name = rest[end...]
        var thousands = 0
        if let letter = name.first, let count = ["k": 1, "m": 2][letter] {
            name.removeFirst()
            thousands = count
        }
        if !name.isEmpty {
            guard !hasSign, let given = Unit(rawValue: name == "sats" ? "sat" : String(name)) else { return nil }
            named = given
        }
        // mBTC is the usual name of a thousandth.
        guard let unit = named, thousands < 2 || unit == .usd, let plain = Self.withoutCommas(number) else {
            return nil
        }
        let digits = plain.utf8.count { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard digits > 0, digits + thousands * 3 <= Self.mostDigits,
            var value = Price(plain.first == "." ? "0\(plain)" : plain)
        else { return nil }
        for _ in 0..<thousands { value = value * 1000 }
        self.value = value
        self.unit = unit
    }

    /// `70000.5` of `70,000.5`; `nil` if a comma stands elsewhere than before three digits.
    private static func withoutCommas(_ number: Substring) -> String? {
        let parts = number.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let groups = parts[0].split(separator: ",", omittingEmptySubsequences: false)
        guard
            groups.count == 1 || ((1...3).contains(groups[0].count) && groups.dropFirst().allSatisfy { $0.count == 3 })
        else { return nil }
        return groups.joined() + (parts.count > 1 ? "." + parts[1] : "")
    }

    /// - Parameters:
    ///   - value: How many; not negative.
    ///   - unit: Of what.
    package init(_ value: Price, _ unit: Unit) {
        self.value = value
        self.unit = unit
    }

    /// The amount in every unit.
    /// - Parameter price: What one bitcoin costs in dollars; positive.
    package func converted(at price: Price) -> ConvertedAmount {
        switch unit {
        case .btc: return ConvertedAmount(btc: value, sat: value * Self.satoshis, usd: value * price)
        case .sat: return ConvertedAmount(btc: value * Self.satoshi, sat: value, usd: value * price * Self.satoshi)
        case .usd:
            // There is nothing smaller than a satoshi to pay with.
            let btc = value.divided(by: price, places: 8)
            return ConvertedAmount(btc: btc, sat: btc * Self.satoshis, usd: value)
        }
    }
}

/// An amount in every unit: exact up to the digits of a ``Price``. What dollars buy is rounded half to even to whole satoshis.
package struct ConvertedAmount: Sendable, Hashable {
    /// In bitcoin.
    package let btc: Price
    /// In satoshis.
    package let sat: Price
    /// In US dollars.
    package let usd: Price

    /// The amount in one of them.
    package subscript(unit: Amount.Unit) -> Price {
        switch unit {
        case .btc: btc
        case .sat: sat
        case .usd: usd
        }
    }
}
