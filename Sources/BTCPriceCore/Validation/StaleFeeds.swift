/// Finds markets that give the same price again and again while the others move: a pure value.
///
/// A venue whose matching has stopped still responds with its last price, in time and well-formed (Binance, 2023-03-24, for two and a
/// half hours). If the response carries no time, only the other markets reveal it.
struct StaleFeeds: Sendable {
    private struct Last: Sendable {
        var value: Price
        var position: FeedPosition?
        var since: ObservationTime
        var seen: Int64
        /// The usual time between two changes, milliseconds; `nil` before the second one.
        var usual: Int64?
    }

    /// A stale feed.
    struct Finding: Sendable, Hashable {
        let market: Market
        let value: Price
        /// How long it has not changed, milliseconds.
        let unchanged: Int64
        /// The venues that moved meanwhile.
        let others: [String]
    }

    private var last: [Market: Last] = [:]
    /// How many times in a row each other market was found to have moved up, or down (below zero), relative to the suspected one.
    private var moved: [Market: Int] = [:]
    private var suspect: Market?
    private var otherCount = 0
    private var lastLook: (market: Market?, at: Int64)?
    /// The findings that are not reported yet.
    private var findings: [Finding] = []
    /// The prices of stale feeds. Such a market has no valid price until it gives another one.
    private(set) var frozen: [Market: Price] = [:]

    /// The market's last price, if this one is the same. A newer trade at the same price is a change.
    private func same(as price: MarketObservation) -> Last? {
        last[price.market].flatMap { $0.value == price.value && $0.position == price.position ? $0 : nil }
    }

    /// Records that a market has given a price.
    mutating func saw(_ price: MarketObservation) {
        let market = price.market
        if same(as: price) != nil {
            last[market]?.seen = price.at
            return
        }
        let before = last[market]
        // A change that was seen long after the previous price says nothing about the usual time between changes.
        let gap = before.flatMap { price.at - $0.seen <= Bounds.watched ? price.at - $0.since.boottime : nil }
        let usual = gap.map { gap in before?.usual.map { ($0 * 7 + gap) / 8 } ?? gap } ?? before?.usual
        last[market] = Last(
            value: price.value, position: price.position, since: price.arrival, seen: price.at, usual: usual)
        frozen[market] = nil
        if market == suspect { moved = [:] }
    }

    /// Records that a market that is not shown has given a price. If it was away for long and its prices carry no time, it may have
    /// stopped meanwhile: it must give another price before one of its own is shown.
    mutating func sawAnother(_ price: MarketObservation) {
        let wasAway = last[price.market].map { price.at - $0.seen > Bounds.longAway } ?? false
        saw(price)
        if wasAway, price.position == nil { frozen[price.market] = price.value }
    }

    /// Whether a price is current: the first one of its market, one that differs from the last, or one that is only briefly unchanged.
    func isCurrent(_ price: MarketObservation) -> Bool {
        guard let same = same(as: price) else { return true }
        return price.at - same.since.boottime < Bounds.witnessUnchanged
    }

    /// Whether a market that usually changes has not changed for a while.
    func isPausing(_ price: MarketObservation) -> Bool {
        guard let same = same(as: price), let usual = same.usual else { return false }
        return price.at - same.since.boottime >= max(Bounds.witnessUnchanged, Bounds.usualChanges * usual)
    }

    /// Whether a market has given the same price for so long that its feed may be stale.
    func suspects(_ market: Market) -> Bool { unchanged(market) >= Bounds.suspicious }

    /// How long a market has given the same price, from the first time to the last, in milliseconds.
    func unchanged(_ market: Market) -> Int64 {
        last[market].map { $0.seen - $0.since.boottime } ?? 0
    }

    /// Whether another market should be requested now because this one may be stale.
    func wantsWitness(on price: MarketObservation) -> Bool {
        guard same(as: price) != nil else { return false }
        return (suspects(price.market) || isPausing(price))
            && (lastLook.map { price.at - $0.at >= Bounds.look } ?? true)
    }

    /// Records that another market was requested, or that none could be. The next one is not requested at once.
    mutating func looked(at boottime: Int64) {
        lastLook = (nil, boottime)
    }

    /// Whether a market has given a price recently.
    func hasResponded(_ market: Market, by boottime: Int64) -> Bool {
        last[market].map { boottime - $0.seen <= Bounds.lately } ?? false
    }

    /// The market that was last requested because of a suspicion, if there are several others. The next one is another.
    var lastWitness: Market? { otherCount > 1 ? lastLook?.market : nil }

    /// Records that another market was requested while one is suspected.
    /// - Parameters:
    ///   - move: How far it is from where it was, in natural logarithms.
    ///   - count: The number of other markets that are known.
    ///   - suspect: The market whose feed may be stale.
    ///   - boottime: The time, `CLOCK_BOOTTIME` in milliseconds.
    mutating func other(_ market: Market, moved move: Double, of count: Int, beside suspect: Market, at boottime: Int64)
    {
        lastLook = (market, boottime)
        if suspect != self.suspect { moved = [:] }
        self.suspect = suspect
        otherCount = count
        let before = moved[market] ?? 0
        if move >= Bounds.move {
            moved[market] = max(before, 0) + 1
        } else if move <= -Bounds.move {
            moved[market] = min(before, 0) - 1
        } else {
            moved[market] = nil
        }
    }

    /// Forgets all markets but these.
    mutating func keep(only markets: Set<Market>) {
        last = last.filter { markets.contains($0.key) }
        frozen = frozen.filter { markets.contains($0.key) }
        moved = [:]
    }

    /// Records that a market has not changed while others moved.
    mutating func isStale(_ market: Market, beside others: [String]) {
        guard let last = last[market], frozen[market] == nil else { return }
        frozen[market] = last.value
        findings.append(Finding(market: market, value: last.value, unchanged: unchanged(market), others: others))
    }

    /// The findings since the last call. The suspected feed is stale if two other markets have moved the same way. One is enough if it
    /// is the only other one and has moved twice, or one of several and has moved four times, while none has moved the other way.
    mutating func takeFindings() -> [Finding] {
        if let suspect {
            let enough = otherCount == 1 ? 2 : 4
            for others in [moved.filter { $0.value > 0 }, moved.filter { $0.value < 0 }]
            where others.count >= 2 || (others.count == moved.count && others.values.contains { abs($0) >= enough }) {
                isStale(suspect, beside: others.keys.map(\.venue).sorted())
                moved = [:]
            }
        }
        defer { findings = [] }
        return findings
    }
}

extension StaleFeeds {
    /// The constants; see `docs/validation.md`. Times are in milliseconds.
    enum Bounds {
        /// A witness whose price has not changed for this time is not current.
        static let witnessUnchanged = Duration.seconds(3).wholeMilliseconds
        /// A market that usually changes is compared with another one after this many usual times without a change.
        static let usualChanges: Int64 = 4
        /// The longest time between two observations of a market that is being watched.
        static let watched = Duration.seconds(5).wholeMilliseconds
        /// A market is suspected after this time without a change.
        static let suspicious = Duration.seconds(30).wholeMilliseconds
        /// Nothing is learned from a comparison with a price that has not changed for this time: its feed may be about to become stale.
        static let pause = Duration.seconds(5).wholeMilliseconds
        /// A market may have stopped after this time without a response.
        static let longAway = Duration.seconds(600).wholeMilliseconds
        /// While a market is suspected, another one is requested at this interval.
        static let look = Duration.seconds(5).wholeMilliseconds
        /// The longest time that a tick waits for such a request.
        static let longestLook = Duration.milliseconds(400)
        /// How long a response is recent.
        static let lately = Duration.seconds(120).wholeMilliseconds
        /// How far the others must move meanwhile.
        static let move = 0.0025
    }
}
