/// Whether a price needs a witness, and whether a witness agrees with it.
///
/// A witness is a price of another market. It counts only if it was observed after the judged move began. Streams may bring a burst of
/// prices in one millisecond: if the price itself is of the millisecond in which the move began, the witness may be, too.
enum ConfirmationRule {
    /// How far two markets may differ and still agree, whatever the size of the move, unless their spreads are wide.
    static let agreement = 0.004
    /// How far a price may move from where another market last agreed with it before one is requested again.
    static let levelWidth = 0.003
    /// If markets are farther apart than this, the market is not calm, and the others are observed more often.
    static let restless = 0.002
    /// Two prices are of the same moment if they are at most this far apart, milliseconds.
    static let sameMoment = Duration.seconds(5).wholeMilliseconds

    /// How much must be known before a price is shown.
    enum Standing: Sendable, Hashable {
        /// There is no recent price to compare it with: it is the first one, or the first one after a gap.
        case first
        /// It is farther from the reference price than ``JumpRule`` allows.
        case jumped
        /// It is within that bound, but no other market has agreed with this level, or with this market since it was rejected.
        case moved
        /// Another market has agreed with this level, and none has contradicted it since.
        case settled
    }

    static func standing(of price: MarketObservation, _ book: ObservationBook) -> Standing {
        guard let reference = book.reference, !book.isRestored, price.at - reference.at <= book.gap else {
            return .first
        }
        if JumpRule.isJump(price, from: reference, book) { return .jumped }
        let isProved = book.bases[price.market] != nil && !book.bases.unproved.contains(price.market)
        return isAtLevel(price, book) && !book.level.isDisputed && book.dispute(at: price.at) == nil && isProved
            ? .settled : .moved
    }

    /// Whether a price is where another market agreed last.
    static func isAtLevel(_ price: MarketObservation, _ book: ObservationBook) -> Bool {
        guard let level = book.level.log else { return false }
        let place = book.place(of: price, near: level)
        return abs(place.log - level) <= levelWidth + place.slack
    }

    /// When the judged move began, `CLOCK_BOOTTIME` in milliseconds; `nil` if there is none.
    static func began(_ standing: Standing, _ book: ObservationBook) -> Int64? {
        switch standing {
        case .settled: nil
        case .moved: book.level.reachedAt ?? book.reference?.at
        case .first, .jumped: book.reference?.at
        }
    }

    /// The other markets' prices of this moment, those of this round first.
    static func witnesses(
        beside price: MarketObservation, _ book: ObservationBook, in round: Round, since began: Int64?
    ) -> [MarketObservation] {
        let requested = round.answered.filter { $0 != price.market }.compactMap { book.newest[$0] }
        guard let began else { return requested }
        let others = book.newest.values.filter { other in
            isAfter(other, began, price) && other.at > price.at - sameMoment && other.market != price.market
                && !round.answered.contains(other.market)
        }
        return requested + others.sorted { $0.market.venue < $1.market.venue }
    }

    private static func isAfter(_ witness: MarketObservation, _ began: Int64, _ price: MarketObservation) -> Bool {
        witness.at > began || (witness.at == began && price.at == began)
    }

    /// Whether a witness was made after the move began, by its venue's own time if it has one.
    static func isOfNow(_ witness: MarketObservation, beside price: MarketObservation, since began: Int64?) -> Bool {
        guard let began else { return true }
        // A price that was not requested now may have arrived before.
        guard isAfter(witness, began, price) else { return false }
        guard let age = witness.age else { return true }
        let slack = max(sameMoment, witness.pace.wholeMilliseconds + 1000)
        return witness.at - age >= began - slack
    }

    /// The place of `witness`, if it agrees with `price`; `nil` if it does not.
    static func agreement(of price: MarketObservation, with witness: MarketObservation, _ book: ObservationBook)
        -> Double?
    {
        // The price in dollars comes first: it determines at which rate the other one counts.
        let theirs = book.place(
            of: witness, near: price.isInTether ? book.level.log : book.place(of: price, near: nil).log)
        let mine = book.place(of: price, near: theirs.log)
        let width = width(price, beside: witness.halfSpread)
        if abs(mine.log - theirs.log) <= width + max(mine.slack, theirs.slack) { return theirs.log }
        return isNearAsRead(price, witness.isInTether, witness.log, witness.halfSpread) ? mine.log : nil
    }

    /// Whether two prices of one currency agree as they were read: then it does not matter where their markets usually are.
    static func isNearAsRead(
        _ price: MarketObservation, _ isInTether: Bool, _ log: Double, _ halfSpread: Double
    ) -> Bool {
        price.isInTether == isInTether && abs(price.log - log) <= width(price, beside: halfSpread)
    }

    /// How far two markets may differ and still agree: ``agreement``, or half of both spreads if that is more. In a thin market, a
    /// trade may be anywhere between bid and ask.
    static func width(_ price: MarketObservation, beside halfSpread: Double) -> Double {
        max(agreement, price.halfSpread + halfSpread)
    }
}
