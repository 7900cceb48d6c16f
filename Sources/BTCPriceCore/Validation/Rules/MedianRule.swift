/// Median mode: the median of all markets that gave a price, if there are enough of them.
enum MedianRule {
    static func decide(
        _ first: MarketObservation, _ book: ObservationBook, _ rules: SelectionRules, _ round: Round
    ) -> Decision {
        let requested = round.answered.compactMap { book.newest[$0] }
        let earlier = book.newest.values.filter { other in
            !round.answered.contains(other.market) && PaceRule.supports(other, at: first.at, round.freshFor)
        }
        let all = (requested + earlier.sorted { $0.market.venue < $1.market.venue }).oneOf(\.voter)
        var book = book
        book.impliesPeg(requested)
        // A USDT price is comparable with dollar prices only after conversion to dollars.
        let hasDollars = all.contains { !$0.isInTether }
        let comparable = all.compactMap { price -> (market: Market, value: Price)? in
            guard price.isInTether, hasDollars else { return (price.market, price.value) }
            if PegRule.skipsTether(book, rules, at: price.at) { return nil }
            return PegRule.converted(price, book).map { (price.market, $0.0) }
        }
        let (median, used, spread) = OutlierRule.median(
            of: comparable, isEarlier: { !round.answered.contains($0) })
        var decision: Decision
        if let median, used.count >= rules.quorum, used.count > 1 {
            let peer = all.first { $0.origin != nil && used.contains($0.market) }
            let counted = all.filter { used.contains($0.market) }
            let values = Dictionary(uniqueKeysWithValues: comparable.map { ($0.market, $0.value) })
            if let camps = camps(counted, values, book) {
                decision = disputed(counted, camps, book, rules, round)
            } else {
                decision = shown(median, used, requested, first, via: peer?.market.venue, book, rules)
            }
            // An earlier price may be that of any source.
            let inOrder = round.markets.filter(used.contains)
            decision.consensus = Consensus(
                sources: inOrder.map(\.venue),
                outliers: comparable.map(\.market).filter { !used.contains($0) }.map(\.venue), spread: spread)
        } else if median != nil, used.count >= rules.quorum {
            let price = requested.first { $0.market == used[0] } ?? first
            decision = PrimaryRule.decide(price, book, rules, round)
        } else {
            let said = all.map { "\($0.market.venue) (\($0.value) \($0.pair))" }.joined(separator: ", ")
            decision = Decision(
                withholding: .implausible("\(used.count) of the \(rules.quorum) that have to agree: \(said)"),
                of: Market.medianName, observed: first.arrival)
        }
        for (market, _) in comparable where decision.verdicts[market] == nil {
            decision.verdicts[market] = used.contains(market) ? .used : .outlier
        }
        decision.lessons.insert(.peg(requested), at: 0)
        return decision
    }

    /// The lower and the upper half of the prices, if none of one agrees with one of the other; otherwise `nil`.
    private static func camps(
        _ counted: [MarketObservation], _ values: [Market: Price], _ book: ObservationBook
    ) -> [[MarketObservation]]? {
        guard counted.count.isMultiple(of: 2) else { return nil }
        let sorted = counted.sorted { values[$0.market] ?? $0.value < values[$1.market] ?? $1.value }
        let (lower, upper) = (sorted.prefix(sorted.count / 2), sorted.suffix(sorted.count / 2))
        let agree = lower.contains { price in
            upper.contains { ConfirmationRule.agreement(of: price, with: $0, book) != nil }
        }
        return agree ? nil : [Array(lower), Array(upper)]
    }

    /// The decision on two camps of equal size: the mean of both is the price of neither. Shows the price that is nearest to the last
    /// agreement. A frozen one does not get here.
    private static func disputed(
        _ counted: [MarketObservation], _ camps: [[MarketObservation]], _ book: ObservationBook,
        _ rules: SelectionRules, _ round: Round
    ) -> Decision {
        let last = book.level.log ?? book.reference?.log
        let nearest = last.map { ScatterRule.nearest(to: $0, of: counted, book) } ?? counted[0].market
        let price = counted.first { $0.market == nearest } ?? counted[0]
        let isMine = { (camp: [MarketObservation]) in camp.contains { $0.market == price.market } }
        var decision = PrimaryRule.shown(price, .unconfirmed, level: nil, book, rules, round)
        decision.dispute = Dispute(
            shown: camps.filter(isMine).flatMap(\.self), others: camps.filter { !isMine($0) }.flatMap(\.self))
        return decision
    }

    private static func shown(
        _ median: Price, _ used: [Market], _ requested: [MarketObservation], _ first: MarketObservation,
        via: String?, _ book: ObservationBook, _ rules: SelectionRules
    ) -> Decision {
        let counted = requested.filter { used.contains($0.market) }
        let newest = counted.map(\.arrival).max { $0.boottime < $1.boottime } ?? first.arrival
        let isDollar = counted.contains { !$0.isInTether } || rules.peg == .convert
        let market = isDollar ? .median(of: book.currency) : Market(Market.medianName, first.pair)
        var decision = Decision(observed: newest, confirmation: .confirmed)
        decision.pace = counted.map(\.pace).min() ?? .zero
        decision.lessons = [.accepted(MarketObservation(market, median, arrival: newest), .confirmed, level: nil)]
        decision.quote = PriceQuote(
            value: median, currency: book.currency.rawValue, timestamp: newest.wall, source: Market.medianName,
            market: market.pair, via: via)
        return decision
    }
}
