/// The condition and the use of a source, for an operator.
package struct SourceReport: Sendable, Hashable {
    /// Why a source is used or not.
    package enum Use: String, Sendable, Hashable, CaseIterable {
        /// It supplies the price that is shown.
        case current
        /// It works, and is requested if the sources before it have no price.
        case ready
        /// It works, but its limits don't allow a request at every tick. It comes after the sources whose limits do.
        case slow
        /// Its limits allow no request at the moment.
        case full
        /// It has not been requested since the start.
        case untried
        /// Its last request failed. It is still requested.
        case failing
        /// It has a cooldown because it failed too often.
        case resting
        /// Its cooldown has ended. The result of the next request decides.
        case probing
        /// The exchange reported too many requests. The source has a cooldown until it may be requested again.
        case limited
        /// It refuses requests, and is requested only rarely.
        case refused
        /// It needs a key, but none was given. It is never requested.
        case noKey
        /// From a daemon of version 0.1.0: it quotes in USDT, and is skipped while USDT is off its peg.
        case offPeg

        /// One letter for a table, like those of chronyc(1).
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

    /// The last request that gave no price.
    package struct Failure: Sendable, Hashable {
        package var at: Timestamp
        /// The kind in one word: ``PriceLoadingError/kind``.
        package var kind: String
        /// The reason in one line.
        package var reason: String
        package var cause: PriceLoadingError.Cause?

        package init(at: Timestamp, kind: String, reason: String, cause: PriceLoadingError.Cause? = nil) {
            self.at = at
            self.kind = kind
            self.reason = reason
            self.cause = cause
        }
    }

    /// Percentiles of the latency of its last responses, in milliseconds.
    package struct Latency: Sendable, Hashable {
        package var p50: Int64
        package var p90: Int64
        package var p99: Int64
        /// The number of responses, at most the last 128.
        package var answers: Int64

        package init(p50: Int64, p90: Int64, p99: Int64, answers: Int64) {
            self.p50 = p50
            self.p90 = p90
            self.p99 = p99
            self.answers = answers
        }
    }

    /// A published limit and its current use.
    package struct Limit: Sendable, Hashable {
        /// The maximum number of requests in any span of the period.
        package var requests: Int64
        /// The period in milliseconds.
        package var period: Int64
        /// The number of requests in the period that ends now.
        package var made: Int64

        package init(requests: Int64, period: Int64, made: Int64) {
            self.requests = requests
            self.period = period
            self.made = made
        }
    }

    package var name: String
    /// Its place in the configured order, from 1.
    package var order: Int64
    /// The market it is read from.
    package var market: String
    package var address: String
    package var use: Use
    /// The last decision's verdict on its price; `nil` if there is none.
    package var verdict: MarketVerdict?
    /// Its part in the last vote; `nil` if it had none.
    package var claim: MarketClaim?
    /// When it last gave a price.
    package var lastSuccess: Timestamp?
    /// Its last valid price, requested or pushed.
    package var lastPrice: Price?
    /// The highest bid at ``lastSuccess``, in the currency of ``market``; `nil` if its response has none.
    package var bid: Price?
    /// The lowest ask, as ``bid``.
    package var ask: Price?
    /// How its newest price arrived; `nil` without a current one.
    package var way: PriceWay?
    /// Whether an administrator has switched it off. It is not requested then; ``use`` is as if it were new.
    package var isOff = false
    /// ``use`` as a letter, or `-` if it is switched off.
    package var letter: Character { isOff ? "-" : use.letter }
    /// Whether its address is not the exchange's own: a simulator, a mirror or a proxy.
    package var isElsewhere = false
    /// Its time minus this machine's, milliseconds; `nil` if they agree within a minute, or if it is not known.
    package var clockDifference: Int64?
    /// The last request that gave no price.
    package var lastFailure: Failure?
    /// The latency of its last responses; `nil` without any.
    package var latency: Latency?
    /// The size of the body of its last response with a price, bytes; `nil` without any. Markets that share a request have the same.
    package var bodyBytes: Int64?
    /// When its cooldown ends; `nil` without one.
    package var cooldownUntil: Timestamp?
    /// The number of requests since the start.
    package var requests: Int64
    package var limits: [Limit]

    package init(
        name: String, order: Int64, market: String, address: String, use: Use, verdict: MarketVerdict? = nil,
        lastSuccess: Timestamp? = nil, lastFailure: Failure? = nil, latency: Latency? = nil,
        bodyBytes: Int64? = nil, cooldownUntil: Timestamp? = nil, requests: Int64 = 0,
        limits: [Limit] = []
    ) {
        self.name = name
        self.order = order
        self.market = market
        self.address = address
        self.use = use
        self.verdict = verdict
        self.lastSuccess = lastSuccess
        self.lastFailure = lastFailure
        self.latency = latency
        self.bodyBytes = bodyBytes
        self.cooldownUntil = cooldownUntil
        self.requests = requests
        self.limits = limits
    }

    /// While the price is not current, no source is in use.
    package mutating func becomeUnused() {
        (verdict, claim) = (nil, nil)
        if use == .current { use = .ready }
    }

    /// The report of a configured source that is never requested.
    package init(_ venue: Venue, _ market: Market, at address: String, order: Int64, use: Use) {
        self.init(
            name: venue.name, order: order, market: market.pair, address: address, use: use,
            limits: venue.limits.map {
                Limit(requests: Int64($0.requests), period: $0.period.wholeMilliseconds, made: 0)
            })
    }
}

extension SourceReport.Latency {
    init?(_ window: LatencyWindow) {
        guard let half = window.percentile(50), let most = window.percentile(90), let all = window.percentile(99)
        else { return nil }
        self.init(
            p50: half.wholeMilliseconds, p90: most.wholeMilliseconds, p99: all.wholeMilliseconds,
            answers: Int64(window.count))
    }
}

/// A source that is not requested this time, and why.
package struct Skipped: Sendable, Hashable, CustomStringConvertible {
    package enum Reason: Sendable, Hashable {
        case cooldown(SourceCooldown)
        case limit
    }

    package let source: String
    package let reason: Reason
    /// Why its last request failed; `nil` if it did not, or if that is not known.
    var lastFailure: PriceLoadingError?

    /// `binance: cooldown until 2026-11-21 14:32:10 UTC, rate limited: HTTP 418`
    package var description: String {
        switch reason {
        case .cooldown(let cooldown): "\(source): cooldown until \(cooldown.until.wall.utcText), \(cooldown.reason)"
        case .limit: "\(source): requested as often as its limit allows"
        }
    }
}

/// What a decision says about one market.
package enum MarketVerdict: String, Sendable, Hashable, CaseIterable {
    /// Its price is shown, or counts in the median that is shown.
    case used
    /// Its price agrees with the one that is shown.
    case agrees
    /// Its price is too far from the one that is shown.
    case disagrees
    /// Its price is too far from the median.
    case outlier
    /// No longer given: its price has not changed for so long that it says nothing about the present.
    case unchanged
    /// Its price is older than the move that is judged.
    case old
    /// It gave no valid price.
    case failed
    /// It was not requested: it has a cooldown, or its limits allow no request.
    case skipped
    /// It was not needed.
    case notNeeded
}
