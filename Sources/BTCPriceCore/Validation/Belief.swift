/// What is concluded from the prices of one currency's markets: a pure value.
///
/// ``PriceSelector/select(_:_:_:_:)`` changes it with each decision, and ``learn(_:from:_:)`` with each price that no round requested.
package struct Belief: Sendable {
    /// The price that was shown last.
    private(set) var reference: ReferencePrice?
    /// Whether ``reference`` comes from an earlier run.
    private(set) var isRestored = false
    /// Where other exchanges agreed last, and when; `nil` before the first agreement.
    private(set) var agreed: (log: Double, at: BootTime)?
    /// The markets that were outvoted, until they agree again.
    private(set) var falsetickers: Set<Market> = []
    /// The peers and twins whose price the exchange's own contradicted in the last decision.
    private(set) var disowned: [Market] = []
    /// Prices that contradict each other without a majority.
    private(set) var split: Split?
    /// Whether the last market that was compared with the shown price was too far from it for a calm market.
    private(set) var isRestless = false
    private(set) var pending: PendingJump?
    /// Since when a price has been shown that no other exchange has confirmed.
    private(set) var unconfirmedSince: BootTime?
    /// The market that was outvoted last, and when.
    private(set) var contradicted: (market: Market, at: BootTime)?
    /// The price relative to that in another currency when it was last shown: an exchange rate.
    private(set) var rate: OtherCurrency?
    /// How far the price usually is above what another currency's and a reference rate imply.
    private(set) var usual: UsualPlace?
    /// Whether a price was compared with another exchange's, or with what another currency's price implies.
    private(set) var isCompared = false
    /// The mean square of the moves of the reference price, as natural logarithms, per second.
    private(set) var variance = 0.0
    /// The number of moves in ``variance``.
    private var moves = 0
    /// Where the reference price was when ``variance`` last included a move.
    private var lastMove: (market: Market, log: Double, at: BootTime)?
    private(set) var bases = BasisTable()
    private(set) var peg = PegMonitor()

    package init() {}

    /// A belief that begins with a price.
    /// - Parameters:
    ///   - bases: How far each market usually is from the others.
    ///   - agreed: Whether other exchanges agreed with it.
    init(_ reference: ReferencePrice, bases: BasisTable, agreed: Bool) {
        self.reference = reference
        self.bases = bases
        if agreed { self.agreed = (reference.log, reference.at) }
    }

    // MARK: - The common frame

    /// The possible levels of a price in the common frame, and the exchange on whose word each depends, if it is not its own: a price in
    /// USDT may count at the confirmed rate, or at the one that a USDT/USD market has stated since.
    func levels(of price: MarketObservation, beside stated: StatedRate?) -> [(log: Double, stater: String?)] {
        let log = price.log - (bases[price.market]?.log ?? 0)
        guard price.isInTether else { return [(log, nil)] }
        return peg.logs(beside: stated, at: price.at).map { (log + $0.log, $0.stater) }
    }

    /// The level of a price in the common frame; of several, the one nearest to `other`.
    func level(of price: MarketObservation, near other: Double?, beside stated: StatedRate?) -> Double {
        let levels = levels(of: price, beside: stated).map(\.log)
        guard let other else { return levels[0] }
        return levels.min { abs($0 - other) < abs($1 - other) } ?? price.log
    }

    // MARK: - Decisions

    /// The belief after what a USDT/USD market stated last.
    func taking(_ stated: StatedRate?) -> Belief {
        guard peg.isNew(stated) else { return self }
        var belief = self
        belief.peg.take(stated)
        return belief
    }

    /// Records the value of USDT that prices of one moment imply.
    mutating func imply(_ prices: [MarketObservation], beside stated: StatedRate?) {
        for tethered in prices where tethered.isInTether {
            for dollars in prices where !dollars.isInTether {
                peg.imply(dollars.log - tethered.log, by: dollars.market.venue, beside: stated, at: dollars.at)
            }
        }
    }

    /// Makes a price the reference price.
    /// - Parameters:
    ///   - level: Where it is in the common frame.
    ///   - other: Where the other exchanges are that agree with it; `nil` if none does.
    ///   - isCompared: Whether another exchange has said something about it.
    mutating func accept(
        _ price: MarketObservation, at level: Double, _ confirmation: Confirmation, agreed other: Double?,
        isCompared: Bool, in round: Round
    ) {
        let now = price.at
        move(to: level, price.market, at: now)
        reference = ReferencePrice(
            market: price.market, exchange: price.exchange, log: level, at: now, readLog: price.log,
            room: price.room, since: price.since)
        if bases[price.market] == nil { bases.begin(price.market, at: now) }
        isRestored = false
        if isCompared { self.isCompared = true }
        switch confirmation {
        case .unconfirmed:
            // Each jump begins its own minute.
            let isLasting = pending == nil && unconfirmedSince.map { now - $0 < Vote.Bounds.memory } ?? false
            if !isLasting { unconfirmedSince = now }
        case .single: unconfirmedSince = nil
        case .confirmed:
            unconfirmedSince = nil
            falsetickers.remove(price.market)
            if price.market.isMedian { agreed = (level, now) } else if let other { agreed = (other, now) }
        }
        pending = nil
        if let other = round.other, abs(now - other.at) <= Vote.Bounds.moment {
            rate = OtherCurrency(currency: other.currency, log: price.log - other.log, at: now)
        }
        guard let expected = round.expected else { return }
        if expected.hasVoice(on: price) { self.isCompared = true }
        if confirmation != .unconfirmed { usual = expected.usual(of: price, after: usual) }
    }

    private mutating func move(to level: Double, _ market: Market, at now: BootTime) {
        if let from = lastMove, from.market == market {
            // A stream's changes are more frequent than ticks, and the spread between buyers and sellers is not a move.
            guard now - from.at >= UncertaintyRule.shortestMove else { return }
            let move = level - from.log
            let newest = move * move * 1000 / Double(now - from.at)
            moves += 1
            variance += (newest - variance) * max(UncertaintyRule.newest, 1 / Double(moves))
        }
        lastMove = (market, level, now)
    }

    /// Records that a market's price was outvoted.
    mutating func outvote(_ market: Market, at boottime: BootTime) {
        falsetickers.insert(market)
        shiftFrame(by: bases.forget(market))
        contradicted = (market, boottime)
        pending = nil
    }

    /// Records the peers and twins whose price the exchange's own contradicts.
    mutating func disown(_ markets: [Market]) { disowned = markets }

    /// Records a jump that waits for confirmation; `nil` if one may not wait.
    mutating func wait(for jump: PendingJump?) { pending = jump }

    /// Records which prices contradict each other at the end of a round.
    mutating func end(with split: Split?) { self.split = split }

    // MARK: - Learning

    /// Learns from a price that no round requested.
    /// - Returns: Why the source is not believed, if it was outvoted before and is still too far from the shown price.
    mutating func learn(
        _ price: MarketObservation, from book: ObservationBook, _ rules: SelectionRules
    ) -> SourceFailure? {
        peg.take(book.stated)
        guard !compare(price, book, rules), falsetickers.contains(price.market), let reference else { return nil }
        let what = Claims(book, self, rules).describe(price)
        return SourceFailure(
            source: price.market.venue, error: .implausible("\(what), which \(reference.market.venue) contradicts"))
    }

    /// Learns where another market's price is, relative to the shown one.
    /// - Returns: Whether it agrees with that price; also if the two can't be compared.
    @discardableResult
    mutating func compare(_ price: MarketObservation, _ book: ObservationBook, _ rules: SelectionRules) -> Bool {
        let now = price.at
        // Only prices of the same moment can be compared.
        guard let reference, price.market != reference.market, abs(now - reference.at) <= Vote.Bounds.moment else {
            return true
        }
        guard let near = Claims(book, self, rules).of(price, at: now).nearest(to: reference.log) else { return true }
        let apart = near.middle - reference.log
        isRestless = abs(apart) > Vote.Bounds.width
        guard abs(apart) <= near.halfWidth + max(Vote.Bounds.width, reference.room) else { return false }
        falsetickers.remove(price.market)
        if price.exchange != reference.exchange, !price.isUnconfirmed { agreed = (near.middle, now) }
        // A price that has not changed for a while may be about to stop.
        let isMoving = now - min(price.since, reference.since) <= Vote.Bounds.moment
        guard isMoving || bases[price.market] == nil else { return true }
        shiftFrame(by: bases.learn(price.market, apart, beside: reference.market, at: now))
        if !reference.market.isMedian, let shown = book.newest(reference.market) {
            imply([price, shown], beside: book.stated)
        }
        return true
    }

    /// Moves what is known of the common frame with the middle of all bases.
    private mutating func shiftFrame(by moved: Double) {
        reference?.log += moved
        agreed?.log += moved
        lastMove?.log += moved
    }

    // MARK: - Reloads and restarts

    /// Forgets all markets but these. The reference price and its basis stay.
    /// - Parameter moved: Those of them that have another address now.
    mutating func keep(only markets: Set<Market>, moved: [Market]) {
        let known = markets.subtracting(moved)
        bases.keep(only: known.union([reference?.market].compactMap(\.self)))
        falsetickers.formIntersection(known)
    }

    /// What to store with a quote that was observed at `boottime`.
    func learned(at boottime: BootTime) -> [LearnedBasis] { bases.learned(at: boottime) }

    /// Continues from the last price of an earlier run.
    /// - Parameters:
    ///   - reference: That price as it was read, before its basis is taken from its level; `nil` if it is no market's.
    ///   - learned: How far each market usually was from the others.
    ///   - boottime: When the quote was observed that it was stored with.
    mutating func restore(_ reference: ReferencePrice?, _ learned: [LearnedBasis], at boottime: BootTime, now: BootTime)
    {
        bases.restore(learned, at: boottime, now: now)
        guard var reference else { return }
        if bases[reference.market] == nil { bases.begin(reference.market, at: boottime) }
        reference.log -= bases[reference.market]?.log ?? 0
        self.reference = reference
        isRestored = true
    }
}

/// The price that was shown last, to compare the next one with.
struct ReferencePrice: Sendable {
    let market: Market
    /// The exchange whose price it is; see ``MarketObservation/exchange``.
    let exchange: String
    /// Its level in the common frame; see ``Belief/level(of:near:beside:)``.
    var log: Double
    /// When it arrived.
    let at: BootTime
    /// The natural logarithm of the price as it was read.
    let readLog: Double
    /// See ``MarketObservation/room``.
    var room = 0.0
    let since: BootTime
}

/// A jump that no other market has confirmed or contradicted yet.
struct PendingJump: Sendable, Hashable {
    let market: Market
    let log: Double
    let at: BootTime
    /// The number of consecutive ticks with the same price.
    let ticks: Int
}
