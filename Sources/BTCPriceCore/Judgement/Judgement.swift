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

    struct Pending: Sendable {
        var source: String
        var log: Double
        var at: Int64
        var ticks: Int
    }

    var index: Index?
    /// By source.
    var premiums: [String: Premium] = [:]
    /// Premiums that were seen once and lie too far from what was expected.
    var odd: [String: (log: Double, since: Int64)] = [:]
    /// Sources that were not believed, until they are in line again.
    var suspects: Set<String> = []
    var pending: Pending?
    private var contradictedAt: Int64?
    var unconfirmedSince: Int64?
    /// Those that are not in line with a price that nobody has confirmed.
    var doubters: Set<String> = []
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

    func isUnconfirmed(at boottime: Int64) -> Bool {
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
    func nearest(to quote: PriceQuote) -> Premium? {
        premiums.filter { $0.key != quote.source && $0.value.isInTether == quote.isInTether }.values.max {
            $0.at < $1.at
        }
    }

    private func testimony(of witness: FetchedPrice, on price: FetchedPrice) -> Testimony {
        if let (mine, slack) = deviation(of: price), let (theirs, theirSlack) = deviation(of: witness) {
            if mine * theirs > 0, abs(mine - theirs) <= JudgementBounds.agreement(mine, theirs) + slack + theirSlack {
                return .agrees
            }
            // One that has jumped itself, and elsewhere, knows no better.
            return isPlausible(witness) ? .contradicts : .nothing
        }
        let apart = abs(price.quote.value.logarithm - witness.quote.value.logarithm)
        if price.quote.isInTether == witness.quote.isInTether {
            return apart <= JudgementBounds.sameCurrency ? .agrees : .contradicts
        }
        guard apart <= JudgementBounds.sameOrder else { return .contradicts }
        // Of the very first price nothing else can be known than its order.
        if index == nil { return .agrees }
        // Where the price stood is not known. That the market is where it was, is, if the witness says so.
        return deviation(of: price) == nil && isPlausible(witness) ? .agrees : .nothing
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
}

extension Decimal {
    /// The natural logarithm, for comparing; of what is not above zero, minus infinity.
    var logarithm: Double {
        let value = double
        return value > 0 ? log(value) : -.infinity
    }
}
