/// A currency that a bitcoin's price can be kept in, by its ISO 4217 code.
package enum Currency: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    case usd = "USD"
    case eur = "EUR"
    case gbp = "GBP"
    case chf = "CHF"
    case cad = "CAD"
    case aud = "AUD"
    case jpy = "JPY"

    package var description: String { rawValue }

    /// What is written before a number, as the Unicode CLDR has it for English; a code is followed by a space.
    package var symbol: String {
        switch self {
        case .usd: "$"
        case .eur: "€"
        case .gbp: "£"
        case .chf: "CHF "
        case .cad: "CA$"
        case .aud: "A$"
        case .jpy: "¥"
        }
    }

    /// The prices that are accepted. Bitcoin passed 1 USD in February 2011; a lower price is another pair's. The highest one is more
    /// than a thousand times the price at the time of writing. The absurd prices that were seen in the wild (850,867,136,053 USD on
    /// 2021-12-14) are higher. A yen is about a hundredth of a dollar.
    package var prices: ClosedRange<Price> { self == .jpy ? 100...10_000_000_000 : 1...100_000_000 }

    /// The prices that are accepted if the currency is not known.
    package static let pricesOfAny = Currency.usd.prices.lowerBound...Currency.jpy.prices.upperBound

    /// The decimal places that people write (ISO 4217, minor unit).
    package var places: Int { self == .jpy ? 0 : 2 }

    /// The value of its smallest coin.
    package var coin: Price { Price(1, scale: places) }

    /// Its pair with bitcoin: `BTC/EUR`.
    package var pair: String { "BTC/\(rawValue)" }
}
