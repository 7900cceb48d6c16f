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

    init(_ other: OtherCurrency, _ rate: ReferenceRate, in currency: Currency, at wall: Timestamp) {
        log = other.log + rate.value.logarithm
        (self.currency, self.other, source) = (currency, other, rate.source)
        age = ReferenceRates.age(of: rate.date, at: wall)
    }

    /// `BTC/USD and the rate of ecb`
    private var names: String { "\(other.currency.pair) and the rate of \(source)" }

    /// `CHF 61,000.00`
    private var money: String { currency.money(currency.price(logarithm: log)) }

    /// `BTC/USD and the rate of ecb (CHF 61,000.00)`
    var text: String { "\(names) (\(money))" }

    /// Why a first price or a jump is not believed; `nil` if it may be.
    func refusal(of price: MarketObservation) -> String? {
        guard abs(price.log - log) > Glibc.log(currency.fixing.premium) else { return nil }
        return "\(price.value) \(price.pair) is far from \(money), which \(names) imply"
    }

    /// Whether a market's price is too far away to be right.
    /// - Parameter offset: How far the market usually is above; `nil` if that is not known.
    func opposes(_ price: MarketObservation, offset: Double?) -> Bool {
        guard let offset, hasVoice(on: price) else { return false }
        let moves = currency.moves(against: other.currency) * Double(max(1, age)).squareRoot()
        return abs(price.log - log - offset) > moves + Bounds.market
    }

    /// Where the market usually is above what is expected, after one more price.
    func offset(of price: MarketObservation, after last: (log: Double, at: BootTime)?) -> (log: Double, at: BootTime)? {
        guard hasVoice(on: price) else { return last }
        let now = price.log - log
        let share = last.map { min(1, Double(max(0, price.at - $0.at)) / Double(Bounds.day)) } ?? 1
        let farthest = Glibc.log(currency.fixing.premium)
        let offset = (last?.log ?? now) + (now - (last?.log ?? now)) * share
        return (min(max(offset, -farthest), farthest), price.at)
    }

    /// An exchange has one vote: its own price in another currency is no second opinion.
    private func hasVoice(on price: MarketObservation) -> Bool {
        !other.isUnconfirmed && other.exchange != price.exchange && age <= Bounds.oldest
            && abs(price.at - other.at) <= Vote.Bounds.memory
    }

    /// The constants of this claim. The move of a rate in a day is measured for each currency; see ``Currency/Fixing``.
    enum Bounds {
        /// How far the markets of one currency differ, as a natural logarithm.
        static let market = 0.01
        /// How slowly it is learned what people pay beside the official rate, milliseconds: a reference rate has a day.
        static let day = Duration.seconds(86_400).wholeMilliseconds
        /// The oldest rate that counts, days: a weekend.
        static let oldest: Int64 = 3
    }
}
