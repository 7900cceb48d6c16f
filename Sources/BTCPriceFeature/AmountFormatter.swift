package import BTCPriceCore

/// Formats amounts for people: `0.05 BTC`, `5,000,000 sat`, `$3,445.06`.
package struct AmountFormatter: Sendable {
    package init() {}

    /// The text of an amount. Money is rounded to its smallest coin, except amounts below that.
    package func string(from amount: Amount) -> String {
        switch amount.unit {
        case .btc: "\(grouped(amount.value)) BTC"
        case .sat: "\(grouped(amount.value)) sat"
        case .money(let currency) where amount.value < currency.coin && amount.value > 0:
            "\(currency.symbol)\(amount.value)"
        case .money(let currency): MoneyFormatter().string(from: amount.value, currency: currency.rawValue)
        }
    }

    /// The number with commas between groups of three digits in the whole part.
    private func grouped(_ value: Price) -> String {
        let digits = Array(value.description.utf8)
        let whole = digits.firstIndex(of: UInt8(ascii: ".")) ?? digits.count
        var bytes: [UInt8] = []
        bytes.appendGrouped(digits[..<whole])
        return String(decoding: bytes + digits[whole...], as: UTF8.self)
    }
}
