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
