package import BTCPriceCore

/// Formats what one unit of a currency buys: `1,451 sat per $1`, `9.7 sat per ¥1`. Rounded, for display only.
package struct SatoshiFormatter: PriceFormatter {
    package init() {}

    package func string(from value: Price, currency: String) -> String {
        let symbol = Currency(rawValue: currency)?.symbol ?? "\(currency) "
        return "\(AmountFormatter().string(from: Amount(Self.number(value), .sat))) per \(symbol)1"
    }

    /// The satoshis for one unit, with a decimal place below 100.
    /// - Parameter value: The price of a bitcoin.
    package static func number(_ value: Price) -> Price {
        let whole = Amount.satoshis.divided(by: value, places: 0)
        return whole < 100 ? Amount.satoshis.divided(by: value, places: 1) : whole
    }
}
