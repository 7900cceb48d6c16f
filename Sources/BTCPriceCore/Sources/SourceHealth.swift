/// The health of one source: a pure value.
///
/// Its breaker is closed until it fails too often, is rate-limited or is refused. Then a cooldown starts (open). After the cooldown
/// one probe decides (half-open). The caller supplies all times.
package struct SourceHealth: Sendable {
    /// The state of a source's circuit breaker.
    package enum Breaker: Sendable, Hashable {
        /// It is requested.
        case closed
        /// It has a cooldown.
        case open
        /// Its cooldown has ended, and a probe decides.
        case halfOpen
    }

    /// The result of a request.
    package enum Outcome: Sendable, Hashable {
        /// A valid price.
        case success
        /// No valid price, and why. Cancellations, and timeouts too short to judge the source, are not counted.
        case failure(PriceLoadingError)
    }

    /// The number of consecutive failures that opens the breaker.
    static let failuresInARow = 3
    /// The number of failures among the last twenty results that also opens it: a source that fails every second time is useless.
    static let failuresOfTwenty = 10
    /// The number of consecutive successes after which the next cooldown is short again.
    static let successesToForget = 60

    private var limiter: RequestLimiter
    /// The requests in the last period of each limit.
    private(set) var tallies: [RequestTally]
    private var recent: UInt32 = 0
    private var failuresRunning = 0
    private var successesRunning = 0
    private var consecutiveFailures = 0
    private var failureCategory: PriceLoadingError.Category?

    /// The current cooldown, or the last one if no request has succeeded since; `nil` while the breaker is closed.
    package private(set) var cooldown: SourceCooldown?
    /// When it last gave a valid price.
    package private(set) var lastSuccess: ObservationTime?
    /// When it last gave no valid price, and why.
    package private(set) var lastFailure: (at: ObservationTime, error: PriceLoadingError)?
    /// When it was last requested, `CLOCK_BOOTTIME` in milliseconds.
    private(set) var lastAsked: Int64?
    /// The number of requests since the start.
    package private(set) var requests: Int64 = 0
    /// The latencies of its last responses.
    private(set) var latencies = LatencyWindow()

    /// - Parameter limits: All limits that apply to its requests.
    package init(limits: [RequestLimit]) {
        limiter = RequestLimiter(limits)
        tallies = limits.map(RequestTally.init)
    }

    /// The state of the breaker.
    /// - Parameter boottime: The current time, `CLOCK_BOOTTIME` in milliseconds.
    package func breaker(at boottime: Int64) -> Breaker {
        guard let cooldown else { return .closed }
        return boottime < cooldown.until.boottime ? .open : .halfOpen
    }

    /// Whether a request now would make things worse.
    func isBound(at boottime: Int64) -> Bool {
        breaker(at: boottime) == .open && cooldown?.isBinding == true
    }

    /// Whether it refuses us, and its last request is so long ago that it may be requested if no other source is available.
    func mayProbeRefusal(at boottime: Int64) -> Bool {
        guard let cooldown, breaker(at: boottime) == .open, cooldown.reason.category == .refused else { return false }
        return boottime - max(cooldown.since.boottime, lastAsked ?? .min) >= CooldownRule.refusalProbe.wholeMilliseconds
    }

    /// Ends a cooldown that is not a rate limit.
    /// - Returns: Whether it was ended; `nil` if none was in effect.
    mutating func retry(at boottime: Int64) -> Bool? {
        guard let cooldown, breaker(at: boottime) == .open else { return nil }
        if case .rateLimited = cooldown.reason { return false }
        self.cooldown = nil
        consecutiveFailures = 0
        recent = 0
        failuresRunning = 0
        return true
    }

    /// The minimum time between two requests at the steady pace of its limits.
    package var pace: Duration { limiter.pace }

    /// Whether its limits allow a request now.
    package func isWithinLimits(_ requester: Requester, at boottime: Int64) -> Bool {
        limiter.admits(requester, at: boottime)
    }

    /// Counts a request.
    package mutating func asked(at boottime: Int64) {
        limiter.take(at: boottime)
        for index in tallies.indices { tallies[index].add(at: boottime) }
        requests += 1
        lastAsked = boottime
    }

    /// Records the end of a request.
    /// - Parameters:
    ///   - outcome: The result.
    ///   - latency: From the request to the end of the response.
    ///   - now: The time of the end.
    ///   - jitter: A new random number from 0 to 1, read only if a cooldown starts.
    /// - Returns: The cooldown that it started, if any.
    package mutating func ended(
        _ outcome: Outcome, latency: Duration, at now: ObservationTime, jitter: @autoclosure () -> Double
    ) -> SourceCooldown? {
        switch outcome {
        case .success:
            succeeded(latency: latency, at: now)
            return nil
        case .failure(.cancelled), .failure(.timedOut(after: nil)): return nil
        case .failure(let error): return failed(error, at: now, jitter: jitter())
        }
    }

    /// Records a well-formed response that is not believed. One such response is enough for a cooldown.
    /// - Returns: The cooldown that it started, if any.
    mutating func distrusted(
        _ error: PriceLoadingError, at now: ObservationTime, jitter: @autoclosure () -> Double
    ) -> SourceCooldown? {
        lastFailure = (now, error)
        recent = recent << 1 | 1
        successesRunning = 0
        return breaker(at: now.boottime) == .open ? nil : beginCooldown(error, at: now, jitter: jitter())
    }

    /// Records a well-formed response that does not fit the others'.
    mutating func doubted(_ error: PriceLoadingError, at now: ObservationTime) {
        lastFailure = (now, error)
    }

    /// Continues a cooldown of an earlier run.
    package mutating func resume(_ kept: KeptCooldown, at now: ObservationTime) {
        var left = kept.remaining(at: now)
        // An operator may restart the daemon after fixing the cause of a refusal, so at most the first cooldown is waited for.
        if kept.cooldown.reason.category == .refused { left = min(left, CooldownRule.bounds(.refused).first) }
        guard left > .zero else { return }
        consecutiveFailures = kept.cooldown.consecutiveFailures
        failureCategory = kept.cooldown.reason.category
        cooldown = SourceCooldown(
            reason: kept.cooldown.reason, since: kept.isOfThisBoot ? kept.cooldown.since : now,
            until: now.advanced(by: left),
            consecutiveFailures: consecutiveFailures)
    }

    private mutating func succeeded(latency: Duration, at now: ObservationTime) {
        lastSuccess = now
        latencies.add(latency)
        recent <<= 1
        failuresRunning = 0
        successesRunning += 1
        if successesRunning >= Self.successesToForget { consecutiveFailures = 0 }
        if let cooldown {
            // The request was sent before the rate limit.
            if case .rateLimited = cooldown.reason, breaker(at: now.boottime) == .open { return }
            self.cooldown = nil
            // Otherwise the next failure would open the breaker again.
            recent = 0
        }
    }

    private mutating func failed(_ error: PriceLoadingError, at now: ObservationTime, jitter: @autoclosure () -> Double)
        -> SourceCooldown?
    {
        lastFailure = (now, error)
        recent = recent << 1 | 1
        failuresRunning += 1
        successesRunning = 0
        switch breaker(at: now.boottime) {
        // Requested during its cooldown as a last resort: only a rate limit or a refusal changes the cooldown.
        case .open where !error.category.isBinding: return nil
        case .closed where !error.category.isBinding && !hasFailedTooOften: return nil
        case .open, .halfOpen, .closed: return beginCooldown(error, at: now, jitter: jitter())
        }
    }

    private mutating func beginCooldown(
        _ error: PriceLoadingError, at now: ObservationTime, jitter: @autoclosure () -> Double
    ) -> SourceCooldown {
        if failureCategory != error.category { consecutiveFailures = 0 }
        failureCategory = error.category
        consecutiveFailures += 1
        let length = CooldownRule.length(error, consecutiveFailures: consecutiveFailures, jitter: jitter())
        let begun = SourceCooldown(
            reason: error, since: now, until: now.advanced(by: length), consecutiveFailures: consecutiveFailures)
        cooldown = begun
        return begun
    }

    private var hasFailedTooOften: Bool {
        failuresRunning >= Self.failuresInARow
            || (recent & 0xF_FFFF).nonzeroBitCount >= Self.failuresOfTwenty
    }
}

extension ObservationTime {
    /// The moment that is `duration` later, on both clocks.
    func advanced(by duration: Duration) -> ObservationTime {
        let milliseconds = duration.wholeMilliseconds
        return ObservationTime(
            wall: Timestamp(milliseconds: wall.milliseconds + milliseconds), boottime: boottime + milliseconds)
    }
}
