/// Whether the price in another currency moved as well: the second opinion of a currency with one market.
///
/// Bitcoin's prices in two currencies move together; their quotient is an exchange rate, which moves slowly.
enum ParallelRule {
    /// How far the exchange rate may move, as a natural logarithm. Grows with the square root of time, as a random walk does: 0.6 % at
    /// once, 0.8 % after 10 s, 1 % after a minute. A major rate moves by 0.01 % in a usual minute; the rest is for the two markets.
    /// - Parameter elapsed: The time since the rate was last seen, in milliseconds.
    static func bound(after elapsed: Int64) -> Double {
        0.006 + 0.0005 * (Double(max(0, elapsed)) / 1000).squareRoot()
    }

    /// Whether the other currency's price explains a price that has jumped.
    static func explains(_ price: MarketObservation, _ book: ObservationBook, _ round: Round) -> Bool {
        guard let other = round.other, let known = book.rate, known.currency == other.currency,
            isOfSameMoment(price, other)
        else { return false }
        return abs(price.log - other.log - known.log) <= bound(after: price.at - known.at)
    }

    static func isOfSameMoment(_ price: MarketObservation, _ other: OtherCurrency) -> Bool {
        abs(price.at - other.at) <= ConfirmationRule.sameMoment
    }
}

/// The price of bitcoin in another currency.
struct OtherCurrency: Sendable, Hashable {
    let currency: Currency
    /// The natural logarithm of the price that is shown in that currency.
    let log: Double
    /// When it arrived, `CLOCK_BOOTTIME` in milliseconds.
    let at: Int64
}
