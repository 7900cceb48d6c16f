/// How far a price may move without a second market, and what happens to one that moved farther.
///
/// All moves are differences of natural logarithms. See `docs/validation.md`.
package enum JumpRule {
    /// The largest move that is believed without a second market.
    ///
    /// Grows with the square root of time, as a random walk does: 0.6 % at once, 0.9 % after a second, 2.9 % after a minute, 19 %
    /// after an hour, never more than 25 %.
    /// - Parameter elapsed: The time since the last good quote, in milliseconds; a time below zero counts as zero.
    package static func bound(after elapsed: Int64) -> Double {
        min(0.006 + 0.003 * (Double(max(0, elapsed)) / 1000).squareRoot(), 0.25)
    }

    /// After this time without a price, in milliseconds, the next one is validated like the first one. It is longer for long intervals.
    static let gap = Duration.seconds(60).wholeMilliseconds
    /// If no other market can be requested, a jump is shown as unconfirmed after this number of consecutive ticks with the same price.
    static let ticksToBelieve = 3
    /// The same while a source that has responded to its last request can't be requested yet, because of its limits: it may soon confirm
    /// or contradict the jump.
    static let ticksToBelieveBesideLimits = 12
    /// For this time after a contradiction, in milliseconds, a jump is not believed just because it lasts.
    static let contradictionHolds = Duration.seconds(60).wholeMilliseconds
    /// A jump that no market has confirmed or contradicted for this time, in milliseconds, becomes the level.
    static let unconfirmedLasts = Duration.seconds(600).wholeMilliseconds

    /// Whether a price is too far from the reference price to be believed by itself.
    static func isJump(_ price: MarketObservation, from reference: ReferencePrice, _ book: ObservationBook) -> Bool {
        if ConfirmationRule.isNearAsRead(price, reference.isInTether, reference.readLog, reference.halfSpread) {
            return false
        }
        let place = book.place(of: price, near: book.level.log ?? reference.log)
        return abs(place.log - reference.log) > bound(after: price.at - reference.at) + place.slack
    }

    /// The number of consecutive ticks after which a jump that no other market can confirm is believed.
    static func ticksToBelieve(_ book: ObservationBook, _ round: Round) -> Int {
        let mayRespondSoon = round.limited.contains { source in book.newest.keys.contains { $0.venue == source } }
        return mayRespondSoon ? ticksToBelieveBesideLimits : ticksToBelieve
    }

    /// The jump that includes this price: one more tick of the pending one, or the first tick of a new one.
    /// - Returns: `nil` if a market was contradicted shortly before.
    static func pending(_ price: MarketObservation, _ book: ObservationBook, _ round: Round) -> PendingJump? {
        if wasContradicted(book, at: price.at) { return nil }
        let before = book.pending.flatMap { same -> PendingJump? in
            guard same.market == price.market else { return nil }
            let isNear = abs(price.log - same.log) <= bound(after: price.at - same.at)
            return isNear || goesOn(price, from: same, book, round) ? same : nil
        }
        // The same observation says nothing new.
        let ticks = before.map { $0.at == price.at ? $0.ticks : $0.ticks + 1 } ?? 1
        return PendingJump(market: price.market, log: price.log, at: price.at, ticks: ticks)
    }

    /// Whether a price has moved further in the direction of a jump, while the price in another currency has not moved. A sliding
    /// exchange rate does so for minutes; a bad print comes back.
    private static func goesOn(
        _ price: MarketObservation, from jump: PendingJump, _ book: ObservationBook, _ round: Round
    ) -> Bool {
        guard round.other != nil, let reference = book.reference else { return false }
        return (price.log - jump.log) * (jump.log - reference.readLog) > 0
    }

    static func wasContradicted(_ book: ObservationBook, at boottime: Int64) -> Bool {
        book.contradictedAt.map { boottime - $0 < contradictionHolds } ?? false
    }

    /// Whether the level is one that no market has confirmed.
    static func isUnconfirmed(_ book: ObservationBook, at boottime: Int64) -> Bool {
        book.level.unconfirmedSince.map { boottime - $0 < unconfirmedLasts } ?? false
    }

    /// `65500 BTC/USDT is -4.9 % from the price of 1 s ago`
    static func describe(_ price: MarketObservation, _ book: ObservationBook) -> String {
        let value = "\(price.value) \(price.pair)"
        guard let reference = book.reference else { return "\(value) is the first price" }
        let elapsed = Duration.milliseconds(max(0, price.at - reference.at))
        let moved = book.place(of: price, near: book.level.log ?? reference.log).log - reference.log
        return "\(value) is \(moved.asPercent) from the price of \(elapsed.components.seconds) s ago"
    }
}
