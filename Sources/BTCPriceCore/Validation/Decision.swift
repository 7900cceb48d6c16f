/// What the selector decided: the price to show or why there is none, and a verdict on each market. A pure value.
package struct Decision: Sendable {
    /// What the book learns from a decision.
    enum Lesson: Sendable {
        /// A price is the reference price from now on. `agreed` is the place of the other exchanges that agree with it.
        case accepted(MarketObservation, Confirmation, agreed: Double?)
        /// A market's price was outvoted.
        case outvoted(Market, at: BootTime)
        /// A jump waits for confirmation; `nil` if one may not wait.
        case pending(PendingJump?)
        /// Prices of one moment imply the value of USDT.
        case peg([MarketObservation])
    }

    /// The price to show; `nil` if it is withheld.
    package internal(set) var quote: PriceQuote?
    /// When it was observed, on both clocks.
    package internal(set) var observed: ObservationTime
    package internal(set) var confirmation: Confirmation
    package internal(set) var consensus: Consensus?
    package internal(set) var conversion: Conversion?
    /// The sides, if others contradict the price and are not outvoted.
    var split: Split?
    package internal(set) var uncertainty: Uncertainty?
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
    /// What the book learns from it, in this order.
    var lessons: [Lesson] = []

    /// The price that becomes the reference price, as it was read. If one price gave way to another, the last one.
    var accepted: MarketObservation? {
        for case .accepted(let price, _, _) in lessons.reversed() { return price }
        return nil
    }

    mutating func doubt() {
        confirmation = .unconfirmed
        lessons = lessons.map { lesson in
            guard case .accepted(let price, _, _) = lesson else { return lesson }
            return .accepted(price, .unconfirmed, agreed: nil)
        }
    }

    func rejects(_ market: Market) -> Bool { rejected.contains { $0.source == market.venue } }

    init(observed: ObservationTime, confirmation: Confirmation = .single) {
        self.observed = observed
        self.confirmation = confirmation
    }

    /// A decision to show nothing new.
    init(withholding error: PriceLoadingError, of source: String, observed: ObservationTime) {
        self.init(observed: observed)
        withheld = SourceFailure(source: source, error: error)
    }
}

package enum Selection: Sendable {
    case decided(Decision)
    case needs(Need)
}
