import FoundationEssentials

/// Finds a source that gives the same answer again and again while the others move: a pure value.
///
/// A venue whose matching has stopped goes on answering with its last price, in time and well-formed (Binance, 2023-03-24, for two
/// and a half hours). Where the answer carries no time, only the others tell.
struct Standstill: Sendable {
    private struct Last: Sendable {
        var value: Decimal
        var mark: VenueMark?
        var since: ObservationTime
    }

    /// A source that stands still.
    struct Finding: Sendable, Hashable {
        let source: String
        let value: Decimal
        let since: ObservationTime
        /// Who moved meanwhile.
        let others: [String]
    }

    private var last: [String: Last] = [:]
    /// How often in a row each of the others was found to have moved, upwards or downwards, beside the one that is suspected.
    private var moved: [String: Int] = [:]
    private var suspect: String?
    private var othersInAll = 0
    /// The answers of sources that stand still.
    private(set) var frozen: [String: Decimal] = [:]

    /// A source has answered.
    mutating func saw(_ price: FetchedPrice) {
        let (source, value) = (price.quote.source, price.quote.value)
        // A newer trade at the same price is no standstill.
        if let same = last[source], same.value == value, same.mark == price.mark { return }
        last[source] = Last(value: value, mark: price.mark, since: price.observed)
        frozen[source] = nil
        if source == suspect { moved = [:] }
    }

    /// Whether a source has given the same answer for so long that it may stand still.
    func suspects(_ source: String, at boottime: Int64) -> Bool {
        guard let last = last[source] else { return false }
        return boottime - last.since.boottime >= JudgementBounds.standstill
    }

    /// Another source was asked meanwhile.
    /// - Parameters:
    ///   - move: How far it is from where it stood, in natural logarithms.
    ///   - count: How many other sources are known.
    ///   - suspect: The one that may stand still.
    mutating func other(_ source: String, moved move: Double, of count: Int, beside suspect: String) {
        if suspect != self.suspect { moved = [:] }
        self.suspect = suspect
        othersInAll = count
        let before = moved[source] ?? 0
        if move >= JudgementBounds.standstillMove {
            moved[source] = max(before, 0) + 1
        } else if move <= -JudgementBounds.standstillMove {
            moved[source] = min(before, 0) - 1
        } else {
            moved[source] = nil
        }
    }

    /// Whether the one that is suspected is found to stand still: two others have moved the same way, or the only other one has
    /// twice.
    mutating func finding(_ source: String) -> Finding? {
        guard source == suspect, let last = last[source], frozen[source] == nil else { return nil }
        for others in [moved.filter { $0.value > 0 }, moved.filter { $0.value < 0 }] {
            guard others.count >= 2 || (othersInAll == 1 && others.values.contains { abs($0) >= 2 }) else { continue }
            frozen[source] = last.value
            moved = [:]
            return Finding(source: source, value: last.value, since: last.since, others: others.keys.sorted())
        }
        return nil
    }
}
