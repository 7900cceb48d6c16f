/// What the selector decided: the price to show or why there is none, and a verdict on each market. A pure value.
package struct Decision: Sendable {
    /// The price to show; `nil` if it is withheld.
    package internal(set) var price: ShownPrice?
    package internal(set) var standing = Standing()
    /// When the price was observed, shown or not, on both clocks.
    let observed: ObservationTime
    /// The sides, if others contradict the price and are not outvoted.
    var split: Split?
    /// The minimum time until its source can give another one.
    package internal(set) var pace = Duration.zero
    /// Why the price is withheld; `nil` if it is shown.
    package internal(set) var withheld: SourceFailure?
    /// Whether it is withheld because of a reference rate, of which either may be wrong.
    var contradictsRate = false
    /// Sources whose price is not believed. They get a cooldown.
    package internal(set) var rejected: [SourceFailure] = []
    /// Other sources that were outvoted, unless they were before. They are requested as usual.
    package internal(set) var outvoted: [SourceFailure] = []
    package internal(set) var verdicts: [Market: MarketVerdict] = [:]
    /// The price that is shown, as it was read, or the median.
    private(set) var accepted: MarketObservation?

    package var quote: PriceQuote? { price?.quote }

    func rejects(_ market: Market) -> Bool { rejected.contains { $0.source == market.venue } }

    /// The source of the price if no other one says anything, although others are configured.
    func lone(in round: Round) -> String? {
        guard let accepted, price?.confirmation == .single, round.hasOthers(than: accepted.market) else { return nil }
        return accepted.market.venue
    }

    /// A decision to show a price, which is `read`.
    init(showing price: ShownPrice, _ read: MarketObservation) {
        (self.price, accepted, observed, pace) = (price, read, read.arrival, read.pace)
    }

    /// A decision to show nothing new.
    init(withholding error: PriceLoadingError, of source: String, observed: ObservationTime) {
        self.observed = observed
        withheld = SourceFailure(source: source, error: error)
    }
}

package enum Selection: Sendable {
    /// The decision, and what is believed after it.
    indirect case decided(Decision, Belief)
    case needs(Need)
}

/// What is known of the price if no other market says anything about this moment.
enum Opinion: Sendable {
    /// What another currency's price and a reference rate imply.
    case rate(ExpectedPrice, UsualPlace?)
    /// Where other exchanges agreed last, in the common frame.
    case agreement(Double)

    /// Where the price would be, in the common frame.
    var level: Double {
        switch self {
        case .rate(let expected, let usual): expected.log + (usual?.log ?? 0)
        case .agreement(let log): log
        }
    }

    /// How far the price may be from there.
    func width(for price: MarketObservation) -> Double {
        switch self {
        case .rate(let expected, _): expected.width(for: price)
        case .agreement: 0
        }
    }
}

/// Prices that contradict each other without a majority: nobody knows which is right.
struct Split: Sendable {
    /// The side whose price is shown: the last price of each of its exchanges.
    let shown: [MarketObservation]
    /// The other sides.
    let others: [MarketObservation]
    /// What contradicts the shown side if no market does.
    var opinion: Opinion?
    /// Whether the others' prices are too old to count in a vote.
    var isOld = false

    /// The part that counts at a time; `nil` if a side has no price that is new enough.
    func current(at boottime: BootTime) -> Split? {
        let isNew = { (price: MarketObservation) in boottime - price.at <= Vote.Bounds.memory }
        let current = Split(shown: shown.filter(isNew), others: others.filter(isNew), opinion: opinion, isOld: isOld)
        return current.shown.isEmpty || current.others.isEmpty && opinion == nil ? nil : current
    }

    /// The same for a vote, in which prices that are too old do not count.
    func standing(at boottime: BootTime) -> Split? { isOld ? nil : current(at: boottime) }

    /// `bitstamp and coinbase ($68,850.00) contradict binance ($70,915.00)`; each has its own price if they differ from each other.
    func text(_ currency: Currency) -> String {
        let shown = Self.names(shown, currency)
        return switch opinion {
        case .rate(let expected, let usual): "\(expected.text(usual)) contradict \(shown)"
        case .agreement(let log):
            "\(shown) is far from \(currency.money(currency.price(logarithm: log))), where other exchanges agreed last"
        case nil: "\(Self.names(others, currency)) contradict\(others.count == 1 ? "s" : "") \(shown)"
        }
    }

    private static func names(_ prices: [MarketObservation], _ currency: Currency) -> String {
        let (names, logs) = (prices.map(\.market.venue), prices.map(\.log))
        guard (logs.max() ?? 0) - (logs.min() ?? 0) <= 2 * Vote.Bounds.width else {
            return prices.map { "\($0.market.venue) (\(currency.money($0.value)))" }.listed
        }
        return "\(names.listed) (\(prices.first.map { currency.money($0.value) } ?? ""))"
    }
}
