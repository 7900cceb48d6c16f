import Glibc

/// The price of bitcoin in another currency.
struct OtherCurrency: Sendable, Hashable {
    let currency: Currency
    /// The natural logarithm of the price that is shown in that currency.
    let log: Double
    /// When it arrived.
    let at: BootTime
    /// The exchange whose price it is; `nil` for a median.
    var exchange: String?
    var isUnconfirmed = false
    var isFresh = true
}

/// What the price in another currency and a reference rate imply: one more, wide claim, which can oppose a lone market but never confirm
/// it. It also finds inverted pairs, other units and other currencies.
struct ExpectedPrice: Sendable, Hashable {
    /// Its natural logarithm.
    let log: Double
    private let currency: Currency
    private let other: OtherCurrency
    private let source: String
    /// The age of the rate in whole days.
    private let age: Int64
    /// How far a newer rate is away that is not believed yet.
    private let doubt: Double

    init(_ other: OtherCurrency, _ rate: ReferenceRate, in currency: Currency, at wall: Timestamp) {
        log = other.log + rate.value.logarithm
        (self.currency, self.other, source) = (currency, other, rate.source)
        age = ReferenceRates.age(of: rate.date, at: wall)
        doubt = rate.doubt
    }

    /// `BTC/USD and the rate of ecb`
    private var names: String { "\(other.currency.pair) and the rate of \(source)" }

    /// `CHF 61,000.00`
    private func money(above usual: UsualPlace?) -> String {
        currency.money(currency.price(logarithm: log + (usual?.log ?? 0)))
    }

    /// What was compared: `BTC/USD and the rate of ecb (CHF 61,000.00)`
    func text(_ usual: UsualPlace?) -> String { "\(names) (\(money(above: usual)))" }

    /// Why a first price or a jump is not believed; `nil` if it may be.
    func refusal(of price: MarketObservation) -> String? {
        guard abs(price.log - log) > Glibc.log(currency.fixing.premium) else { return nil }
        return "\(price.value) \(price.pair) is far from \(money(above: nil)), which \(names) imply"
    }

    /// What contradicts a market's price; `nil` if nothing does.
    /// - Parameter usual: How far the market usually is above; `nil` if that is not known.
    func opinion(on price: MarketObservation, usual: UsualPlace?) -> Opinion? {
        guard hasVoice(on: price) else { return nil }
        // Where people usually pay is not known yet: within the currency's bound it may be anywhere.
        let farthest = usual == nil ? max(currency.fixing.bound, width(for: price)) : width(for: price)
        return abs(price.log - log - (usual?.log ?? 0)) > farthest ? .rate(self, usual) : nil
    }

    /// How far a price may be from what is implied: the move of the rate since its day, how far markets differ, and how far the other
    /// price may have moved since.
    func width(for price: MarketObservation) -> Double {
        let seconds = Double(max(0, price.at - other.at - Vote.Bounds.moment)) / 1000
        return currency.moves(against: other.currency) * Double(max(1, age)).squareRoot() + Bounds.market
            + Vote.Bounds.drift * seconds.squareRoot() + doubt
    }

    /// Where the market usually is above what is expected, after one more price that is not in doubt.
    func usual(of price: MarketObservation, after last: UsualPlace?) -> UsualPlace? {
        guard hasVoice(on: price) else { return last }
        let (now, bound) = (price.log - log, currency.fixing.bound)
        let inBound = { (log: Double) in min(max(log, -bound), bound) }
        guard let last else { return UsualPlace(log: inBound(now), since: price.at, at: price.at) }
        let (elapsed, known) = (Double(max(0, price.at - last.at)), Double(max(0, price.at - last.since)))
        // The mean of the first hour, and then of the last day.
        let share = known < Bounds.hour ? elapsed / max(1, known + elapsed) : min(1, elapsed / Bounds.day)
        return UsualPlace(log: inBound(last.log + (now - last.log) * share), since: last.since, at: price.at)
    }

    /// An exchange has one vote: its own price in another currency is no second opinion.
    func hasVoice(on price: MarketObservation) -> Bool {
        !other.isUnconfirmed && other.exchange != price.exchange && age <= ReferenceRates.oldest
            && abs(price.at - other.at) <= Self.lasts
    }

    /// How long the other price says something about this one, milliseconds.
    static let lasts = Duration.seconds(600).wholeMilliseconds

    /// The constants of this claim. The move of a rate in a day is measured for each currency; see ``Currency/Fixing``.
    enum Bounds {
        /// How far the markets of one currency differ, as a natural logarithm.
        static let market = 0.01
        /// How slowly it is learned what people pay beside the official rate, milliseconds: a reference rate has a day.
        static let (hour, day) = (3_600_000.0, 86_400_000.0)
    }
}

/// How far a market usually is above what another currency's price and a reference rate imply: what people pay beside the official rate.
struct UsualPlace: Sendable, Hashable {
    /// The distance, as a natural logarithm.
    let log: Double
    /// When it was learned first.
    let since: BootTime
    /// When it was learned last.
    let at: BootTime
}
