/// An amount of money, in bitcoin or in a currency.
package struct Amount: Sendable, Hashable {
    package enum Unit: Sendable, Hashable {
        case btc
        /// A satoshi, `10^-8` bitcoin.
        case sat
        case money(Currency)

        /// `btc`, `sat`, `usd`
        package var name: String {
            switch self {
            case .btc: "btc"
            case .sat: "sat"
            case .money(let currency): currency.rawValue.lowercased()
            }
        }

        /// - Parameter name: In lower-case letters; also `sats`, `xbt` and `₿`.
        package init?(name: String) {
            switch name {
            case "btc", "xbt", Amount.bitcoinSign: self = .btc
            case "sat", "sats": self = .sat
            default:
                guard let currency = Currency(rawValue: name.uppercased()) else { return nil }
                self = .money(currency)
            }
        }

        package var isMoney: Bool {
            if case .money = self { true } else { false }
        }
    }

    /// The number of units; not negative, at most ``Price/mostDigits`` digits.
    package let value: Price
    package let unit: Unit

    package static let satoshis: Price = 100_000_000
    private static let bitcoinSign = "₿"
    private static let satoshi = Price(1, scale: 8)

    /// Reads an amount.
    /// - Parameters:
    ///   - text: A decimal number that is not negative, and its unit in small or capital letters: `0.05btc`, `.5 BTC`, `250eur`,
    ///     `$70,000`, `₿0.05`, `70k`, `100000sat`, `1sats`. `k` is a thousand, `m` a million. Commas may group the digits by three, unless
    ///     the number begins with 0. Spaces mean nothing, but not in a number with commas: `1 234,500` has a decimal one. A number
    ///     that other people read as a thousand times more or less is refused: `70.000usd`, `1,500btc`.
    ///   - unit: The unit of a text without one; `nil` if the text must contain one.
    /// - Returns: `nil` for any other text, and for more than ``Price/mostDigits`` digits.
    package init?(_ text: some StringProtocol, unit: Unit? = nil) {
        let lower = text.lowercased().filter { $0 != " " }
        var rest = lower[...]
        var named = unit
        let sign = Self.sign(String(rest.prefix(1)))
        if let sign {
            rest.removeFirst()
            named = sign
        }
        let number: Substring
        var name: Substring
        (number, name) = Self.parts(rest)
        // `50€`
        if sign == nil, let trailing = Self.sign(String(name)) {
            named = trailing
            name = ""
        }
        var thousands = 0
        // `5krw` are won.
        if let letter = name.first, let count = ["k": 1, "m": 2][letter], Unit(name: String(name)) == nil {
            name.removeFirst()
            thousands = count
        }
        if !name.isEmpty {
            guard sign == nil, let given = Unit(name: String(name)) else { return nil }
            named = given
        }
        // `mBTC` usually means a thousandth of a bitcoin, so `m` is accepted only for money.
        guard let unit = named, thousands < 2 || unit.isMoney, let plain = Self.withoutCommas(number),
            !(number.contains(",") && Self.hasSpaceInNumber(text)),
            thousands > 0 || Self.readings(number, of: unit) == nil
        else { return nil }
        let digits = plain.utf8.count { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard digits > 0, digits + thousands * 3 <= Price.mostDigits,
            var value = Price(plain.first == "." ? "0\(plain)" : plain)
        else { return nil }
        for _ in 0..<thousands { value = value * 1000 }
        self.value = value
        self.unit = unit
    }

    /// The two readings of a number whose only comma or point may be that of the thousands or that of the decimals; `nil` for any other
    /// number. Money with commas has thousands, as `$70,000`, and bitcoin with a point has decimals: both are usual. Before `k` and `m`,
    /// a point is that of decimals.
    private static func readings(_ number: Substring, of unit: Unit) -> (more: String, less: String)? {
        let separator: Character = unit == .btc ? "," : "."
        let parts = number.split(separator: separator, omittingEmptySubsequences: false)
        guard parts.count == 2, (1...3).contains(parts[0].count), parts[1].count == 3, parts[0].first != "0",
            parts.allSatisfy({ $0.allSatisfy(\.isNumber) }), !hasThousandths(unit)
        else { return nil }
        let less = Price("\(parts[0]).\(parts[1])")?.description ?? ""
        // Three decimals of money would be refused again.
        let isLong = unit != .btc && less.split(separator: ".").last?.count == 3 && less.contains(".")
        return ("\(parts[0])\(parts[1])", isLong ? "\(less)0" : less)
    }

    /// Whether the smallest coin of a currency is a thousandth (ISO 4217, minor unit).
    private static func hasThousandths(_ unit: Unit) -> Bool {
        guard case .money(let currency) = unit else { return false }
        return ["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"].contains(currency.rawValue)
    }

    /// The unit that a sign names.
    private static func sign(_ text: String) -> Unit? {
        // Most texts begin with a digit or are empty, and there are many currencies.
        guard let first = text.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else { return nil }
        return text == bitcoinSign ? .btc : Currency.known.first { $0.symbol == text }.map { .money($0) }
    }

    /// Whether there is a space between two digits.
    private static func hasSpaceInNumber(_ text: some StringProtocol) -> Bool {
        let parts: [Substring] = String(text).split { $0 == " " }
        return zip(parts, parts.dropFirst()).contains { $0.last?.isNumber == true && $1.first?.isNumber == true }
    }

    /// What other notations have between thousands.
    private static let separators: [Character: String] = [
        "'": "an apostrophe", "’": "an apostrophe", "_": "an underscore", "\u{A0}": "a no-break space",
        "\u{202F}": "a narrow no-break space", "\u{2009}": "a thin space",
    ]

    /// The number at the beginning of a text, and what follows it.
    private static func parts(_ text: Substring) -> (number: Substring, name: Substring) {
        let end = text.firstIndex { !($0.isASCII && ($0.isNumber || $0 == "." || $0 == ",")) } ?? text.endIndex
        return (text[..<end], text[end...])
    }

    /// Why a text is not an amount, and what to write instead.
    package static func mistake(in text: some StringProtocol) -> String {
        var lower = text.lowercased().filter { $0 != " " }
        if lower.hasPrefix("-") || lower.hasPrefix("−") { return "it is below zero" }
        let named = sign(String(lower.prefix(1)))
        if named != nil { lower.removeFirst() }
        let rule = "commas only group digits by three, and a point begins the decimals"
        if let separator = lower.first(where: { separators[$0] != nil }), let name = separators[separator] {
            let plain = lower.filter { separators[$0] == nil }
            return "write \(decimal(parts(plain[...]).number) ?? "it") without \(name): \(rule)"
        }
        let (number, name) = parts(lower[...])
        let units = "btc, sat, or the code of a currency such as usd"
        guard number.contains(where: \.isNumber) else { return "write a number and a unit, such as 0.05btc or 250usd" }
        guard let plain = withoutCommas(number), plain.count(where: { $0 == "." }) <= 1,
            !(number.contains(",") && hasSpaceInNumber(text))
        else {
            return decimal(number).map { "write \($0), not \(number): \(rule)" } ?? rule
        }
        let unit = named ?? sign(String(name)) ?? Unit(name: String(name))
        if unit != nil || name.isEmpty, let (more, less) = readings(number, of: unit ?? .money(.usd)) {
            return "\(number) may mean \(more) or \(less): write one of them"
        }
        if number.count(where: \.isNumber) > Price.mostDigits { return "it has more than \(Price.mostDigits) digits" }
        if name.isEmpty { return "it has no unit (\(units))" }
        if name.first == "m", ["btc", "sat", "sats"].contains(name.dropFirst()) {
            return "m is a million and only for money; write the number in btc or sat"
        }
        return "'\(name)' is not a unit (\(units))"
    }

    /// A number in our notation that is in another one: `1000.50` for `1.000,50`; `nil` if it can't be told.
    private static func decimal(_ number: Substring) -> String? {
        func isGrouped(_ text: Substring, by separator: Character) -> Bool {
            let groups: [Substring] = text.split(omittingEmptySubsequences: false) { $0 == separator }
            return groups.dropFirst().allSatisfy { $0.count == 3 }
        }
        let (commas, points) = (number.count { $0 == "," }, number.count { $0 == "." })
        switch (commas, points) {
        case (0, 0), (0, 1): return String(number)
        // `1.000.000`
        case (0, _): return isGrouped(number, by: ".") ? number.filter { $0 != "." } : nil
        // `0,5`, `1.000,50`
        case (1, _):
            let parts = number.split(separator: ",", omittingEmptySubsequences: false)
            return isGrouped(parts[0], by: ".") && !parts[1].contains(".")
                ? "\(parts[0].filter { $0 != "." }).\(parts[1])" : nil
        // `12,34,567`
        case (_, 0): return number.suffix(4).first == "," ? number.filter { $0 != "," } : nil
        default: return nil
        }
    }

    /// `70000.5` for `70,000.5`; `nil` if a comma is not followed by a group of three digits, or the first group begins with 0: `0,125` is
    /// a decimal number in other notations.
    private static func withoutCommas(_ number: Substring) -> String? {
        let parts = number.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let groups = parts[0].split(separator: ",", omittingEmptySubsequences: false)
        guard
            parts.count == 1 || parts[1].allSatisfy(\.isNumber),
            groups.count == 1
                || ((1...3).contains(groups[0].count) && groups[0].first != "0"
                    && groups.dropFirst().allSatisfy { $0.count == 3 })
        else { return nil }
        return groups.joined() + (parts.count > 1 ? "." + parts[1] : "")
    }

    /// - Parameter value: The number of units; not negative.
    package init(_ value: Price, _ unit: Unit) {
        self.value = value
        self.unit = unit
    }

    /// The amount in every unit.
    /// - Parameter price: The price of one bitcoin in the amount's currency, or in the wanted one; positive.
    package func converted(at price: Price) -> ConvertedAmount {
        switch unit {
        case .btc: return ConvertedAmount(btc: value, sat: value * Self.satoshis, money: value * price)
        case .sat: return ConvertedAmount(btc: value * Self.satoshi, sat: value, money: value * price * Self.satoshi)
        case .money:
            // A satoshi is the smallest unit of payment.
            let btc = value.divided(by: price, places: 8)
            return ConvertedAmount(btc: btc, sat: btc * Self.satoshis, money: value)
        }
    }
}

/// An amount in every unit, exact within the digits of a ``Price``. Money converts to whole satoshis, rounded half to even.
package struct ConvertedAmount: Sendable, Hashable {
    package let btc: Price
    package let sat: Price
    /// In the currency of the price.
    package let money: Price

    package subscript(unit: Amount.Unit) -> Price {
        switch unit {
        case .btc: btc
        case .sat: sat
        case .money: money
        }
    }
}
