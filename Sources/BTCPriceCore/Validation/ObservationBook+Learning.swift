/// Learning from decisions and observations.
extension ObservationBook {
    /// Learns from a decision, and from the other prices of its round.
    /// - Returns: The stale feeds that were found.
    package mutating func adopt(_ decision: Decision, in round: Round) -> [SourceFailure] {
        var shown: Market?
        for lesson in decision.lessons {
            switch lesson {
            case .accepted(let price, let confirmation, let level):
                shown = price.market
                if staleFeeds.wantsWitness(on: price) { staleFeeds.looked(at: price.at) }
                accept(price, confirmation, level: level)
                if let other = round.other, ParallelRule.isOfSameMoment(price, other) {
                    rate = OtherCurrency(currency: other.currency, log: price.log - other.log, at: price.at)
                }
            case .contradicted(let market, let count, let boottime):
                if count >= ContradictionRule.enough { bases.suspect(market) }
                contradictedAt = boottime
                pending = nil
            case .pending(let jump): pending = jump
            case .peg(let prices): impliesPeg(prices)
            }
        }
        let isMedian = shown?.isMedian == true
        // A median also includes the earlier prices that support it.
        let from = isMedian ? decision.observed.boottime - ConfirmationRule.sameMoment : round.began
        let others = round.markets.filter { market in
            market != shown && market.venue != decision.withheld?.source && !decision.rejects(market)
        }.compactMap { newest[$0] }.filter { $0.at >= from || round.answered.contains($0.market) }
        for price in others { learn(price) }
        guard shown != nil else { return [] }
        if decision.dispute != nil || decision.confirmation == .confirmed { level.dispute = decision.dispute }
        // Another market has just confirmed the price. One that did not is checked again when the observer next sees it.
        if decision.confirmation == .confirmed, !isMedian { level.isDisputed = false }
        return others.isEmpty ? [] : staleFeedsFound()
    }

    /// Learns from an observation that no round requested.
    /// - Returns: The sources that are not believed from now on; and the source whose price does not agree with the shown one, while
    ///   it is undecided which of the two is wrong.
    package mutating func learn(observed price: MarketObservation) -> (
        rejected: [SourceFailure], doubted: SourceFailure?
    ) {
        let source = price.market.venue
        if !learn(price) {
            let shown = reference.flatMap { newest[$0.market] }.map { [$0] } ?? []
            let reason = ContradictionRule.describe(price, by: shown, self)
            let failure = SourceFailure(source: source, error: .implausible(reason))
            // It was found before, and still gives such a price: the ticks need not find it again.
            return bases.suspects.contains(price.market) ? ([failure], nil) : ([], failure)
        }
        let stale = staleFeedsFound()
        if !stale.isEmpty { return (stale, nil) }
        if let (market, reason) = bases.stray(at: price.at, exchange: exchange(of:)) {
            bases.forget(market)
            return ([SourceFailure(source: market.venue, error: .implausible(reason))], nil)
        }
        return ([], nil)
    }

    /// Learns where another market's price is, relative to the shown one.
    /// - Returns: Whether it is in line with that price; also if the two can't be compared.
    @discardableResult
    private mutating func learn(_ price: MarketObservation) -> Bool {
        let (market, now) = (price.market, price.at)
        let isCurrent = staleFeeds.isCurrent(price)
        // A median requests all markets at every tick, so none of them has been away by itself.
        if reference?.market.isMedian == true { staleFeeds.saw(price) } else { staleFeeds.sawAnother(price) }
        // Only prices of the same moment can be compared.
        guard let reference, market != reference.market, abs(now - reference.at) <= ConfirmationRule.sameMoment else {
            return true
        }
        let place = place(of: price, near: reference.log)
        let apart = place.log - reference.log
        isRestless = abs(apart) > ConfirmationRule.restless
        let unchanged = staleFeeds.unchanged(reference.market)
        if bases[market] != nil {
            if unchanged >= StaleFeeds.Bounds.suspicious {
                let others = bases.known.keys.count {
                    $0 != reference.market && !$0.isMedian && staleFeeds.hasResponded($0, by: now)
                }
                staleFeeds.other(market, moved: apart, of: others, beside: reference.market, at: now)
            }
            // A market whose feed is stale does not drift away: the others do.
            if unchanged < StaleFeeds.Bounds.pause, staleFeeds.suspects(market) {
                if abs(apart) >= StaleFeeds.Bounds.move {
                    staleFeeds.isStale(market, beside: [reference.market.venue])
                }
                return true
            }
        }
        let isNear =
            abs(apart) <= ConfirmationRule.width(price, beside: reference.halfSpread) + place.slack
            || ConfirmationRule.isNearAsRead(price, reference.isInTether, reference.readLog, reference.halfSpread)
        guard isNear || bases.isOddForLong(market, apart, at: now) else {
            // The next tick requests others to find out which of the two is wrong.
            if isCurrent, !bases.suspects.contains(market) { level.isDisputed = true }
            return false
        }
        if isNear, isCurrent, price.exchange != exchange(of: reference.market) { level.agreed(on: place.log) }
        // Nothing is learned from a comparison with a price that has not changed for a while: its feed may be about to become stale.
        if unchanged >= StaleFeeds.Bounds.pause, bases[market] != nil { return true }
        bases.learn(market, apart, isNear: isNear, at: now)
        implyPeg(price, beside: reference)
        return true
    }

    /// Makes a price the reference price.
    private mutating func accept(_ price: MarketObservation, _ confirmation: Confirmation, level agreed: Double?) {
        let now = price.at
        var place = place(of: price, near: agreed ?? level.log ?? reference?.log).log
        var basis = bases[price.market]?.log ?? 0
        if let reference, reference.market != price.market, abs(now - reference.at) <= ConfirmationRule.sameMoment {
            implyPeg(price, beside: reference)
            // The shown source has just changed. An ordinary difference comes from its old basis, not from the market.
            let isOld = bases[price.market].map { now - $0.at > 10 * (now - reference.at) } ?? false
            if confirmation == .single, isOld {
                let moved = bases.bounded(basis + place - reference.log)
                place += basis - moved
                basis = moved
            }
        }
        if let from = lastMove, from.market == price.market {
            // A stream's changes are more frequent than ticks, and the spread between buyers and sellers is not a move.
            if now - from.at >= UncertaintyRule.shortestMove {
                let move = place - from.log
                let newest = move * move * 1000 / Double(now - from.at)
                variance += (newest - variance) * UncertaintyRule.newest
                lastMove = (price.market, place, now)
            }
        } else {
            lastMove = (price.market, place, now)
        }
        reference = ReferencePrice(
            market: price.market, log: place, at: now, readLog: price.log, isInTether: price.isInTether,
            halfSpread: price.halfSpread)
        bases.accepted(price.market, confirmation, log: basis, at: now)
        pending = nil
        isRestored = false
        switch confirmation {
        case .unconfirmed:
            level.unconfirmedSince = JumpRule.isUnconfirmed(self, at: now) ? level.unconfirmedSince : now
        case .single: level.unconfirmedSince = nil
        case .confirmed: level.agreed(on: agreed ?? place)
        }
        if !level.isDisputed, ConfirmationRule.isAtLevel(price, self) { level.reachedAt = now }
        staleFeeds.saw(price)
    }

    private mutating func staleFeedsFound() -> [SourceFailure] {
        staleFeeds.takeFindings().map { found in
            let others = found.others.joined(separator: " and ")
            let reason = "it stands still at \(found.value) for \(found.unchanged / 1000) s, while \(others) moved"
            return SourceFailure(source: found.market.venue, error: .staleData(reason))
        }
    }

    // MARK: - The value of USDT

    /// Records the value of USDT that prices of one moment imply.
    mutating func impliesPeg(_ prices: [MarketObservation]) {
        for tethered in prices where tethered.isInTether {
            for dollars in prices where !dollars.isInTether {
                peg.imply(dollars.log - tethered.log, by: dollars.market.venue, at: dollars.at)
            }
        }
    }

    private mutating func implyPeg(_ price: MarketObservation, beside reference: ReferencePrice) {
        guard reference.isInTether != price.isInTether, !reference.market.isMedian, !price.market.isMedian else {
            return
        }
        let isTethered = price.isInTether
        peg.imply(
            isTethered ? reference.readLog - price.log : price.log - reference.readLog,
            by: isTethered ? reference.market.venue : price.market.venue, at: price.at)
    }
}
