import Glibc

/// Whether a price that no second market confirms is near what the price in another currency and a reference rate imply. It finds
/// inverted pairs, other units and other currencies, which a first price can't be checked for otherwise.
enum PlausibilityRule {
    /// Why a price is not believed; `nil` if it is, or if nothing is known to compare it with.
    static func refusal(of price: MarketObservation, _ book: ObservationBook, _ round: Round) -> String? {
        guard let expected = round.expected, abs(price.log - expected.log) > log(book.currency.fixing.premium) else {
            return nil
        }
        return "\(price.value) \(price.pair) is far from \(expected.text)"
    }
}

/// What a price in another currency and a reference rate imply.
struct ExpectedPrice: Sendable, Hashable {
    /// Its natural logarithm.
    let log: Double
    /// `about 2350000, by BTC/USD and the rate of ecb`
    let text: String

    init(_ other: OtherCurrency, _ rate: ReferenceRate, in currency: Currency) {
        log = other.log + rate.value.logarithm
        let value = Price(Int64(exp(min(log, 40)).rounded()))
        text = "\(value) \(currency), which \(other.currency.pair) and the rate of \(rate.source) imply"
    }
}
