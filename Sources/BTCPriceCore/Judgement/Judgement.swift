import FoundationEssentials
import Glibc

/// Judges prices by what the sources have said so far: a pure value.
///
/// What is compared is how far each source has moved, never the level of one with the level of another. For that every source has a
/// *premium*: how far above a common *index* its price lies, measured when both were seen together. The price that is shown carries
/// the index along; what another source's price says of the index is its own price less its premium, so a USDT market and a USD
/// market testify alike, on or off the peg. All prices are in natural logarithms here: a quote's exact decimal never passes through.
struct Judgement: Sendable {
    /// What is to be done with a price.
    enum Verdict: Sendable, Hashable {
        /// It is shown.
        case believed(Confirmation)
        /// Others say otherwise, so many of them: it is not shown. Why, for people.
        case contradicted(String, by: Int)
        /// It needs another source's word, and has none yet. Why, for people.
        case undecided(String)
    }

    /// What one source says of another's price.
    private enum Testimony { case agrees, contradicts, nothing }

    struct Premium: Sendable {
        var log: Double
        var at: Int64
        var isInTether: Bool
    }

    /// The price that was shown last.
    struct Index: Sendable {
        var source: String
        var log: Double
        var at: Int64
    }

    private struct Pending: Sendable {
        var source: String
        var log: Double
        var at: Int64
        var ticks: Int
    }

    var index: Index?
    /// By source.
    var premiums: [String: Premium] = [:]
    /// Premiums that were seen once and lie too far from what was expected.
    private var odd: [String: (log: Double, since: Int64)] = [:]
    /// Sources that were not believed, until they are in line again.
    private(set) var suspects: Set<String> = []
    private var pending: Pending?
    private var contradictedAt: Int64?
    private var unconfirmedSince: Int64?
    var standstill = Standstill()
    var tether = TetherMeasurement()

    /// Goes on from a price that an earlier run kept.
    /// - Parameter boottime: When it was observed; of an earlier boot, below zero.
    mutating func restored(_ quote: PriceQuote, at boottime: Int64) {
        index = Index(source: quote.source, log: quote.value.logarithm, at: boottime)
        premiums[quote.source] = Premium(log: 0, at: boottime, isInTether: quote.isInTether)
    }

    // MARK: - Judging

    /// Judges `price` by itself and by what other sources said in the same fetch.
    func verdict(on price: FetchedPrice, witnesses: [FetchedPrice]) -> Verdict {
        if isPlausible(price) { return .believed(isUnconfirmed(at: price.observed.boottime) ? .unconfirmed : .single) }
        var contradicting: [String] = []
        for witness in witnesses {
            switch testimony(of: witness, on: price) {
            case .agrees: return .believed(.confirmed)
            case .contradicts: contradicting.append("\(witness.quote.source) (\(witness.quote.value))")
            case .nothing: break
            }
        }
        let what = describe(price)
        return contradicting.isEmpty
            ? .undecided("\(what), and no second source could confirm it")
            : .contradicted(
                "\(what), which \(contradicting.joined(separator: " and ")) contradict\(contradicting.count == 1 ? "s" : "")",
                by: contradicting.count)
    }

    /// Nobody could be asked about `price`: whether it is believed because it stays where it is.
    /// - Returns: How many ticks in a row have said the same, this one included; `nil` where a source was contradicted a short time
    ///   ago.
    mutating func persists(_ price: FetchedPrice) -> Int? {
        let (now, log) = (price.observed.boottime, price.quote.value.logarithm)
        if let contradictedAt, now - contradictedAt < JudgementBounds.contradictionHolds {
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

    /// A source's price was contradicted.
    mutating func contradicted(_ source: String, at boottime: Int64) {
        suspects.insert(source)
        contradictedAt = boottime
        pending = nil
    }

    private func isPlausible(_ price: FetchedPrice) -> Bool {
        guard let index, let (deviation, slack) = deviation(of: price) else { return false }
        return abs(deviation) <= JudgementBounds.move(after: price.observed.boottime - index.at) + slack
    }

    private func isUnconfirmed(at boottime: Int64) -> Bool {
        unconfirmedSince.map { boottime - $0 < JudgementBounds.unconfirmedLasts } ?? false
    }

    /// How far `price` says that the index has moved, and how well that is known; `nil` where it can say nothing of that.
    private func deviation(of price: FetchedPrice) -> (Double, slack: Double)? {
        guard let index else { return nil }
        let log = price.quote.value.logarithm
        if let own = premiums[price.quote.source] {
            return (log - own.log - index.log, JudgementBounds.drift(over: price.observed.boottime - own.at))
        }
        // Markets in the same currency are close to one another.
        guard let other = nearest(to: price.quote) else { return nil }
        return (log - other.log - index.log, JudgementBounds.levelSlack)
    }

    /// The newest premium of another source in the same currency.
    private func nearest(to quote: PriceQuote) -> Premium? {
        premiums.filter { $0.key != quote.source && $0.value.isInTether == quote.isInTether }.values.max {
            $0.at < $1.at
        }
    }

    private func testimony(of witness: FetchedPrice, on price: FetchedPrice) -> Testimony {
        if let (mine, slack) = deviation(of: price), let (theirs, theirSlack) = deviation(of: witness), let index {
            if mine * theirs > 0, abs(mine - theirs) <= JudgementBounds.agreement(mine, theirs) + slack + theirSlack {
                return .agrees
            }
            // One that has jumped itself, and elsewhere, knows no better.
            let bound = JudgementBounds.move(after: witness.observed.boottime - index.at) + theirSlack
            return abs(theirs) <= bound ? .contradicts : .nothing
        }
        let apart = abs(price.quote.value.logarithm - witness.quote.value.logarithm)
        if price.quote.isInTether == witness.quote.isInTether {
            return apart <= JudgementBounds.sameCurrency ? .agrees : .contradicts
        }
        // Of the very first price nothing else can be known than its order.
        guard index == nil else { return .nothing }
        return apart <= JudgementBounds.sameOrder ? .agrees : .contradicts
    }

    private func describe(_ price: FetchedPrice) -> String {
        let value = "\(price.quote.value) \(price.quote.market)"
        guard let index, let (deviation, _) = deviation(of: price) else {
            return index == nil ? "\(value) is the first price" : "\(value) is its first price"
        }
        let elapsed = Duration.milliseconds(max(0, price.observed.boottime - index.at))
        return "\(value) is \(Self.percent(deviation)) from the price of \(elapsed.components.seconds) s ago"
    }

    static func percent(_ log: Double) -> String {
        let tenths = Int64(((exp(log) - 1) * 1000).rounded())
        return "\(tenths < 0 ? "-" : "+")\(abs(tenths) / 10).\(abs(tenths) % 10) %"
    }

    // MARK: - Learning

    /// `price` is shown from now on.
    mutating func accepted(_ price: FetchedPrice, as confirmation: Confirmation) {
        let (quote, now) = (price.quote, price.observed.boottime)
        let log = quote.value.logarithm
        let premium = premiums[quote.source]?.log ?? nearest(to: quote)?.log ?? index.map { log - $0.log } ?? 0
        index = Index(source: quote.source, log: log - premium, at: now)
        premiums[quote.source] = Premium(log: premium, at: now, isInTether: quote.isInTether)
        odd[quote.source] = nil
        suspects.remove(quote.source)
        pending = nil
        switch confirmation {
        case .unconfirmed: unconfirmedSince = isUnconfirmed(at: now) ? unconfirmedSince : now
        case .confirmed, .single: unconfirmedSince = nil
        }
        standstill.saw(price)
    }

    /// A source that is not shown was asked: where it stands beside the one that is.
    /// - Returns: Whether it is in line with what was known; also where nothing could be compared.
    @discardableResult
    mutating func learned(_ price: FetchedPrice) -> Bool {
        standstill.sawAnother(price)
        let (quote, now) = (price.quote, price.observed.boottime)
        // Only side by side with a price of the same moment.
        guard let index, quote.source != index.source, abs(now - index.at) <= 5000 else { return true }
        let offset = quote.value.logarithm - index.log
        let known = premiums[quote.source]
        if let known {
            // Beside one that may stand still nothing is learned, but whether the others move.
            let unchanged = standstill.unchanged(index.source, at: now)
            if unchanged >= JudgementBounds.standstill {
                standstill.other(
                    quote.source, moved: offset - known.log, of: premiums.count - 1, beside: index.source, at: now)
            }
            if unchanged >= JudgementBounds.pause { return true }
            // A market that stands still does not drift away: the others do.
            if standstill.suspects(quote.source, at: now) {
                if abs(offset - known.log) >= JudgementBounds.standstillMove {
                    standstill.standsStill(quote.source, beside: [index.source])
                }
                return true
            }
            let slack = JudgementBounds.drift(over: now - known.at)
            let isNear = abs(offset - known.log) <= JudgementBounds.move(after: now - index.at) + slack
            // One that drifts step by step is followed: only so it is seen that it strays.
            guard isNear || (isOddForLong(quote.source, offset, at: now) && isOfOrder(quote, offset)) else {
                return false
            }
            if isNear { unconfirmedSince = nil }
        } else {
            guard isOfOrder(quote, offset) else { return false }
            if nearest(to: quote) != nil { unconfirmedSince = nil }
        }
        odd[quote.source] = nil
        suspects.remove(quote.source)
        premiums[quote.source] = Premium(log: offset, at: now, isInTether: quote.isInTether)
        measureTether(quote, beside: index, at: now)
        return true
    }

    /// An odd answer is not taken at its word. If the source says the same for long, it is where it stands now.
    private mutating func isOddForLong(_ source: String, _ offset: Double, at boottime: Int64) -> Bool {
        guard let before = odd[source], abs(before.log - offset) <= JudgementBounds.oddDrift else {
            odd[source] = (offset, boottime)
            return false
        }
        odd[source] = (offset, before.since)
        let long = suspects.contains(source) ? JudgementBounds.suspicionLasts : JudgementBounds.oddLasts
        return boottime - before.since >= long
    }

    /// Whether a source stands where one can that quotes in its currency, beside the one that is shown.
    private func isOfOrder(_ quote: PriceQuote, _ offset: Double) -> Bool {
        guard let index, let shown = premiums[index.source] else { return true }
        let bound =
            shown.isInTether == quote.isInTether ? JudgementBounds.sameCurrency : JudgementBounds.sameOrder
        return abs(offset - shown.log) <= bound
    }

    private mutating func measureTether(_ quote: PriceQuote, beside index: Index, at boottime: Int64) {
        guard let shown = premiums[index.source], shown.isInTether != quote.isInTether else { return }
        let shownLog = index.log + shown.log
        let log = quote.value.logarithm
        tether.measured(
            quote.isInTether ? shownLog - log : log - shownLog, by: quote.isInTether ? index.source : quote.source,
            at: boottime)
    }

    /// Sources that have drifted away from the others, and why that is believed: `nil` where none has.
    func stray(at boottime: Int64) -> (source: String, reason: String)? {
        let known = premiums.filter { boottime - $0.value.at <= 300_000 }
        let dollars = known.filter { !$0.value.isInTether }
        guard dollars.count >= 3 else { return nil }
        let middle = dollars.values.map(\.log).sorted()[dollars.count / 2]
        for (source, premium) in known.sorted(by: { $0.key < $1.key }) {
            let bound = premium.isInTether ? JudgementBounds.sameOrder : JudgementBounds.sameCurrency
            guard abs(premium.log - middle) > bound else { continue }
            return (source, "it stands \(Self.percent(premium.log - middle)) from the other dollar markets")
        }
        return nil
    }

    /// Forgets where a source stood: it strayed.
    mutating func forget(_ source: String) {
        suspects.insert(source)
        premiums[source] = nil
        odd[source] = nil
    }
}

extension Decimal {
    /// The natural logarithm, for comparing; of what is not above zero, minus infinity.
    var logarithm: Double {
        guard self > 0, let value = Double(description) else { return -.infinity }
        return log(value)
    }
}
