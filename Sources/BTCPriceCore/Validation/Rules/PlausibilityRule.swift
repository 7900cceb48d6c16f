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
    private let currency, other: Currency
    private let source: String

    init(_ other: OtherCurrency, _ rate: ReferenceRate, in currency: Currency) {
        log = other.log + rate.value.logarithm
        (self.currency, self.other, source) = (currency, other.currency, rate.source)
    }

    /// `2343000 CZK, which BTC/USD and the rate of ecb imply`
    var text: String {
        let value = Price(Int64(exp(min(log, 40)).rounded()))
        return "\(value) \(currency), which \(other.pair) and the rate of \(source) imply"
    }
}
