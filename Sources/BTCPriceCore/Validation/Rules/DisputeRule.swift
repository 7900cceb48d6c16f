/// Whether as many exchanges contradict a price as agree with it, and what is shown then: the side that was shown last stays.
///
/// No exchange is outvoted because others do not respond at the moment. Once a dispute has begun, each exchange stays on its side until
/// its price changes that, or it has been silent for ``Dispute/remembered``.
enum DisputeRule {
    enum Result {
        /// Fewer contradict the price than agree with it.
        case undisputed
        /// More contradict it than agree with it: these.
        case outvoted([MarketObservation])
        /// As many contradict it as agree with it. This price is shown; `nil` if no exchange of the shown side responds.
        case split(Dispute, shows: MarketObservation?)
    }

    /// - Parameters:
    ///   - price: The price that is judged.
    ///   - witnesses: The prices that it is compared with. Those that neither agree nor contradict say nothing about this moment.
    static func judge(
        _ price: MarketObservation, _ witnesses: [MarketObservation], agreeing: [MarketObservation],
        contradicting: [MarketObservation], _ book: ObservationBook
    ) -> Result {
        let before = book.dispute(at: price.at)
        let mine = ([price] + agreeing).oneOf(\.exchange)
        let theirs = ContradictionRule.camp(contradicting.oneOf(\.exchange), book)
        // In a fast market, one price may lie between the others.
        let isLinked = mine.contains { one in
            theirs.contains { ConfirmationRule.agreement(of: one, with: $0, book) != nil }
        }
        guard !isLinked, before != nil || !theirs.isEmpty else { return .undisputed }
        let isShown = isShown(mine, theirs, before, book)
        var (shown, others) = isShown ? (mine, theirs) : (theirs, mine)
        let heard = [price] + (before == nil ? witnesses : agreeing + contradicting)
        for silent in silent(beside: heard, before, book, at: price.at) {
            switch side(of: silent, before, shown, others, book) {
            case true: shown.append(silent)
            case false: others.append(silent)
            case nil: break
            }
        }
        let (agree, contradict) = isShown ? (shown.count, others) : (others.count, shown)
        // Before a dispute, last prices can make it even, but never outvote.
        let isHeard = before != nil || max(mine.count, theirs.count) >= ContradictionRule.enough
        guard isHeard, contradict.count >= max(agree, ContradictionRule.enough) else { return .undisputed }
        let outvoting = before == nil ? theirs : contradict
        if outvoting.count > agree { return .outvoted(outvoting) }
        let candidates = isShown ? mine : theirs
        let shows = candidates.first { $0.market == book.reference?.market } ?? candidates.first
        return .split(Dispute(shown: shown, others: others), shows: isShown ? price : shows)
    }

    /// Whether a price's side is the one that was shown last: where most of its exchanges were, or the one nearer to the last price.
    private static func isShown(
        _ mine: [MarketObservation], _ theirs: [MarketObservation], _ before: Dispute?, _ book: ObservationBook
    ) -> Bool {
        func votes(_ side: [MarketObservation]) -> Int {
            let members = { (prices: [MarketObservation]?) in
                side.count { one in prices?.contains { $0.exchange == one.exchange } ?? false }
            }
            return members(before?.shown) - members(before?.others)
        }
        let balance = votes(mine) - votes(theirs)
        guard balance == 0, let reference = book.reference, let other = theirs.first else { return balance >= 0 }
        return ScatterRule.nearest(to: reference.log, of: [mine[0], other], book) == mine[0].market
    }

    /// The last prices of the exchanges that are not heard at the moment.
    private static func silent(
        beside heard: [MarketObservation], _ before: Dispute?, _ book: ObservationBook, at boottime: Int64
    ) -> [MarketObservation] {
        let names = Set(heard.map(\.exchange))
        let remembered = (before.map { $0.shown + $0.others } ?? []) + book.newest.values
        return remembered.filter { !names.contains($0.exchange) && boottime - $0.at <= Dispute.remembered }
            .sorted { $0.at > $1.at }.oneOf(\.exchange)
    }

    /// The side of an exchange that is not heard, by its last price: `true` for the shown side, `nil` for none.
    private static func side(
        of silent: MarketObservation, _ before: Dispute?, _ shown: [MarketObservation], _ others: [MarketObservation],
        _ book: ObservationBook
    ) -> Bool? {
        if let before {
            if before.shown.contains(where: { $0.exchange == silent.exchange }) { return true }
            if before.others.contains(where: { $0.exchange == silent.exchange }) { return false }
        }
        let agrees = { (one: MarketObservation) in ConfirmationRule.agreement(of: one, with: silent, book) != nil }
        if others.contains(where: agrees) { return false }
        return shown.contains(where: agrees) ? true : nil
    }
}
