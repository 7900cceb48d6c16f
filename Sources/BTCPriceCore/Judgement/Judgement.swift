import Glibc

/// Decides whether a price is shown, by what all sources have said so far: a pure value.
///
/// Prices are compared in one frame: the natural logarithm of the price, converted to dollars if it is in USDT, less the source's *premium*,
/// which is how far its market usually lies above the others. A quote's exact decimal never passes through.
///
/// Two levels are held. The *index* is where the price was that was shown last. The *level* is where another market was when it last agreed with
/// the price that was shown. A price that has moved away from the level needs a witness in the same tick, however slowly it moved.
struct Judgement: Sendable {
    /// What is to be done with a price.
    enum Verdict: Sendable, Hashable {
        /// It is shown. `level` is what the market said that agrees with it.
        case believed(Confirmation, level: Double? = nil)
        /// Other markets say otherwise: it is not shown. `by` counts them.
        case contradicted(String, by: Int)
        /// No two markets agree. This one is nearest to the median of all.
        case scattered(nearest: String)
        /// It has jumped, and no other source has an answer.
        case undecided(String)
    }

    /// How much must be known before a price is shown.
    enum Standing: Sendable, Hashable {
        /// There is no recent price to compare it with: the first one, or the first one after a gap.
        case first
        /// It is farther from the last price than the bound allows.
        case jumped
        /// It is within the bound, but no other market has agreed with this level.
        case moved
        /// Another market has agreed with this level, and none has said otherwise since.
        case settled
    }

    /// How far a market usually lies above the others.
    struct Premium: Sendable {
        var log: Double
        var at: Int64
    }

    /// The price that was shown last.
    struct Index: Sendable {
        var source: String
        /// In the common frame.
        var log: Double
        var at: Int64
        /// The price as it was read, with its currency.
        var read: (log: Double, isInTether: Bool)
    }

    struct Pending: Sendable {
        var source: String
        var log: Double
        var at: Int64
        var ticks: Int
    }

    var index: Index?
    /// Where another market was when it last agreed.
    var level: Double?
    /// Whether a market has left the price that is shown since one last agreed with it.
    var isDisputed = false
    /// When the price that was shown was at the level last, `CLOCK_BOOTTIME` in milliseconds.
    private var settledAt: Int64?
    /// The last answer of each source, whoever asked for it.
    var latest: [String: FetchedPrice] = [:]
    /// Whether the index comes from an earlier run.
    private var isRestored = false
    /// After so long without a price the next one is like the first one, milliseconds.
    var gap = JudgementBounds.gap
    /// By source.
    var premiums: [String: Premium] = [:]
    /// Sources that lie too far from where they were expected, and since when.
    var odd: [String: (log: Double, since: Int64)] = [:]
    /// Sources that were not believed, until they are in line again.
    var suspects: Set<String> = []
    var pending: Pending?
    private var contradictedAt: Int64?
    var unconfirmedSince: Int64?
    var standstill = Standstill()
    var tether = TetherMeasurement()

    /// Goes on from a price that an earlier run kept.
    /// - Parameter boottime: When it was observed; of an earlier boot, below zero.
    mutating func restored(_ quote: PriceQuote, at boottime: Int64) {
        let log = quote.value.logarithm
        index = Index(source: quote.source, log: log, at: boottime, read: (log, quote.isInTether))
        premiums[quote.source] = Premium(log: 0, at: boottime)
        isRestored = true
    }

    // MARK: - Judging

    /// How much must be known before `price` is shown.
    func standing(of price: FetchedPrice) -> Standing {
        let now = price.observed.boottime
        guard let index, !isRestored, now - index.at <= gap else { return .first }
        let place = place(of: price, near: level ?? index.log)
        guard abs(place.log - index.log) <= JudgementBounds.move(after: now - index.at) + place.slack else {
            return .jumped
        }
        return isAtLevel(price) && !isDisputed && premiums[price.quote.source] != nil ? .settled : .moved
    }

    /// Whether `price` is where another market agreed last.
    private func isAtLevel(_ price: FetchedPrice) -> Bool {
        guard let level else { return false }
        let place = place(of: price, near: level)
        return abs(place.log - level) <= JudgementBounds.level + place.slack
    }

    /// Judges `price` by itself and by what other sources said in the same fetch.
    func verdict(on price: FetchedPrice, witnesses: [FetchedPrice]) -> Verdict {
        let standing = standing(of: price)
        let calm = Verdict.believed(isUnconfirmed(at: price.observed.boottime) ? .unconfirmed : .single)
        if standing == .settled, witnesses.isEmpty { return calm }
        var contradicting: [FetchedPrice] = []
        var vague: Double?
        let began = began(standing)
        for witness in witnesses + recent(beside: price, since: began, besides: witnesses)
        where standstill.isCurrent(witness) && isOfNow(witness, since: began) {
            guard let level = agreement(of: price, with: witness) else {
                contradicting.append(witness)
                continue
            }
            // One of which it is not known where it lies counts only if nobody says otherwise.
            if premiums[witness.quote.source] != nil { return .believed(.confirmed, level: level) }
            vague = vague ?? level
        }
        if let vague, contradicting.isEmpty { return .believed(.confirmed, level: vague) }
        // A suspect alone says nothing; two that agree do.
        if !hasPair(contradicting) { contradicting.removeAll { suspects.contains($0.quote.source) } }
        switch contradicting.count {
        case 0:
            switch standing {
            case .settled, .moved: return calm
            // Not what was contradicted a moment ago, only because the others are silent now.
            case .first where !wasContradicted(at: price.observed.boottime): return .believed(.unconfirmed)
            case .first, .jumped: return .undecided("\(describe(price)), and no second source could confirm it")
            }
        case 1:
            // One against one: after a gap the one nearer to the last price is shown, else the one that has not moved is right.
            if standing == .first, let index {
                return .scattered(nearest: nearest(to: index.log, of: [price, contradicting[0]]))
            }
            if standing != .first, isAtLevel(price) { return calm }
            // It came while the price was fetched: the next tick asks.
            if standing == .moved, witnesses.isEmpty { return calm }
            let theirs = self.standing(of: contradicting[0])
            if theirs == .jumped {
                return standing == .moved
                    ? calm : .undecided("\(describe(price)), and no second source could confirm it")
            }
        default:
            guard hasPair(contradicting) else { return .scattered(nearest: nearestToMedian([price] + contradicting)) }
        }
        let others = contradicting.map { "\($0.quote.source) (\($0.quote.value))" }.joined(separator: " and ")
        return .contradicted(
            "\(describe(price)), which \(others) contradict\(contradicting.count == 1 ? "s" : "")",
            by: contradicting.count)
    }

    /// Answers that other sources gave shortly before, but after `price` began to move: they count like those of the same fetch.
    private func recent(
        beside price: FetchedPrice, since began: Int64?, besides witnesses: [FetchedPrice]
    ) -> [FetchedPrice] {
        guard let began else { return [] }
        let from = max(began, price.observed.boottime - JudgementBounds.sideBySide)
        let known = Set(witnesses.map(\.quote.source) + [price.quote.source])
        return latest.values.filter { $0.observed.boottime > from && !known.contains($0.quote.source) }
            .sorted { $0.quote.source < $1.quote.source }
    }

    /// When the price began to move that is judged; `nil` if it has not, or if there is none to compare it with.
    private func began(_ standing: Standing) -> Int64? {
        switch standing {
        case .settled: nil
        case .moved: settledAt ?? index?.at
        case .first, .jumped: index?.at
        }
    }

    /// Whether a witness speaks of the time since `began`, by its venue's own time.
    private func isOfNow(_ witness: FetchedPrice, since began: Int64?) -> Bool {
        guard let began, let age = witness.age else { return true }
        let slack = max(JudgementBounds.sideBySide, witness.pace.wholeMilliseconds + 1000)
        return witness.observed.boottime - age >= began - slack
    }

    /// A source has answered.
    mutating func saw(_ price: FetchedPrice) { latest[price.quote.source] = price }

    /// A source gave no answer: what it said before does not stand for it any more.
    mutating func failed(_ source: String) { latest[source] = nil }

    /// Whether another source should be asked before `price` is judged.
    func needsWitness(for price: FetchedPrice, besides witnesses: [FetchedPrice]) -> Bool {
        let isSettled = standing(of: price) == .settled
        if isSettled, witnesses.isEmpty { return false }
        return switch verdict(on: price, witnesses: witnesses) {
        case .believed(.confirmed, _): false
        case .believed: !isSettled
        // One may be slow to follow the market; two that agree are enough.
        case .contradicted(_, let count): count < 2
        case .scattered, .undecided: true
        }
    }

    /// Whether the worth of USDT should be asked for before a USDT price is rejected.
    func needsTetherRate(for price: FetchedPrice, besides witnesses: [FetchedPrice]) -> Bool {
        guard !witnesses.isEmpty, price.quote.isInTether, case .contradicted = verdict(on: price, witnesses: witnesses)
        else {
            return false
        }
        // One from before the price began to move says nothing of now.
        return !tether.isTold(after: settledAt ?? index?.at ?? .min)
    }

    /// The same for one that the observer has seen.
    func needsTetherRate(forObserved price: FetchedPrice) -> Bool {
        guard price.quote.isInTether, let index else { return false }
        let place = place(of: price, near: index.log)
        return abs(place.log - index.log) > JudgementBounds.agreement + place.slack
            && !tether.isTold(after: price.observed.boottime - JudgementBounds.sideBySide)
    }

    /// Nobody could be asked about `price`: whether it is believed because it stays where it is.
    /// - Returns: How many ticks in a row have said the same, this one included; `nil` if a source was contradicted a short time
    ///   ago.
    mutating func persists(_ price: FetchedPrice) -> Int? {
        let (now, log) = (price.observed.boottime, price.quote.value.logarithm)
        if wasContradicted(at: now) {
            pending = nil
            return nil
        }
        if let same = pending, same.source == price.quote.source,
            abs(log - same.log) <= JudgementBounds.move(after: now - same.at)
        {
            pending = Pending(source: same.source, log: log, at: now, ticks: same.ticks + 1)
        } else {
            pending = Pending(source: price.quote.source, log: log, at: now, ticks: 1)
        }
        return pending?.ticks
    }

    private func wasContradicted(at boottime: Int64) -> Bool {
        contradictedAt.map { boottime - $0 < JudgementBounds.contradictionHolds } ?? false
    }

    /// A source's price was contradicted, by so many others: it takes two to make it a suspect.
    mutating func contradicted(_ source: String, by count: Int, at boottime: Int64) {
        if count > 1 { suspects.insert(source) }
        contradictedAt = boottime
        pending = nil
    }

    /// `price` is shown from now on.
    /// - Parameter level: What the market said that agrees with it.
    mutating func accepted(_ price: FetchedPrice, as confirmation: Confirmation, level agreed: Double? = nil) {
        let (quote, now) = (price.quote, price.observed.boottime)
        var place = place(of: price, near: agreed ?? level ?? index?.log).log
        let raw = quote.value.logarithm
        var premium = premiums[quote.source]?.log ?? 0
        if let index, index.source != quote.source, abs(now - index.at) <= JudgementBounds.sideBySide {
            measureTether(quote, beside: index, at: now)
            // Another source is shown than a moment ago. An ordinary difference comes from its old premium, not from the market.
            let isOld = premiums[quote.source].map { now - $0.at > 10 * (now - index.at) } ?? false
            if confirmation == .single, isOld {
                let moved = bounded(premium + place - index.log)
                place += premium - moved
                premium = moved
            }
        }
        index = Index(source: quote.source, log: place, at: now, read: (raw, quote.isInTether))
        premiums[quote.source] = Premium(log: premium, at: now)
        odd[quote.source] = nil
        suspects.remove(quote.source)
        pending = nil
        isRestored = false
        saw(price)
        switch confirmation {
        case .unconfirmed: unconfirmedSince = isUnconfirmed(at: now) ? unconfirmedSince : now
        case .single: unconfirmedSince = nil
        case .confirmed: agreedOn(agreed ?? place)
        }
        if !isDisputed, isAtLevel(price) { settledAt = now }
        standstill.saw(price)
    }

    /// Another market agrees with the price that is shown.
    mutating func agreedOn(_ level: Double) {
        self.level = level
        isDisputed = false
        unconfirmedSince = nil
    }

    func isUnconfirmed(at boottime: Int64) -> Bool {
        unconfirmedSince.map { boottime - $0 < JudgementBounds.unconfirmedLasts } ?? false
    }

    // MARK: - The common frame

    /// Where `price` lies in the common frame, and how well that is known.
    ///
    /// A USDT price may count at the rate that holds, or at the one that a USDT/USD market has told since: the one that leads nearer to `reference`.
    func place(of price: FetchedPrice, near reference: Double?) -> (log: Double, slack: Double) {
        let own = premiums[price.quote.source]
        let log = price.quote.value.logarithm - (own?.log ?? 0)
        let slack =
            own.map { JudgementBounds.drift(over: price.observed.boottime - $0.at) } ?? JudgementBounds.levelSlack
        guard price.quote.isInTether else { return (log, slack) }
        let places = tether.logs(at: price.observed.boottime).map { log + $0 }
        guard let reference else { return (places[0], slack) }
        return (places.min { abs($0 - reference) < abs($1 - reference) } ?? log, slack)
    }

    /// Where `witness` lies, if it agrees with `price`; `nil` if it does not.
    private func agreement(of price: FetchedPrice, with witness: FetchedPrice) -> Double? {
        // The one in dollars comes first: it tells at which rate the other one counts.
        let theirs = place(
            of: witness, near: price.quote.isInTether ? level : place(of: price, near: nil).log)
        let mine = place(of: price, near: theirs.log)
        var tolerance = JudgementBounds.agreement
        if let index {
            tolerance = JudgementBounds.agreement(mine.log - index.log, theirs.log - index.log)
        }
        return abs(mine.log - theirs.log) <= tolerance + max(mine.slack, theirs.slack) ? theirs.log : nil
    }

    private func hasPair(_ prices: [FetchedPrice]) -> Bool {
        prices.indices.contains { first in
            prices[(first + 1)...].contains { agreement(of: prices[first], with: $0) != nil }
        }
    }

    private func nearestToMedian(_ prices: [FetchedPrice]) -> String {
        let reference = level ?? index?.log
        return nearest(to: prices.map { place(of: $0, near: reference).log }.median ?? 0, of: prices)
    }

    private func nearest(to log: Double, of prices: [FetchedPrice]) -> String {
        let distances = prices.map { abs(place(of: $0, near: log).log - log) }
        return prices[distances.indices.min { distances[$0] < distances[$1] } ?? 0].quote.source
    }

    private func describe(_ price: FetchedPrice) -> String {
        let value = "\(price.quote.value) \(price.quote.market)"
        guard let index else { return "\(value) is the first price" }
        let elapsed = Duration.milliseconds(max(0, price.observed.boottime - index.at))
        let moved = Self.percent(place(of: price, near: level ?? index.log).log - index.log)
        return "\(value) is \(moved) from the price of \(elapsed.components.seconds) s ago"
    }

    static func percent(_ log: Double) -> String {
        let tenths = Int64(((exp(log) - 1) * 1000).rounded())
        return "\(tenths < 0 ? "-" : "+")\(abs(tenths) / 10).\(abs(tenths) % 10) %"
    }
}

extension Price {
    /// The natural logarithm, for comparing; of what is not above zero, minus infinity.
    var logarithm: Double {
        let value = double
        return value > 0 ? log(value) : -.infinity
    }
}

extension [Double] {
    /// The middle one by size, or halfway between the middle two; `nil` if there are none.
    var median: Double? {
        guard !isEmpty else { return nil }
        let sorted = sorted()
        return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2
    }
}
