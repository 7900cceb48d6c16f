import Glibc

/// A price that is derived from another currency's.
struct DerivedPrice: Sendable {
    let price: ShownPrice
    let derivation: Derivation
    let standing: Standing
    /// Until when the other currency's price is fresh.
    let freshUntil: BootTime
    /// Whether a market's price is usually shown.
    var isInstead = false
}

/// Derives the price of a currency from another currency's and a reference rate. It is no market's price: it never enters a book.
enum DerivationRule {
    /// For this time after a price of a market, a derived one must be near it, milliseconds.
    static let marketCounts = Duration.seconds(86_400).wholeMilliseconds

    /// - Parameters:
    ///   - other: The state of the other currency.
    ///   - belief: About the markets of the currency itself.
    static func derive(
        _ currency: Currency, from other: PriceState, _ rate: ReferenceRate, _ belief: Belief,
        at now: ObservationTime
    ) throws(DerivationError) -> DerivedPrice {
        let state = other.aged(at: now.boottime)
        let pair = "BTC/\(other.currency)"
        guard state.freshness == .fresh, let quote = state.quote, let observed = state.observedBoottime,
            let freshUntil = state.ticks.freshUntil
        else { throw DerivationError(description: "\(pair): \(state.failure ?? "no price yet")") }
        let value = (quote.value * rate.value).rounded(toPlaces: currency.places)
        guard currency.prices.contains(value) else {
            throw DerivationError(
                description: "\(quote.value) \(pair) at \(rate.value) is not a valid price in \(currency)")
        }
        if let last = belief.reference, now.boottime - last.at <= marketCounts,
            abs(value.logarithm - last.readLog) > log(currency.fixing.premium)
        {
            throw DerivationError(
                description:
                    "\(quote.value) \(pair) at \(rate.value) by \(rate.source) is far from the last price of a market")
        }
        let moves = currency.moves(against: Currency(rawValue: other.currency))
        let age = ReferenceRates.age(of: rate.date, at: now.wall)
        let isOld = age > ReferenceRates.old ? "the reference rate is of \(rate.date.utc.date), \(age) days ago" : nil
        let isNewer = rate.newer.map {
            "the newest reference rate of \(rate.source) is \($0.rounded(toPlaces: 6)), which no second source confirms"
        }
        let warnings = [isOld, isNewer, state.standing.warning].compactMap(\.self)
        let derivation = Derivation(
            value: quote.value, currency: other.currency, rate: rate.value, rateSource: rate.source,
            rateDate: rate.date.utc.date)
        return DerivedPrice(
            price: ShownPrice(
                PriceQuote(
                    value: value, currency: currency.rawValue, timestamp: quote.timestamp, source: quote.source,
                    market: quote.market, via: quote.via),
                observedBoottime: observed, confirmation: .unconfirmed, derivation: derivation),
            derivation: derivation,
            standing: Standing(
                uncertainty: state.standing.uncertainty.map {
                    uncertainty(
                        of: value, moves: moves * Double(max(1, age)).squareRoot(), doubt: rate.doubt, $0,
                        of: quote.value)
                }, warning: warnings.isEmpty ? nil : warnings.joined(separator: "; ")),
            freshUntil: freshUntil)
    }

    /// Both parts as squares: that of the other price, and the moves of the rate since its day. It reaches a newer rate.
    private static func uncertainty(
        of value: Price, moves: Double, doubt: Double, _ other: Uncertainty, of otherValue: Price
    ) -> Uncertainty {
        let own = other.plusMinus.double / otherValue.double
        let share = (own * own + moves * moves).squareRoot() + exp(doubt) - 1
        return Uncertainty(plusMinus: UncertaintyRule.amount(min(share, 100), of: value), markets: other.markets)
    }
}
