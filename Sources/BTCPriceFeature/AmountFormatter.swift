public import BTCPriceCore
import FoundationEssentials

/// Amounts as people read them: `0.05 BTC`, `5,000,000 sat`, `$3,445.06`.
public struct AmountFormatter: Sendable {
    /// A formatter.
    public init() {}

    /// The text of an amount. Dollars have cents, but for what is less than one: that is shown to its last digit.
    public func string(from amount: Amount) -> String {
        switch amount.unit {
        case .btc: "\(amount.value) BTC"
        case .sat: "\(grouped(amount.value)) sat"
        case .usd where amount.value < 0.01 && amount.value > 0: "$\(amount.value)"
        case .usd: DollarFormatter().string(from: amount.value, currency: "USD")
        }
    }

    /// With a comma after each thousand.
    private func grouped(_ value: Decimal) -> String {
        let parts = value.description.split(separator: ".")
        let whole = Array(parts[0])
        let text = whole.indices.map { index in
            (index > 0 && (whole.count - index) % 3 == 0 ? "," : "") + String(whole[index])
        }.joined()
        return parts.count == 1 ? text : "\(text).\(parts[1])"
    }
}
