/// Learning from decisions and observations.
extension ObservationBook {
    /// Learns from a decision, and from the other prices of its round.
    package mutating func adopt(_ decision: Decision, in round: Round) {
        for lesson in decision.lessons {
            switch lesson {
            case .accepted(let price, let confirmation, let agreed):
                accept(price, confirmation, agreed: agreed)
                if let other = round.other, abs(price.at - other.at) <= Vote.Bounds.moment {
                    rate = OtherCurrency(currency: other.currency, log: price.log - other.log, at: price.at)
                }
                if let expected = round.expected {
                    offset = expected.offset(of: price, after: offset)
                }
            case .outvoted(let market, let boottime):
                falsetickers.insert(market)
                shiftFrame(by: bases.forget(market))
                contradicted = (market, boottime)
                pending = nil
            case .pending(let jump): pending = jump
            case .peg(let prices): impliesPeg(prices)
            }
        }
        guard decision.quote != nil else {
            split = decision.split ?? split
            return
        }
        split = decision.split
        // A median also includes the earlier prices that support it.
        let from = reference?.market.isMedian == true ? decision.observed.boottime - Vote.Bounds.moment : round.began
        for market in round.markets where !decision.rejects(market) {
            guard let price = newest[market], price.at >= from || round.answered.contains(market) else { continue }
            learn(price)
        }
    }

    /// Learns from an observation that no round requested.
    /// - Returns: Why the source is not believed, if it was outvoted before and is still too far from the shown price.
    package mutating func learn(observed price: MarketObservation) -> SourceFailure? {
        guard !learn(price), falsetickers.contains(price.market), let reference else { return nil }
        return SourceFailure(
            source: price.market.venue,
            error: .implausible("\(describe(price)), which \(reference.market.venue) contradicts"))
    }

    /// Learns where another market's price is, relative to the shown one.
    /// - Returns: Whether it agrees with that price; also if the two can't be compared.
    @discardableResult
    private mutating func learn(_ price: MarketObservation) -> Bool {
        let now = price.at
        // Only prices of the same moment can be compared.
        guard let reference, price.market != reference.market, abs(now - reference.at) <= Vote.Bounds.moment else {
            return true
        }
        guard let near = claims(of: price, at: now).nearest(to: reference.log) else { return true }
        let apart = near.middle - reference.log
        isRestless = abs(apart) > Vote.Bounds.width
        guard abs(apart) <= near.halfWidth + max(Vote.Bounds.width, reference.halfSpread) else { return false }
        falsetickers.remove(price.market)
        if price.exchange != exchange(of: reference.market), !price.isUnconfirmed { agreed = near.middle }
        // A price that has not changed for a while may be about to stop.
        let isMoving = now - min(price.since, reference.since) <= Vote.Bounds.moment
        guard isMoving || bases[price.market] == nil else { return true }
        shiftFrame(by: bases.learn(price.market, apart, beside: reference.market, at: now))
        implyPeg(price)
        return true
    }

    /// Moves what is known of the common frame with the middle of all bases.
    private mutating func shiftFrame(by moved: Double) {
        reference?.log += moved
        agreed = agreed.map { $0 + moved }
        lastMove?.log += moved
    }

    /// Makes a price the reference price.
    private mutating func accept(_ price: MarketObservation, _ confirmation: Confirmation, agreed other: Double?) {
        let now = price.at
        let place = place(of: price, near: other ?? agreed ?? reference?.log)
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
            market: price.market, log: place, at: now, readLog: price.log, halfSpread: price.halfSpread,
            since: price.since)
        if bases[price.market] == nil { bases.known[price.market] = BasisTable.Basis(log: 0, at: now) }
        pending = nil
        isRestored = false
        switch confirmation {
        case .unconfirmed:
            let isLasting = unconfirmedSince.map { now - $0 < Vote.Bounds.memory } ?? false
            if !isLasting { unconfirmedSince = now }
        case .single: unconfirmedSince = nil
        case .confirmed:
            unconfirmedSince = nil
            falsetickers.remove(price.market)
            if price.market.isMedian { agreed = place } else if let other { agreed = other }
        }
    }

    /// Records the value of USDT that prices of one moment imply.
    mutating func impliesPeg(_ prices: [MarketObservation]) {
        for tethered in prices where tethered.isInTether {
            for dollars in prices where !dollars.isInTether {
                peg.imply(dollars.log - tethered.log, by: dollars.market.venue, at: dollars.at)
            }
        }
    }

    private mutating func implyPeg(_ price: MarketObservation) {
        guard let reference, !reference.market.isMedian, let shown = newest[reference.market] else { return }
        impliesPeg([price, shown])
    }
}
