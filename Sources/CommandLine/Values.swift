package import BTCPriceCore

// The values that the command lines of several programs have.

/// Reads a currency: a code of three letters, or a sign such as `€`. Accepts unknown codes, because a newer daemon may know them.
package func currencyCode(_ text: String) throws(UsageError) -> String {
    if let sign = Currency.known.first(where: { $0.symbol == text }) { return sign.rawValue }
    guard text.utf8.count == 3, text.allSatisfy({ $0.isASCII && $0.isLetter }) else {
        throw UsageError(
            "it is a code of three letters, such as EUR"
                + (text.contains(",") ? "; only 'btcctl watch' takes several, and 'btcctl currencies' shows all" : ""))
    }
    if let successor = Currency.successor(of: text.uppercased()) {
        throw UsageError("\(text.uppercased()) was replaced by \(successor): write that")
    }
    return text.uppercased()
}

/// Reads a positive amount of money.
/// - Returns: The amount, and the currency that it names; `nil` for none.
package func positive(_ text: some StringProtocol, _ example: String) throws(UsageError) -> (Price, Currency?) {
    let isNamed = Amount(text) != nil
    guard let amount = Amount(text, unit: .money(.usd)) else {
        let reason = text.contains(where: \.isNumber) ? Amount.mistake(in: text) : ""
        throw UsageError(reason.isEmpty ? "it is a positive number such as \(example)" : reason)
    }
    guard case .money(let currency) = amount.unit else {
        throw UsageError("it is an amount of money, such as \(example)")
    }
    guard amount.value > 0 else { throw UsageError("it is a positive number such as \(example)") }
    return (amount.value, isNamed ? currency : nil)
}

/// Reads how far a price moves: `2%`, or an amount of money.
/// - Returns: The number, whether it is in percent, and the currency that it names; `nil` for none.
package func movement(_ text: String) throws(UsageError) -> (value: Price, isPercent: Bool, currency: Currency?) {
    let example = "2% or 500"
    guard text.hasSuffix("%") else {
        let (amount, currency) = try positive(text, example)
        return (amount, false, currency)
    }
    guard let percent = Price(String(text.dropLast())), percent > 0 else {
        _ = try positive(text.dropLast(), example)
        throw UsageError("it is a positive number such as \(example)")
    }
    return (percent, true, nil)
}

/// Reads a duration: a number of seconds, or numbers with the units ms, s, m, min, h, d, w and y (365 days).
package func duration(_ text: String) throws(UsageError) -> Duration {
    let units: [Substring: Double] = [
        "ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000,
    ]
    var (rest, sum) = (text[...], 0.0)
    repeat {
        let digits = rest.prefix { $0.isASCII && $0.isNumber || $0 == "." }
        let unit = rest[digits.endIndex...].prefix { $0.isLetter }
        let isWhole = digits.startIndex == text.startIndex && unit.endIndex == text.endIndex
        rest = rest[unit.endIndex...]
        guard let number = Double(digits), let factor = unit.isEmpty && isWhole ? 1 : units[unit]
        else {
            throw UsageError(
                text.hasPrefix("-") ? "it is below zero" : "it is a duration, such as 30, 30s, 5m, 1h30m or 1d")
        }
        sum += number * factor
    } while !rest.isEmpty
    guard sum <= 1e9 else { throw UsageError("it is too long") }
    return .seconds(sum)
}
