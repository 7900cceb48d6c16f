/// How a source is, and whether it is used: what an operator is told of it.
package struct SourceReport: Sendable, Hashable {
    /// Why a source is used or not.
    package enum Use: String, Sendable, Hashable, CaseIterable {
        /// The price that is shown is its.
        case current
        /// It is well, and asked if those before it give nothing.
        case ready
        /// It is well, and can't be asked at every tick within its limits: it comes after those that can.
        case slow
        /// It was asked as often as its limits allow, for the moment.
        case full
        /// It was not asked since the start.
        case untried
        /// It gave nothing the last time, and is asked again.
        case failing
        /// It rests, since it failed too often.
        case resting
        /// Its rest is over: how the next question to it ends decides.
        case probing
        /// It said that it is asked too often, and rests until it may be asked again.
        case limited
        /// It refuses us, and is asked again only rarely.
        case refused
        /// It needs a key, and none was given: it is never asked.
        case noKey
        /// It quotes in USDT, which is off its peg: it is passed over until that is over.
        case offPeg

        /// One letter for a table, as chronyc(1) has them.
        package var letter: Character {
            switch self {
            case .current: "*"
            case .ready: "+"
            case .slow: "~"
            case .full: "="
            case .untried: " "
            case .failing: "!"
            case .resting: "z"
            case .probing: "?"
            case .limited: "L"
            case .refused: "R"
            case .noKey: "K"
            case .offPeg: "U"
            }
        }
    }

    /// The last question to which it gave no price.
    package struct Failure: Sendable, Hashable {
        /// When.
        package let at: Timestamp
        /// The kind, one word: ``PriceLoadingError/kind``.
        package let kind: String
        /// Why, in one line.
        package let reason: String

        /// A failure of which every part is given.
        package init(at: Timestamp, kind: String, reason: String) {
            self.at = at
            self.kind = kind
            self.reason = reason
        }
    }

    /// How long its last answers took: so many of a hundred within so many milliseconds.
    package struct Latency: Sendable, Hashable {
        /// Half of them.
        package let p50: Int64
        /// Nine of ten.
        package let p90: Int64
        /// Ninety-nine of a hundred.
        package let p99: Int64
        /// How many answers that is: the last 128 at most.
        package let answers: Int64

        /// A latency of which every part is given, in milliseconds.
        package init(p50: Int64, p90: Int64, p99: Int64, answers: Int64) {
            self.p50 = p50
            self.p90 = p90
            self.p99 = p99
            self.answers = answers
        }
    }

    /// A published limit, and what of it is used up.
    package struct Limit: Sendable, Hashable {
        /// The most requests in any span of the period.
        package let requests: Int64
        /// The period in milliseconds.
        package let period: Int64
        /// The requests made in the period that ends now.
        package let made: Int64

        /// A limit of which every part is given.
        package init(requests: Int64, period: Int64, made: Int64) {
            self.requests = requests
            self.period = period
            self.made = made
        }
    }

    /// Its name.
    package var name: String
    /// Its place in the configured order, from 1.
    package var order: Int64
    /// The market it is read from.
    package var market: String
    /// The base address it is asked at.
    package var address: String
    /// Whether it is used, and why.
    package var use: Use
    /// When it last gave a price.
    package var lastSuccess: Timestamp?
    /// That price.
    package var lastPrice: Price?
    /// Whether it is asked at another address than the exchange's own: a simulator, a mirror or a proxy.
    package var isElsewhere = false
    /// When it last gave none, and why.
    package var lastFailure: Failure?
    /// How long its last answers took; `nil` without any.
    package var latency: Latency?
    /// Until when it is not asked, where it rests.
    package var cooldownUntil: Timestamp?
    /// How often it was asked since the start.
    package var requests: Int64
    /// The limits it publishes.
    package var limits: [Limit]

    /// A report of which every part is given.
    package init(
        name: String, order: Int64, market: String, address: String, use: Use, lastSuccess: Timestamp? = nil,
        lastFailure: Failure? = nil, latency: Latency? = nil, cooldownUntil: Timestamp? = nil, requests: Int64 = 0,
        limits: [Limit] = []
    ) {
        self.name = name
        self.order = order
        self.market = market
        self.address = address
        self.use = use
        self.lastSuccess = lastSuccess
        self.lastFailure = lastFailure
        self.latency = latency
        self.cooldownUntil = cooldownUntil
        self.requests = requests
        self.limits = limits
    }

    /// A source that is configured and can't be asked, since it needs a key.
    package init(withoutKey source: PriceSource, address: String, order: Int64) {
        self.init(
            name: source.name, order: order, market: source.market, address: address, use: .noKey,
            limits: source.limits.map {
                Limit(requests: Int64($0.requests), period: $0.period.wholeMilliseconds, made: 0)
            })
    }
}

extension SourceRegistry {
    /// How every source is.
    /// - Parameters:
    ///   - now: The present moment.
    ///   - shown: The sources of the price that is shown as current.
    package func reports(at now: ObservationTime, shown: Set<String>) -> [SourceReport] {
        entries.indices.map { index in
            let (source, health) = (entries[index].source, entries[index].health)
            let isOpen = health.breaker(at: now.boottime) == .open
            return SourceReport(
                name: source.name, order: Int64(index + 1), market: source.market, address: entries[index].address,
                use: use(of: index, at: now.boottime, shown: shown),
                lastSuccess: health.lastSuccess.map { now.wallTime(of: $0.boottime) },
                lastFailure: health.lastFailure.map { failure in
                    SourceReport.Failure(
                        at: now.wallTime(of: failure.at.boottime), kind: failure.error.kind,
                        reason: failure.error.description)
                },
                latency: SourceReport.Latency(health.latencies),
                cooldownUntil: isOpen ? health.cooldown.map { now.wallTime(of: $0.until.boottime) } : nil,
                requests: health.requests,
                limits: health.tallies.prefix(source.limits.count).map { tally in
                    SourceReport.Limit(
                        requests: Int64(tally.limit.requests), period: tally.limit.period.wholeMilliseconds,
                        made: Int64(tally.count(at: now.boottime)))
                })
        }
    }

    private func use(of index: Int, at boottime: Int64, shown: Set<String>) -> SourceReport.Use {
        let health = entries[index].health
        switch health.breaker(at: boottime) {
        case .open:
            switch health.cooldown?.reason.category {
            case .rateLimited: return .limited
            case .refused: return .refused
            default: return .resting
            }
        case .halfOpen: return .probing
        case .closed: break
        }
        if isOffPeg(index) { return .offPeg }
        if let failure = health.lastFailure, failure.at.boottime >= health.lastSuccess?.boottime ?? .min {
            return .failing
        }
        if shown.contains(entries[index].source.name) { return .current }
        if health.lastSuccess == nil { return .untried }
        if !health.isWithinLimits(.tick, at: boottime) { return .full }
        return isSlow(index) ? .slow : .ready
    }
}

extension SourceReport.Latency {
    fileprivate init?(_ window: LatencyWindow) {
        guard let half = window.percentile(50), let most = window.percentile(90), let all = window.percentile(99)
        else { return nil }
        self.init(
            p50: half.wholeMilliseconds, p90: most.wholeMilliseconds, p99: all.wholeMilliseconds,
            answers: Int64(window.count))
    }
}

extension ObservationTime {
    /// What the wall clock, as it is set now, says of another moment of this boot.
    /// - Parameter boottime: That moment, `CLOCK_BOOTTIME` in milliseconds.
    package func wallTime(of boottime: Int64) -> Timestamp {
        Timestamp(milliseconds: wall.milliseconds - (self.boottime - boottime))
    }
}
