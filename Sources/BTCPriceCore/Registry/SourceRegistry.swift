/// All sources in their order, with the health of their markets and venues, and the rules for which may be requested: a pure value.
package struct SourceRegistry: Sendable {
    package struct Entry: Sendable {
        package let source: FetchLatestPrice
        let interval: Duration
        fileprivate let venue: Int
        package fileprivate(set) var health = MarketHealth()
        /// When it was last requested for its own price, leaving out requests that were given up.
        fileprivate var lastRequest = BootTime.min
        /// The last of these requests whose result is known.
        fileprivate var lastKnown = BootTime.min
        /// When the ticks last requested it, or were refused by its limits.
        fileprivate var lastTick: BootTime?
        /// Whether its limits refused the last tick.
        fileprivate var isRefused = false
        /// When the ticks last sent it a request.
        fileprivate var lastServed = BootTime.min
        /// For a reserve: when a source of its currency that is not a reserve last had a price, or when the wait for one began.
        fileprivate var heldBackSince: BootTime
    }

    private struct VenueEntry: Sendable {
        let name: String
        /// Another address is another host.
        let address: String
        var health: VenueHealth

        func isSame(as other: VenueEntry) -> Bool { name == other.name && address == other.address }
    }

    /// The sources to request and those to skip.
    struct Plan: Sendable {
        /// In the order of the requests.
        var order: [Market] = []
        /// The number of sources in ``order`` without a cooldown. The others follow, and are requested only because these may fail.
        var well = 0
        var skipped: [Skipped] = []
        /// The sources that would come first, but for their limits.
        var waiting: [Market] = []
    }

    /// The observer does not request a source within this time after its last request: the ticks already request it. A source whose
    /// cooldown has ended (`probed`) may have been requested shortly before, so its time is shorter: it is left to the ticks only while
    /// they use it as a last resort.
    static let observerLeavesAlone = (well: Duration.seconds(10), probed: Duration.seconds(2))

    /// The sources in the order of the configuration.
    package private(set) var entries: [Entry]
    private var venues: [VenueEntry] = []
    /// When the sources to request were last planned.
    private var lastLook: BootTime
    /// The venues that are not configured now, or have another address, and were requested within the periods of their limits.
    private var spare: [VenueEntry] = []
    /// The cooldowns of venues that are not configured now, or have another address. They apply again if that changes.
    private var unused: [String: KeptCooldown] = [:]

    /// - Parameter sources: With the interval of their currency's ticks, currency by currency, the primary first.
    init(_ sources: [(FetchLatestPrice, Duration)], at boottime: BootTime = .boot) {
        lastLook = boottime
        var venues: [VenueEntry] = []
        entries = sources.map { source, interval in
            let known = venues.firstIndex { $0.name == source.venue.name && $0.address == source.address }
            if known == nil {
                venues.append(
                    VenueEntry(
                        name: source.venue.name, address: source.address,
                        health: VenueHealth(limits: source.venue.allLimits)))
            }
            return Entry(
                source: source, interval: interval, venue: known ?? venues.count - 1, heldBackSince: boottime)
        }
        self.venues = venues
    }

    /// Takes over the health of the sources that were configured with the same address before.
    mutating func inherit(_ previous: SourceRegistry, at now: ObservationTime) {
        // Keeps the cooldowns of removed sources: they may be configured again before those end.
        resume(previous.cooldowns(at: now), at: now)
        for index in entries.indices {
            let new = entries[index].source
            let old = previous.entries.first { $0.source.market == new.market && $0.source.address == new.address }
            guard let old else { continue }
            entries[index].health = old.health
            (entries[index].lastRequest, entries[index].lastKnown) = (old.lastRequest, old.lastKnown)
            (entries[index].lastTick, entries[index].isRefused) = (old.lastTick, old.isRefused)
            entries[index].lastServed = old.lastServed
            entries[index].heldBackSince = old.heldBackSince
        }
        let known = previous.venues + previous.spare
        for index in venues.indices {
            if let same = known.first(where: { $0.isSame(as: venues[index]) }) {
                venues[index].health.adopt(same.health)
            }
        }
        spare = known.filter { old in
            !venues.contains(where: old.isSame) && old.health.tallies.contains { $0.count(at: now.boottime) > 0 }
        }
    }

    /// The index of a market; `nil` for an unknown one.
    private func index(of market: Market) -> Int? { entries.firstIndex { $0.source.market == market } }

    /// The source of a market; `nil` for an unknown one.
    func source(of market: Market) -> FetchLatestPrice? { index(of: market).map { entries[$0].source } }

    /// The index of a source by its name, among the markets of one currency.
    private func index(of name: String, among markets: [Market]) -> Int? {
        entries.firstIndex { $0.source.name == name && markets.contains($0.source.market) }
    }

    private func venue(_ name: String, at address: String) -> Int? {
        venues.firstIndex { $0.name == name && $0.address == address }
    }

    func health(_ index: Int) -> VenueHealth { venues[entries[index].venue].health }

    func breaker(_ index: Int, at boottime: BootTime) -> CircuitBreaker.State {
        entries[index].health.breaker.state(at: boottime, health(index).breaker)
    }

    /// The cooldown of a source: its venue's, otherwise its market's. It may have ended, if no request has succeeded since.
    package func cooldown(_ index: Int) -> SourceCooldown? {
        health(index).breaker.cooldown ?? entries[index].health.breaker.cooldown
    }

    package func isCoolingDown(_ index: Int, at boottime: BootTime) -> Bool { breaker(index, at: boottime) == .open }

    /// Whether the source of a market has a cooldown; `false` for an unknown market.
    func isCoolingDown(_ market: Market, at boottime: BootTime) -> Bool {
        index(of: market).map { isCoolingDown($0, at: boottime) } ?? false
    }

    /// Whether the exchange has named a time before which it can't respond, and that is not over.
    private func isTold(_ index: Int, at boottime: BootTime) -> Bool {
        entries[index].health.breaker.cooldown?.isTold(at: boottime) ?? false
    }

    /// The minimum time between two requests for a source.
    package func pace(_ index: Int) -> Duration { health(index).limiter.pace }

    /// The sources that `requester` may request now.
    ///
    /// - First come sources with a closed breaker, in their order. Those whose limits don't allow a request at every tick come after
    ///   the others, so that the price does not switch between sources.
    /// - Next, for a tick that has no price yet, come sources with a cooldown because of failures, or whose cooldown has
    ///   ended without a success since: this detects at once that the
    ///   network is back. A source is never requested before a time that its exchange has named.
    /// - A client that requests too often does not get another source's price instead.
    /// - Parameters:
    ///   - markets: The sources in question.
    ///   - atHand: Those whose price costs no request now.
    ///   - keepsCooldowns: See ``Need/keepsCooldowns``.
    ///   - mayWake: Whether the observer may request one source whose cooldown no exchange required.
    func plan(
        _ requester: Requester, among markets: Set<Market>, atHand: Set<Market> = [],
        keepsCooldowns: Bool = false,
        mayWake: Bool = false, at boottime: BootTime
    ) -> Plan {
        var plan = Plan()
        let candidates = entries.indices.filter {
            markets.contains(entries[$0].source.market) && !isHeldBack($0, at: boottime)
        }
        if requester == .observer {
            let choice = observerChoice(of: candidates, mayWake: mayWake, at: boottime)
            let mayRequest = { (index: Int) in
                atHand.contains(entries[index].source.market) || isWithinLimits(index, .observer, at: boottime)
            }
            plan.waiting = choice.prefix { !mayRequest($0) }.map { entries[$0].source.market }
            plan.order = choice.first(where: mayRequest).map { [entries[$0].source.market] } ?? []
            return plan
        }
        let ranked = candidates.filter { !isSlow($0) } + candidates.filter(isSlow)
        let isClosed = { (index: Int) in breaker(index, at: boottime) == .closed }
        add(ranked.filter(isClosed), requester, atHand, boottime, to: &plan)
        plan.well = plan.order.count
        let hasNone = requester == .tick ? !keepsCooldowns : plan.order.isEmpty
        if hasNone, requester == .tick || plan.skipped.isEmpty {
            let coolingDown = ranked.filter {
                !isClosed($0) && !health($0).isBound(at: boottime) && !isTold($0, at: boottime)
            }
            add(coolingDown, requester, atHand, boottime, to: &plan)
        }
        if requester == .tick ? hasNone : plan.order.isEmpty, !ranked.contains(where: isClosed) {
            add(ranked.filter { health($0).mayProbeRefusal(at: boottime) }, requester, atHand, boottime, to: &plan)
        }
        for index in candidates where isCoolingDown(index, at: boottime) {
            let name = entries[index].source.name
            guard let cooldown = cooldown(index), !plan.order.contains(entries[index].source.market),
                !plan.skipped.contains(where: { $0.source == name })
            else { continue }
            plan.skipped.append(Skipped(source: name, reason: .cooldown(cooldown)))
        }
        return plan
    }

    /// Adds the sources whose limits allow a request, or that need none.
    private func add(
        _ indices: [Int], _ requester: Requester, _ atHand: Set<Market>, _ boottime: BootTime, to plan: inout Plan
    ) {
        for index in indices {
            let market = entries[index].source.market
            if atHand.contains(market) || isWithinLimits(index, requester, at: boottime) {
                plan.order.append(market)
            } else {
                plan.skipped.append(
                    Skipped(
                        source: entries[index].source.name, reason: .limit,
                        lastFailure: entries[index].health.presentFailure))
                if plan.order.isEmpty { plan.waiting.append(market) }
                if requester == .client, plan.order.isEmpty { return }
            }
        }
    }

    /// Whether it is a reserve that is not needed.
    private func isHeldBack(_ index: Int, at boottime: BootTime) -> Bool {
        entries[index].source.reserve.map { boottime - entries[index].heldBackSince < $0.wholeMilliseconds } ?? false
    }

    /// Records that the sources to request are planned. After a sleep or a pause without plans, the reserves are held back again.
    mutating func looked(at boottime: BootTime) {
        for index in entries.indices
        where boottime - lastLook > max(.seconds(60), entries[index].interval * 3).wholeMilliseconds {
            entries[index].heldBackSince = boottime
        }
        lastLook = boottime
    }

    /// When the limits of a source allow a request: now or later.
    private func opens(_ index: Int, for requester: Requester, at boottime: BootTime) -> BootTime {
        if requester == .tick, let due = leaves(index, at: boottime) { return due + RequestLimiter.tickJitter + 1 }
        let nextTick = requester == .tick ? nil : nextTick(of: entries[index].venue, at: boottime)
        return health(index).limiter.opens(for: requester, at: boottime, nextTick: nextTick)
    }

    /// Whether a tick leaves its request to the next tick of another currency that has no other source and would be refused otherwise: to
    /// one that was served longer ago, if its ticks are rarer, or are as frequent and the last one was refused.
    /// - Returns: When that tick is due; `nil` for no.
    private func leaves(_ index: Int, at boottime: BootTime) -> BootTime? {
        let (mine, jitter) = (entries[index], RequestLimiter.tickJitter)
        let pace = health(index).limiter.pace.wholeMilliseconds
        for other in entries where other.venue == mine.venue && other.lastServed < mine.lastServed {
            let isNext = other.interval == mine.interval && other.isRefused
            guard let last = other.lastTick, isNext || other.interval > mine.interval,
                case let due = last + other.interval.wholeMilliseconds, boottime - jitter <= due,
                due <= boottime + pace,
                entries.count(where: { $0.source.market.currency == other.source.market.currency }) == 1
            else { continue }
            var limiter = health(index).limiter
            limiter.take(.tick, at: boottime)
            if limiter.opens(for: .tick, at: max(due, boottime)) > due + jitter { return due }
        }
        return nil
    }

    /// Whether the limits of a source allow a request now, for a tick after a short wait.
    func isWithinLimits(_ index: Int, _ requester: Requester, at boottime: BootTime) -> Bool {
        opens(index, for: requester, at: boottime) <= boottime + (requester == .tick ? RequestLimiter.tickJitter : 0)
    }

    /// How long a tick waits for the limits of a source: its limit may allow just one request for each tick.
    func wait(for market: Market, at boottime: BootTime) -> Duration {
        guard let index = index(of: market) else { return .zero }
        let wait = opens(index, for: .tick, at: boottime) - boottime
        return wait <= RequestLimiter.tickJitter ? .milliseconds(wait) : .zero
    }

    /// The next request of the ticks to a venue; `nil` if they do not use it at present.
    private func nextTick(of venue: Int, at boottime: BootTime) -> RequestLimiter.NextTick? {
        var next: RequestLimiter.NextTick?
        for entry in entries where entry.venue == venue {
            let interval = entry.interval.wholeMilliseconds
            guard let last = entry.lastTick, case let due = last + interval,
                boottime <= due + RequestLimiter.tickJitter,
                due < next?.due ?? .max
            else { continue }
            next = .init(due: due, interval: interval)
        }
        return next
    }

    /// Records that only their limits kept a requester from these sources. If it asks again within five seconds, it is served in its turn.
    mutating func wait(for markets: [Market], _ requester: Requester, at boottime: BootTime) {
        for index in markets.compactMap(index) {
            if requester == .tick { (entries[index].lastTick, entries[index].isRefused) = (boottime, true) }
            venues[entries[index].venue].health.limiter.wait(requester, at: boottime, until: boottime + 5000)
        }
    }

    /// Counts a request for a price; `false` if the limits no longer allow it, or if the exchange limits or refuses requests at present.
    mutating func take(_ market: Market, _ requester: Requester, at boottime: BootTime) -> Bool {
        guard let index = index(of: market) else { return false }
        let health = health(index)
        guard opens(index, for: requester, at: boottime) <= boottime, !isTold(index, at: boottime),
            !health.isBound(at: boottime) || health.mayProbeRefusal(at: boottime)
        else { return false }
        venues[entries[index].venue].health.requested(by: requester, at: boottime)
        entries[index].lastRequest = boottime
        if requester == .tick {
            (entries[index].lastTick, entries[index].isRefused) = (boottime, false)
            entries[index].lastServed = boottime
        }
        return true
    }

    /// Counts a request to a market's venue for something other than a price, which changes nothing but the limits.
    /// - Parameter longest: How long the requester waits, milliseconds.
    /// - Returns: Zero if it is granted; otherwise the time after which to ask again, milliseconds. `nil` if that is too long, if there is a
    ///   cooldown, or no such source.
    mutating func grant(
        _ market: Market, _ requester: Requester, within longest: Int64, at boottime: BootTime
    ) -> Int64? {
        guard let index = index(of: market), !isCoolingDown(index, at: boottime)
        else { return nil }
        let opens = opens(index, for: requester, at: boottime)
        guard opens <= boottime else {
            guard opens - boottime < longest else { return nil }
            // It asks again when the time is over, or a little later if the machine is busy.
            venues[entries[index].venue].health.limiter.wait(requester, at: boottime, comes: opens, until: opens + 1000)
            return opens - boottime
        }
        venues[entries[index].venue].health.requested(by: requester, at: boottime)
        return 0
    }

    mutating func received(_ market: Market, bytes: Int) {
        if let index = index(of: market) { entries[index].health.bodyBytes = bytes }
    }

    /// Records the end of a request.
    /// - Returns: The cooldown that it started, if any.
    mutating func ended(
        _ market: Market, _ outcome: MarketHealth.Outcome, latency: Duration, at now: ObservationTime,
        jitter: @autoclosure () -> Double
    ) -> SourceCooldown? {
        guard let index = index(of: market) else { return nil }
        if case .success = outcome, entries[index].source.reserve == nil {
            let currency = entries[index].source.market.currency
            for other in entries.indices where entries[other].source.market.currency == currency {
                entries[other].heldBackSince = now.boottime
            }
        }
        if outcome.isOfSource { entries[index].lastKnown = entries[index].lastRequest } else { gaveUp(market) }
        return entries[index].health.ended(
            outcome, latency: latency, at: now, venue: &venues[entries[index].venue].health, jitter: jitter())
    }

    /// Records that a request was given up, which says nothing about the source: the observer need not leave it alone.
    mutating func gaveUp(_ market: Market) {
        if let index = index(of: market) { entries[index].lastRequest = entries[index].lastKnown }
    }

    /// Records a price that is not believed.
    /// - Returns: The cooldown that it started, if any.
    mutating func reject(
        _ name: String, of markets: [Market], _ error: PriceLoadingError, at now: ObservationTime,
        jitter: @autoclosure () -> Double
    ) -> SourceCooldown? {
        guard let index = index(of: name, among: markets) else { return nil }
        return entries[index].health.rejected(error, at: now, jitter: jitter())
    }

    /// Records a price that does not agree with the other sources. The source is still requested.
    mutating func doubt(_ name: String, of markets: [Market], _ error: PriceLoadingError, at now: ObservationTime) {
        guard let index = index(of: name, among: markets) else { return }
        entries[index].health.doubted(error, at: now)
    }

    /// Ends all cooldowns except rate limits.
    /// - Parameter name: Only of this source; `nil` for all.
    /// - Returns: The sources whose cooldown was ended, and the rate-limited ones that keep theirs.
    mutating func retry(_ name: String?, at boottime: BootTime) -> (retried: [String], kept: [Skipped]) {
        var (retried, kept): ([String], [Skipped]) = ([], [])
        for index in entries.indices where name == nil || entries[index].source.name == name {
            guard isCoolingDown(index, at: boottime), let cooldown = cooldown(index) else { continue }
            let source = entries[index].source.name
            if case .rateLimited = cooldown.reason {
                // Listed once, although all markets of the venue share it.
                if kept.contains(where: { $0.source == source }) { continue }
                kept.append(Skipped(source: source, reason: .cooldown(cooldown)))
            } else {
                entries[index].health.retry()
                venues[entries[index].venue].health.breaker.reset()
                if !retried.contains(source) { retried.append(source) }
            }
        }
        return (retried, kept)
    }

    /// Continues the cooldowns from an earlier run, each at its own address.
    mutating func resume(_ cooldowns: [String: KeptCooldown], at now: ObservationTime) {
        for (name, kept) in cooldowns {
            if let index = venue(name, at: kept.address) {
                venues[index].health.breaker.resume(kept, at: now)
            } else {
                unused[name] = kept
            }
        }
    }

    /// The cooldowns that a restart must not shorten, by the venue's name.
    func cooldowns(at now: ObservationTime) -> [String: KeptCooldown] {
        var cooldowns = unused.filter { $0.value.remaining(at: now) > .zero }
        for venue in venues where venue.health.isBound(at: now.boottime) {
            guard let cooldown = venue.health.breaker.cooldown else { continue }
            cooldowns[venue.name] = KeptCooldown(
                address: venue.address, cooldown: cooldown.dated(by: now), isOfThisBoot: true)
        }
        return cooldowns
    }

    /// Whether its limits don't allow a request at every tick.
    package func isSlow(_ index: Int) -> Bool { pace(index) > entries[index].interval }

    /// The sources for the observer: those whose cooldown has ended, otherwise the others; first the one with the oldest request.
    /// - Parameter mayWake: Whether one with a cooldown that no exchange required comes last, at most once in ten seconds for all of them.
    private func observerChoice(of indices: [Int], mayWake: Bool, at boottime: BootTime) -> [Int] {
        let candidates = indices.filter { index in
            let state = breaker(index, at: boottime)
            // With long intervals, the ticks request their sources rarely. The observer still leaves these sources to the ticks.
            let alone =
                state == .halfOpen
                ? Self.observerLeavesAlone.probed
                : max(Self.observerLeavesAlone.well, entries[index].interval * 2)
            return state != .open && entries[index].lastRequest <= boottime - alone.wholeMilliseconds
        }
        let byAge = candidates.sorted { entries[$0].lastRequest < entries[$1].lastRequest }
        let isProbe = { (index: Int) in breaker(index, at: boottime) == .halfOpen }
        let resting = indices.filter { breaker($0, at: boottime) == .open }
        let wakes =
            mayWake
            && resting.allSatisfy {
                entries[$0].lastRequest <= boottime - Self.observerLeavesAlone.well.wholeMilliseconds
            }
        let woken = resting.filter { wakes && !health($0).isBound(at: boottime) && !isTold($0, at: boottime) }
            .min { entries[$0].lastRequest < entries[$1].lastRequest }
        return byAge.filter(isProbe) + byAge.filter { !isProbe($0) } + [woken].compactMap(\.self)
    }
}
