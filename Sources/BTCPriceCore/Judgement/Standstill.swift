/// Finds a source that gives the same answer again and again while the others move: a pure value.
///
/// A venue whose matching has stopped goes on answering with its last price, in time and well-formed (Binance, 2023-03-24, for two
/// and a half hours). Where the answer carries no time, only the others tell.
struct Standstill: Sendable {
    private struct Last: Sendable {
        var value: Price
        var mark: VenueMark?
        var since: ObservationTime
        var seen: Int64
    }

    /// A source that stands still.
    struct Finding: Sendable, Hashable {
        let source: String
        let value: Price
        /// For how long, milliseconds.
        let unchanged: Int64
        /// Who moved meanwhile.
        let others: [String]
    }

    private var last: [String: Last] = [:]
    /// How often in a row each of the others was found to have moved, upwards or downwards, beside the one that is suspected.
    private var moved: [String: Int] = [:]
    private var suspect: String?
    private var othersInAll = 0
    private var lastLook: (source: String?, at: Int64)?
    /// Found and not told yet.
    private var findings: [Finding] = []
    /// The answers of sources that stand still.
    private(set) var frozen: [String: Price] = [:]

    /// A source has answered.
    mutating func saw(_ price: FetchedPrice) {
        let (source, value) = (price.quote.source, price.quote.value)
        // A newer trade at the same price is no standstill.
        if let same = last[source], same.value == value, same.mark == price.mark {
            last[source]?.seen = price.observed.boottime
            return
        }
        last[source] = Last(value: value, mark: price.mark, since: price.observed, seen: price.observed.boottime)
        frozen[source] = nil
        if source == suspect { moved = [:] }
    }

    /// A source that is not shown has answered. If it was away for long and its answers carry no time, it may have stopped meanwhile:
    /// it has to give another answer before one of its is shown.
    mutating func sawAnother(_ price: FetchedPrice) {
        let source = price.quote.source
        let wasAway = last[source].map { price.observed.boottime - $0.seen > JudgementBounds.longAway } ?? false
        saw(price)
        if wasAway, price.mark == nil { frozen[source] = price.quote.value }
    }

    /// Whether an answer says something of now: the first one of its source, one that differs from the last, or one that is as young.
    func isCurrent(_ price: FetchedPrice) -> Bool {
        guard let same = last[price.quote.source], same.value == price.quote.value, same.mark == price.mark else {
            return true
        }
        return price.observed.boottime - same.since.boottime < JudgementBounds.witnessUnchanged
    }

    /// Whether a source has given the same answer for so long that it may stand still.
    func suspects(_ source: String) -> Bool {
        unchanged(source) >= JudgementBounds.standstill
    }

    /// From the first to the last of the same answers that a source has given, milliseconds.
    func unchanged(_ source: String) -> Int64 {
        last[source].map { $0.seen - $0.since.boottime } ?? 0
    }

    /// Whether another source should be asked now about one that may stand still.
    func wantsWitness(on price: FetchedPrice) -> Bool {
        let (source, boottime) = (price.quote.source, price.observed.boottime)
        return suspects(source) && last[source]?.value == price.quote.value && last[source]?.mark == price.mark
            && (lastLook.map { boottime - $0.at >= JudgementBounds.standstillLook } ?? true)
    }

    /// One was asked, or none could be: the next one is not asked at once.
    mutating func looked(at boottime: Int64) {
        lastLook = (nil, boottime)
    }

    /// Whether a source has answered lately.
    func hasAnswered(_ source: String, by boottime: Int64) -> Bool {
        last[source].map { boottime - $0.seen <= JudgementBounds.lately } ?? false
    }

    /// Whoever was asked last about one that may stand still, where there are others: the next one to ask is another.
    var lastAsked: Set<String> { othersInAll > 1 ? Set([lastLook?.source].compactMap { $0 ?? nil }) : [] }

    /// Another source was asked meanwhile.
    /// - Parameters:
    ///   - move: How far it is from where it stood, in natural logarithms.
    ///   - count: How many other sources are known.
    ///   - suspect: The one that may stand still.
    ///   - boottime: When, `CLOCK_BOOTTIME` in milliseconds.
    mutating func other(
        _ source: String, moved move: Double, of count: Int, beside suspect: String, at boottime: Int64
    ) {
        lastLook = (source, boottime)
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

    /// Forgets all sources but these.
    mutating func keep(only sources: Set<String>) {
        last = last.filter { sources.contains($0.key) }
        frozen = frozen.filter { sources.contains($0.key) }
        moved = [:]
    }

    /// A source gave the same answer while the one that is shown moved.
    mutating func standsStill(_ source: String, beside others: [String]) {
        guard let last = last[source], frozen[source] == nil else { return }
        frozen[source] = last.value
        findings.append(Finding(source: source, value: last.value, unchanged: unchanged(source), others: others))
    }

    /// What was found out since this was asked last. The one that is suspected stands still if two others have moved the same way,
    /// or if the only other one has twice, or one of several
    /// four times while none has moved the other way.
    mutating func takeFindings() -> [Finding] {
        if let suspect {
            let enough = othersInAll == 1 ? 2 : 4
            for others in [moved.filter { $0.value > 0 }, moved.filter { $0.value < 0 }]
            where others.count >= 2 || (others.count == moved.count && others.values.contains { abs($0) >= enough }) {
                standsStill(suspect, beside: others.keys.sorted())
                moved = [:]
            }
        }
        defer { findings = [] }
        return findings
    }
}
