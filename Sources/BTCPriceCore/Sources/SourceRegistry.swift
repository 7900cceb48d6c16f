/// A source that is not asked this time, and why.
package struct Skipped: Sendable, Hashable, CustomStringConvertible {
    /// Why a source is not asked.
    package enum Reason: Sendable, Hashable {
        /// It rests.
        case cooldowns(SourceCooldown)
        /// It was asked as often as its limits allow.
        case limit
        /// It quotes in USDT, which is off its peg.
        case offPeg
    }

    /// Its name.
    package let source: String
    /// Why.
    package let reason: Reason

    /// - Parameters:
    ///   - source: Its name.
    ///   - reason: Why it is not asked.
    package init(source: String, reason: Reason) {
        self.source = source
        self.reason = reason
    }

    /// `binance: rests until 2026-11-21 14:32:10 UTC, rate limited: HTTP 418`
    package var description: String {
        switch reason {
        case .cooldowns(let cooldown): "\(source): cooldown until \(cooldown.until.wall.utcText), \(cooldown.reason)"
        case .limit: "\(source): requested as often as its limit allows"
        case .offPeg: "\(source): passed over while USDT is off its peg"
        }
    }
}

/// All sources in their order with their health, and the rules of who is asked: a pure value.
package struct SourceRegistry: Sendable {
    /// A source as it is asked here.
    package struct Entry: Sendable {
        /// What is known of it.
        package let source: PriceSource
        /// The base address it is asked at.
        package let address: String
        /// How it is.
        package fileprivate(set) var health: SourceHealth
    }

    /// Whom to ask, and whom not.
    struct Plan: Sendable {
        /// Indices of sources, in the order in which they are asked.
        var order: [Int] = []
        /// Those of them that rest, and are asked only because others may give nothing.
        var lastResort: Set<Int> = []
        var skippedSources: [Skipped] = []
    }

    /// Within this time after a source was asked the observer leaves it alone: the ticks see to it. One whose rest is over may
    /// have been asked shortly before, and is left alone only if the ticks ask it for want of others.
    static let observerLeavesAlone = (well: Duration.seconds(10), probed: Duration.seconds(2))

    /// The sources in the order of the configuration.
    package private(set) var entries: [Entry]
    private let interval: Duration
    /// Whether markets that quote in USDT are not asked for a price.
    var passesOverTether = false
    /// The rests of sources that are not asked now, or at another address: they hold if that changes.
    private var unused: [String: KeptCooldown] = [:]

    /// - Parameters:
    ///   - sources: The sources with their addresses, the primary first.
    ///   - interval: The ticks' interval.
    init(_ sources: [(source: PriceSource, address: String)], interval: Duration) {
        entries = sources.map { source, address in
            Entry(source: source, address: address, health: SourceHealth(limits: source.allLimits))
        }
        self.interval = interval
    }

    /// Takes over the health of the sources that were asked at the same address before.
    /// - Parameters:
    ///   - previous: The sources that were asked before.
    ///   - now: The present moment.
    mutating func inherit(_ previous: SourceRegistry, at now: ObservationTime) {
        // What is no longer asked, and who told us to stay away then: it may come back before its time.
        resume(previous.cooldowns(at: now), at: now)
        for index in entries.indices {
            if let same = previous.index(of: entries[index].source.name, at: entries[index].address) {
                entries[index].health = previous.entries[same].health
            }
        }
    }

    /// Where a source stands that is asked at this address; `nil` where it is not: another address is another host.
    func index(of name: String, at address: String) -> Int? {
        entries.firstIndex { $0.source.name == name && $0.address == address }
    }

    /// Whom `requester` may ask now.
    ///
    /// - Sources with a closed breaker, in their order. One that can't be asked at every tick comes after those that can: the
    ///   price would hop to it and back.
    /// - Behind them, for a tick that would fail otherwise, those that rest because they failed: a network that comes back is seen at
    ///   once that way. One that was told to stay away is never asked before its time.
    /// - A client does not get another source's price because it asks too often.
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
        if requester == .tick || (plan.order.isEmpty && plan.skippedSources.isEmpty) {
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
            plan.skippedSources.append(Skipped(source: entries[index].source.name, reason: .offPeg))
        }
        for entry in entries
        where entry.health.breaker(at: boottime) == .open && !excluded.contains(entry.source.name) {
            guard let cooldown = entry.health.cooldown,
                !plan.order.contains(where: { entries[$0].source == entry.source }),
                !plan.skippedSources.contains(where: { $0.source == entry.source.name })
            else { continue }
            plan.skippedSources.append(Skipped(source: entry.source.name, reason: .cooldowns(cooldown)))
        }
        return plan
    }

    /// Adds those that the limits allow.
    private func add(_ indices: [Int], _ requester: Requester, _ boottime: Int64, to plan: inout Plan) {
        for index in indices {
            if entries[index].health.isWithinLimits(requester, at: boottime) {
                plan.order.append(index)
            } else {
                plan.skippedSources.append(Skipped(source: entries[index].source.name, reason: .limit))
                if requester == .client, plan.order.isEmpty { return }
            }
        }
    }

    /// Counts a request, if the limits allow it still.
    mutating func take(_ index: Int, _ requester: Requester, at boottime: Int64) -> Bool {
        guard entries[index].health.isWithinLimits(requester, at: boottime) else { return false }
        entries[index].health.asked(at: boottime)
        return true
    }

    /// A question has ended.
    /// - Returns: The rest that it began, if it began one.
    mutating func ended(
        _ index: Int, _ outcome: SourceHealth.Outcome, latency: Duration, at now: ObservationTime,
        jitter: @autoclosure () -> Double
    ) -> SourceCooldown? {
        entries[index].health.ended(outcome, latency: latency, at: now, jitter: jitter())
    }

    /// A source gave a price that is not believed.
    /// - Returns: The rest that this began, if it began one.
    mutating func distrust(
        _ name: String, _ error: PriceLoadingError, at now: ObservationTime, jitter: @autoclosure () -> Double
    ) -> SourceCooldown? {
        guard let index = entries.firstIndex(where: { $0.source.name == name }) else { return nil }
        return entries[index].health.distrusted(error, at: now, jitter: jitter())
    }

    /// A source gave a price that does not fit the others'. It goes on being asked.
    mutating func doubt(_ name: String, _ error: PriceLoadingError, at now: ObservationTime) {
        guard let index = entries.firstIndex(where: { $0.source.name == name }) else { return }
        entries[index].health.doubted(error, at: now)
    }

    /// Forgets the rests that no exchange has asked for.
    /// - Parameter name: Only of this source; `nil` for all.
    /// - Returns: The sources whose rest is over now, and those that an exchange has told to stay away.
    mutating func retry(_ name: String?, at boottime: Int64) -> (retried: [String], kept: [Skipped]) {
        var (retried, kept): ([String], [Skipped]) = ([], [])
        for index in entries.indices where name == nil || entries[index].source.name == name {
            let (source, cooldown) = (entries[index].source.name, entries[index].health.cooldown)
            switch entries[index].health.retry(at: boottime) {
            case true: retried.append(source)
            case false: if let cooldown { kept.append(Skipped(source: source, reason: .cooldowns(cooldown))) }
            case nil: break
            }
        }
        return (retried, kept)
    }

    /// Goes on with the rests that an earlier run began, each at the address it was earned at.
    mutating func resume(_ cooldowns: [String: KeptCooldown], at now: ObservationTime) {
        for (name, kept) in cooldowns {
            if let index = index(of: name, at: kept.address) {
                entries[index].health.resume(kept, at: now)
            } else {
                unused[name] = kept
            }
        }
    }

    /// The rests that a restart must not cut short.
    func cooldowns(at now: ObservationTime) -> [String: KeptCooldown] {
        var cooldowns = unused.filter { $0.value.remaining(at: now) > .zero }
        for entry in entries where entry.health.isBound(at: now.boottime) {
            guard let cooldown = entry.health.cooldown else { continue }
            cooldowns[entry.source.name] = KeptCooldown(
                address: entry.address, cooldown: cooldown.dated(by: now), isOfThisBoot: true)
        }
        return cooldowns
    }

    /// Sources that can't be asked at every tick within their limits.
    package var slow: [Entry] { entries.indices.filter(isSlow).map { entries[$0] } }

    func isOffPeg(_ index: Int) -> Bool {
        passesOverTether && entries[index].source.isInTether
    }

    func isSlow(_ index: Int) -> Bool {
        entries[index].health.pace > interval
    }

    /// Whom the observer asks: first whoever's rest is over, else whoever was not asked for the longest time.
    private func observerChoice(excluding excluded: Set<String>, at boottime: Int64) -> Int? {
        let candidates = entries.indices.filter { index in
            let health = entries[index].health
            if excluded.contains(entries[index].source.name) { return false }
            let isProbe = health.breaker(at: boottime) == .halfOpen
            // With long intervals those that the ticks ask are asked rarely, and are theirs all the same.
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
