package import BTCPriceCore

/// Formats amounts for people: `0.05 BTC`, `5,000,000 sat`, `$3,445.06`.
package struct AmountFormatter: Sendable {
    package init() {}

    /// The text of an amount. Money is rounded to its smallest coin, except amounts below that.
    package func string(from amount: Amount) -> String {
        switch amount.unit {
        case .btc: "\(amount.value.grouped()) BTC"
        case .sat: "\(amount.value.grouped()) sat"
        case .money(let currency) where amount.value < currency.coin && amount.value > 0:
            "\(currency.symbol)\(amount.value)"
        case .money(let currency): MoneyFormatter().string(from: amount.value, currency: currency.rawValue)
        }
    }
}
