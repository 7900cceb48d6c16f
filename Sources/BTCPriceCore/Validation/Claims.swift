import Glibc

/// What the prices in the book say, by what is believed: intervals for the price of bitcoin.
///
/// Prices are compared in one frame: the natural logarithm of the price, converted to dollars if it is in USDT, less the market's
/// basis. The exact decimal never passes through it.
///
/// A class, because it is large and never changes.
final class Claims: Sendable {
    let book: ObservationBook
    let belief: Belief
    let rules: SelectionRules
    /// The peers' and twins' prices of exchanges whose own price contradicts them. They have no vote while it does.
    let disowned: [MarketObservation]

    init(_ book: ObservationBook, _ belief: Belief, _ rules: SelectionRules) {
        (self.book, self.belief, self.rules) = (book, belief, rules)
        let prices = book.hasSecondHand ? book.last : []
        disowned = prices.filter { price in
            guard price.exchange != price.market.venue,
                let own = prices.first(where: { $0.market.venue == price.exchange }),
                abs(own.at - price.at) <= Vote.Bounds.memory
            else { return false }
            let theirs = belief.levels(of: own, beside: book.stated).map(\.log)
            let distances = belief.levels(of: price, beside: book.stated).flatMap { mine in
                theirs.map { abs($0 - mine.log) }
            }
            let slack = min(Vote.Bounds.slack, Vote.Bounds.drift * (Double(abs(own.at - price.at)) / 1000).squareRoot())
            return distances.allSatisfy { $0 > 2 * Vote.Bounds.width + slack }
        }.sorted { $0.market.venue < $1.market.venue }
    }

    func isDisowned(_ market: Market) -> Bool { disowned.contains { $0.market == market } }

    /// The claims of a price: one, or for a price in USDT one for each possible rate.
    /// - Parameters:
    ///   - isPreferred: Whether it claims to be the present price, however old it is, as the price to show does.
    ///   - opposes: See ``Claim/opposes``.
    func of(
        _ price: MarketObservation, isPreferred: Bool = false, opposes: Bool = true, at now: BootTime
    ) -> [Claim] {
        let isSplit = belief.split?.standing(at: now) != nil
        // Who has contradicted must come nearer than who has not, so that a price at the border does not come and go.
        var halfWidth = max(isSplit ? Vote.Bounds.nearer : Vote.Bounds.width, price.room)
        if isStill(price, at: now) {
            // It says nothing about the present but that it has not changed.
            halfWidth = price.room
        } else if !isPreferred, !isSplit, !belief.falsetickers.contains(price.market) {
            halfWidth += slack(of: price, at: now)
        }
        return levels(of: price).map { level, stater in
            Claim(
                price: price, middle: level, halfWidth: halfWidth, voter: stater ?? price.exchange, opposes: opposes)
        }
    }

    private func slack(of price: MarketObservation, at now: BootTime) -> Double {
        guard let basis = belief.bases[price.market], now - basis.at <= rules.memory else { return Vote.Bounds.slack }
        return min(Vote.Bounds.slack, Vote.Bounds.drift * (Double(max(0, now - price.since)) / 1000).squareRoot())
    }

    /// Whether a market has given the same response for so long that it may have stopped.
    func isStill(_ price: MarketObservation, at now: BootTime) -> Bool { now - price.since > Vote.Bounds.memory }

    /// Whether a price is one of this moment, by its own time or that of the first equal response.
    private func isOfMoment(_ price: MarketObservation, at now: BootTime) -> Bool {
        now - price.since <= Vote.Bounds.moment + 2 * price.pace.wholeMilliseconds
    }

    /// The claims of the other exchanges on a price, one price of each.
    ///
    /// A price counts against another only if it is not older than the price that was shown last, or if its exchange is on a side of the
    /// standing split: otherwise, in a crash, the prices from before it would outvote the first one after it. A price that was outvoted
    /// counts against others only if another exchange agrees with it.
    /// - Parameters:
    ///   - answered: The markets that were requested now.
    ///   - isJump: Whether the price is far from the last one. Then older prices don't support it either.
    func beside(_ price: MarketObservation, answered: [Market], isFirst: Bool, isJump: Bool) -> [Claim] {
        let (now, split) = (price.at, belief.split?.standing(at: price.at))
        // A market that was outvoted must agree exactly before it is believed again.
        let isContested = belief.falsetickers.contains(price.market)
        let sides = split.map { $0.shown + $0.others } ?? []
        let shownAt = isFirst ? .min : belief.reference?.at ?? .min
        var claims: [Claim] = []
        for other in others(than: price.exchange, answered: answered) {
            let isInSplit = sides.contains { $0.exchange == other.exchange } && now - other.at <= Vote.Bounds.memory
            guard isOfMoment(other, at: now) || isInSplit else { continue }
            let opposes = other.at >= shownAt || isInSplit
            guard opposes || !isJump else { continue }
            claims += of(other, isPreferred: isContested, opposes: opposes, at: now)
        }
        let all = of(price, isPreferred: true, at: now) + claims
        return claims.map { [belief] claim in
            var claim = claim
            if belief.falsetickers.contains(claim.price.market),
                !all.contains(where: { $0.price.exchange != claim.price.exchange && $0.agrees(with: claim) })
            {
                claim.opposes = false
            }
            return claim
        }
    }

    /// The newest price of each other exchange. Those that were requested now come first, and among them the one that was shown last.
    private func others(than exchange: String, answered: [Market]) -> [MarketObservation] {
        let shown = belief.reference?.market
        let rank = { (price: MarketObservation) in
            !answered.contains(price.market) ? 0 : price.market == shown ? 2 : 1
        }
        return book.last.filter { $0.exchange != exchange && !isDisowned($0.market) }.sorted { one, other in
            (rank(one), one.at, other.market.venue) > (rank(other), other.at, one.market.venue)
        }.oneOf(\.exchange)
    }

    /// The value that decides if a vote does not: what the shown side of a split said last, what was agreed a moment ago, or what was
    /// shown last. An older agreement says less about this moment than the price of a second ago.
    func last(at now: BootTime, isMedian: Bool = false) -> Double? {
        let sides = isMedian ? nil : belief.split?.standing(at: now)
        let agreed = belief.agreed.flatMap { now - $0.at <= rules.agreementLasts ? $0.log : nil }
        return sides?.shown.map { [self] in level(of: $0, near: belief.reference?.log) }.median ?? agreed
            ?? belief.reference?.log
    }

    /// Whether another exchange has supported a price within ``SelectionRules/memory``, and not only by a rate of USDT that the price's
    /// exchange states.
    func isSupported(_ price: MarketObservation) -> Bool {
        others(to: price).contains { other in
            !other.price.isUnconfirmed && other.agreeing.contains { $0.voter != $1.voter }
        }
    }

    /// The prices of other exchanges since the last one was shown that do not agree with a price, and those of the same exchange that do
    /// not.
    func contradicting(_ price: MarketObservation) -> [MarketObservation] {
        let others = others(to: price).filter {
            $0.agreeing.isEmpty && $0.price.at >= belief.reference?.at ?? .max
        }.map(\.price)
        let ofSame =
            isDisowned(price.market)
            ? book.last.filter { $0.market.venue == price.exchange } : disowned.filter { $0.exchange == price.exchange }
        return (others + ofSame).sorted { $0.market.venue < $1.market.venue }
    }

    /// The prices of other exchanges within ``SelectionRules/memory``, without those that were outvoted, and their claims that agree with
    /// one of `price`.
    private func others(to price: MarketObservation) -> [(price: MarketObservation, agreeing: [(Claim, Claim)])] {
        let mine = of(price, isPreferred: true, at: price.at)
        return book.last.filter { [self] other in
            other.exchange != price.exchange && price.at - other.since <= rules.memory
                && !belief.falsetickers.contains(other.market) && !isDisowned(other.market)
        }.map { [self] other in
            let theirs = of(other, at: price.at)
            return (other, theirs.flatMap { one in mine.filter { $0.agrees(with: one) }.map { ($0, one) } })
        }
    }

    private func levels(of price: MarketObservation) -> [(log: Double, stater: String?)] {
        belief.levels(of: price, beside: book.stated)
    }

    /// See ``Belief/level(of:near:beside:)``.
    func level(of price: MarketObservation, near other: Double?) -> Double {
        belief.level(of: price, near: other, beside: book.stated)
    }

    /// `65500 BTC/USDT is -4.9 % from the price of 1 s ago`
    func describe(_ price: MarketObservation) -> String {
        let value = "\(price.value) \(price.pair)"
        guard let reference = belief.reference else { return "\(value) is the first price" }
        let moved = level(of: price, near: belief.agreed?.log ?? reference.log) - reference.log
        return "\(value) is \(moved.asPercent) from the price of \(max(0, price.at - reference.at) / 1000) s ago"
    }
}

extension Double {
    /// A move as text: `-4.9 %`.
    var asPercent: String {
        // No price is e^30 times another one.
        let tenths = Int64(((exp(Swift.min(self, 30)) - 1) * 1000).rounded())
        return "\(tenths < 0 ? "-" : "+")\(abs(tenths) / 10).\(abs(tenths) % 10) %"
    }
}
