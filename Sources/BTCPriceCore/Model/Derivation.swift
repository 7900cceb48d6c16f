/// What a derived price is made of: the price of a bitcoin in another currency, and a reference rate.
package struct Derivation: Sendable, Hashable {
    /// The price in the other currency.
    package var value: Price
    /// The other currency, ISO 4217.
    package var currency: String
    /// How much of the price's currency buys one of the other one.
    package var rate: Price
    /// Who published the rate: `ecb`.
    package var rateSource: String
    /// The day of the rate: `2026-11-20`.
    package var rateDate: String

    package init(value: Price, currency: String, rate: Price, rateSource: String, rateDate: String) {
        self.value = value
        self.currency = currency
        self.rate = rate
        self.rateSource = rateSource
        self.rateDate = rateDate
    }
}

/// When the price of a currency is derived from another currency's.
package enum DerivationPolicy: String, Sendable, Hashable, CaseIterable {
    /// Not at all.
    case never
    /// While its sources have no price.
    case fallback
    /// Always; it has no sources.
    case always
}

/// Why there is no derived price, or no reference rate, in one line.
package struct DerivationError: Error, Sendable, Hashable, CustomStringConvertible {
    package let description: String
}
