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
