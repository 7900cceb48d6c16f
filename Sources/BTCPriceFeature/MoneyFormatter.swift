package import BTCPriceCore

/// Formats `$68,901.23`, `CHF 55,020.10` and `¥10,345,678` as the C locale does, whatever the reader's locale. Rounds half to even.
package struct MoneyFormatter: PriceFormatter {
    package init() {}

    /// - Parameter currency: ISO 4217 code. An unknown one is written before the number, which has two places.
    package func string(from value: Price, currency: String) -> String {
        if let known = Currency(rawValue: currency) { return known.money(value) }
        return "\(value.isNegative ? "-" : "")\(currency) \(number(value, currency: currency))"
    }

    /// The magnitude of a value without a symbol: `68,901.23`.
    package func number(_ value: Price, currency: String) -> String {
        value.magnitude.grouped(places: Currency(rawValue: currency)?.places ?? 2)
    }
}
