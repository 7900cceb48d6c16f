/// A source that is not requested this time, and why.
package struct Skipped: Sendable, Hashable, CustomStringConvertible {
    /// Why a source is not requested.
    package enum Reason: Sendable, Hashable {
        /// It has a cooldown.
        case cooldown(SourceCooldown)
        /// Its limits allow no further request.
        case limit
        /// It quotes in USDT, which is off its peg.
        case offPeg
    }

    /// The source's name.
    package let source: String
    package let reason: Reason

    package init(source: String, reason: Reason) {
        self.source = source
        self.reason = reason
    }

    /// `binance: cooldown until 2026-11-21 14:32:10 UTC, rate limited: HTTP 418`
    package var description: String {
        switch reason {
        case .cooldown(let cooldown): "\(source): cooldown until \(cooldown.until.wall.utcText), \(cooldown.reason)"
        case .limit: "\(source): requested as often as its limit allows"
        case .offPeg: "\(source): passed over while USDT is off its peg"
        }
    }
}

/// All sources in their order with their health, and the rules for selecting them: a pure value.
package struct SourceRegistry: Sendable {
    /// A configured source.
    package struct Entry: Sendable {
        /// Its fixed properties.
        package let source: PriceSource
        /// The base address of its requests.
        package let address: String
        package fileprivate(set) var health: SourceHealth
    }

    /// The sources to request and those to skip.
    struct Plan: Sendable {
        /// Indices of sources, in the order of the requests.
        var order: [Int] = []
        /// Those of ``order`` that have a cooldown, and are requested only because the others may fail.
        var lastResort: Set<Int> = []
        var skipped: [Skipped] = []
    }

    /// The observer does not request a source within this time after its last request: the ticks already request it. A source whose
    /// cooldown has ended (`probed`) may have been requested shortly before. It is left to the ticks only if they use it as a last resort.
    static let observerLeavesAlone = (well: Duration.seconds(10), probed: Duration.seconds(2))

    /// The sources in the order of the configuration.
    package private(set) var entries: [Entry]
    private let interval: Duration
    /// Whether markets that quote in USDT are not requested for a price.
    var passesOverTether = false
    /// The cooldowns of sources that are not configured now, or have another address. They apply again if that changes.
    private var unused: [String: KeptCooldown] = [:]

    /// - Parameters:
    ///   - sources: The sources with their addresses, the primary first.
    ///   - interval: The interval of the ticks.
    init(_ sources: [(source: PriceSource, address: String)], interval: Duration) {
        entries = sources.map { source, address in
            Entry(source: source, address: address, health: SourceHealth(limits: source.allLimits))
        }
        self.interval = interval
    }

    /// Takes over the health of the sources that were configured with the same address before.
    /// - Parameters:
    ///   - previous: The previous sources.
    ///   - now: The current time.
    mutating func inherit(_ previous: SourceRegistry, at now: ObservationTime) {
        // Keeps the cooldowns of removed sources: they may be configured again before those end.
        resume(previous.cooldowns(at: now), at: now)
        for index in entries.indices {
            if let same = previous.index(of: entries[index].source.name, at: entries[index].address) {
                entries[index].health = previous.entries[same].health
            }
        }
    }

    /// The index of a source with this address; `nil` if there is none. Another address is another host.
    func index(of name: String, at address: String) -> Int? {
        entries.firstIndex { $0.source.name == name && $0.address == address }
    }

    /// The sources that `requester` may request now.
    ///
    /// - First come sources with a closed breaker, in their order. Those whose limits don't allow a request at every tick come after
    ///   the others, so that the price does not switch between sources.
    /// - Next, for a tick that would fail otherwise, come sources with a cooldown because of failures: this detects at once that the
    ///   network is back. A rate-limited source is never requested before its cooldown ends.
    /// - A client does not get another source's price because it requests too often.
    func plan(_ requester: Requester, excluding excluded: Set<String> = [], at boottime: Int64) -> Plan {
        var plan = Plan()
        if requester == .observer {
            plan.order = observerChoice(excluding: excluded, at: boottime).map { [$0] } ?? []
            return plan
        }
        let wanted = entries.indices.filter { !excluded.contains(entries[$0].source.name) && !isOffPeg($0) }
        let ranked = wanted.filter { !isSlow($0) } + wanted.filter(isSlow)
        let isClosed = { (index: Int) in entries[index].health.breaker(at: boottime) == .closed }
        add(ranked.filter(isClosed), requester, boottime, to: &plan)
        if requester == .tick || (plan.order.isEmpty && plan.skipped.isEmpty) {
            let resting = ranked.filter { !isClosed($0) && !entries[$0].health.isBound(at: boottime) }
            add(resting, requester, boottime, to: &plan)
            plan.lastResort = Set(resting)
        }
        if requester == .tick || plan.order.isEmpty, !ranked.contains(where: isClosed) {
            let refusing = ranked.filter { entries[$0].health.mayProbeRefusal(at: boottime) }
            add(refusing, requester, boottime, to: &plan)
            plan.lastResort.formUnion(refusing)
        }
        for index in entries.indices where isOffPeg(index) {
            plan.skipped.append(Skipped(source: entries[index].source.name, reason: .offPeg))
        }
        for entry in entries
        where entry.health.breaker(at: boottime) == .open && !excluded.contains(entry.source.name) {
            guard let cooldown = entry.health.cooldown,
                !plan.order.contains(where: { entries[$0].source == entry.source }),
                !plan.skipped.contains(where: { $0.source == entry.source.name })
            else { continue }
            plan.skipped.append(Skipped(source: entry.source.name, reason: .cooldown(cooldown)))
        }
        return plan
    }

    /// Adds the sources whose limits allow a request.
    private func add(_ indices: [Int], _ requester: Requester, _ boottime: Int64, to plan: inout Plan) {
        for index in indices {
            if entries[index].health.isWithinLimits(requester, at: boottime) {
                plan.order.append(index)
            } else {
                plan.skipped.append(Skipped(source: entries[index].source.name, reason: .limit))
                if requester == .client, plan.order.isEmpty { return }
            }
        }
    }

    /// Counts a request if the limits still allow it; `false` if they do not.
    mutating func take(_ index: Int, _ requester: Requester, at boottime: Int64) -> Bool {
        guard entries[index].health.isWithinLimits(requester, at: boottime) else { return false }
        entries[index].health.asked(at: boottime)
        return true
    }

    /// Records the end of a request.
    /// - Returns: The cooldown that it started, if any.
    mutating func ended(
        _ index: Int, _ outcome: SourceHealth.Outcome, latency: Duration, at now: ObservationTime,
        jitter: @autoclosure () -> Double
    ) -> SourceCooldown? {
        entries[index].health.ended(outcome, latency: latency, at: now, jitter: jitter())
    }

    /// Records a price that is not believed.
    /// - Returns: The cooldown that it started, if any.
    mutating func distrust(
        _ name: String, _ error: PriceLoadingError, at now: ObservationTime, jitter: @autoclosure () -> Double
    ) -> SourceCooldown? {
        guard let index = entries.firstIndex(where: { $0.source.name == name }) else { return nil }
        return entries[index].health.distrusted(error, at: now, jitter: jitter())
    }

    /// Records a price that does not fit the others'. The source is still requested.
    mutating func doubt(_ name: String, _ error: PriceLoadingError, at now: ObservationTime) {
        guard let index = entries.firstIndex(where: { $0.source.name == name }) else { return }
        entries[index].health.doubted(error, at: now)
    }

    /// Ends the cooldowns that are not rate limits.
    /// - Parameter name: Only of this source; `nil` for all.
    /// - Returns: The sources whose cooldown was ended, and the rate-limited ones that keep theirs.
    mutating func retry(_ name: String?, at boottime: Int64) -> (retried: [String], kept: [Skipped]) {
        var (retried, kept): ([String], [Skipped]) = ([], [])
        for index in entries.indices where name == nil || entries[index].source.name == name {
            let (source, cooldown) = (entries[index].source.name, entries[index].health.cooldown)
            switch entries[index].health.retry(at: boottime) {
            case true: retried.append(source)
            case false: if let cooldown { kept.append(Skipped(source: source, reason: .cooldown(cooldown))) }
            case nil: break
            }
        }
        return (retried, kept)
    }

    /// Continues the cooldowns of an earlier run, each at its own address.
    mutating func resume(_ cooldowns: [String: KeptCooldown], at now: ObservationTime) {
        for (name, kept) in cooldowns {
            if let index = index(of: name, at: kept.address) {
                entries[index].health.resume(kept, at: now)
            } else {
                unused[name] = kept
            }
        }
    }

    /// The cooldowns that a restart must not shorten.
    func cooldowns(at now: ObservationTime) -> [String: KeptCooldown] {
        var cooldowns = unused.filter { $0.value.remaining(at: now) > .zero }
        for entry in entries where entry.health.isBound(at: now.boottime) {
            guard let cooldown = entry.health.cooldown else { continue }
            cooldowns[entry.source.name] = KeptCooldown(
                address: entry.address, cooldown: cooldown.dated(by: now), isOfThisBoot: true)
        }
        return cooldowns
    }

    /// The sources whose limits don't allow a request at every tick.
    package var slow: [Entry] { entries.indices.filter(isSlow).map { entries[$0] } }

    func isOffPeg(_ index: Int) -> Bool {
        passesOverTether && entries[index].source.isInTether
    }

    func isSlow(_ index: Int) -> Bool {
        entries[index].health.pace > interval
    }

    /// The source for the observer: one whose cooldown has ended, otherwise the one with the oldest request.
    private func observerChoice(excluding excluded: Set<String>, at boottime: Int64) -> Int? {
        let candidates = entries.indices.filter { index in
            let health = entries[index].health
            if excluded.contains(entries[index].source.name) { return false }
            let isProbe = health.breaker(at: boottime) == .halfOpen
            // At long intervals the ticks request their sources rarely. The observer still leaves them to the ticks.
            let alone = isProbe ? Self.observerLeavesAlone.probed : max(Self.observerLeavesAlone.well, interval * 2)
            return health.breaker(at: boottime) != .open && health.isWithinLimits(.observer, at: boottime)
                && health.lastAsked ?? .min <= boottime - alone.wholeMilliseconds
        }
        let probes = candidates.filter { entries[$0].health.breaker(at: boottime) == .halfOpen }
        return (probes.isEmpty ? candidates : probes).min { first, second in
            entries[first].health.lastAsked ?? .min < entries[second].health.lastAsked ?? .min
        }
    }
}
