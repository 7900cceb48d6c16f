extension SourceRegistry {
    /// The reports of the sources of one currency.
    /// - Parameters:
    ///   - markets: The sources in question, those of one currency.
    ///   - verdicts: What the last decision said about each market.
    package func reports(
        of markets: [Market], at now: ObservationTime, _ verdicts: [Market: MarketVerdict]
    ) -> [SourceReport] {
        entries.indices.filter { markets.contains(entries[$0].source.market) }.enumerated().map { rank, index in
            let (source, health, venue) = (entries[index].source, entries[index].health, health(index))
            let verdict = verdicts[source.market]
            // Of a cooldown from before this source was switched off, or from an earlier run, the reason is kept.
            let cooldown = isCoolingDown(index, at: now.boottime) ? cooldown(index) : nil
            let lastFailure = health.lastFailure ?? cooldown.map { ($0.since, $0.reason) }
            return SourceReport(
                name: source.name, order: Int64(rank + 1), market: source.market.pair, address: source.address,
                use: use(of: index, at: now.boottime, isShown: verdict == .used), verdict: verdict,
                lastSuccess: health.lastSuccess.map { now.wallTime(of: $0.boottime) },
                lastFailure: lastFailure.map { failure in
                    SourceReport.Failure(
                        at: now.wallTime(of: failure.at.boottime), kind: failure.error.kind,
                        reason: failure.error.description, cause: failure.error.cause)
                },
                latency: SourceReport.Latency(health.latencies), bodyBytes: health.bodyBytes.map(Int64.init),
                cooldownUntil: cooldown.map { now.wallTime(of: $0.until.boottime) },
                requests: venue.requests,
                limits: venue.tallies.prefix(source.venue.limits.count).map { tally in
                    SourceReport.Limit(
                        requests: Int64(tally.limit.requests), period: tally.limit.period.wholeMilliseconds,
                        made: Int64(tally.count(at: now.boottime)))
                })
        }
    }

    private func use(of index: Int, at boottime: BootTime, isShown: Bool) -> SourceReport.Use {
        switch breaker(index, at: boottime) {
        case .open:
            switch cooldown(index)?.reason.category {
            case .rateLimited: return .limited
            case .refused: return .refused
            default: return .resting
            }
        case .halfOpen: return .probing
        case .closed: break
        }
        let health = entries[index].health
        if let failure = health.lastFailure, failure.at.boottime >= health.lastSuccess?.boottime ?? .min {
            return .failing
        }
        if isShown { return .current }
        if health.lastSuccess == nil { return .untried }
        if !isWithinLimits(index, .tick, at: boottime) { return .full }
        return isSlow(index) ? .slow : .ready
    }
}
