/// How one source is: a pure value.
///
/// Its breaker is closed until it fails too often or is told to stay away; then it rests (open), and when the rest is over one
/// probe decides (half-open). Everything is dated by the caller.
package struct SourceHealth: Sendable {
    /// Whether a source is asked.
    package enum Breaker: Sendable, Hashable {
        /// It is asked.
        case closed
        /// It rests.
        case open
        /// Its rest is over, and a probe decides.
        case halfOpen
    }

    /// How a question to it ended.
    package enum Outcome: Sendable, Hashable {
        /// A valid price.
        case success
        /// No valid price, and why. Cancellation, and time that was too short to judge by, count nowhere.
        case failure(PriceLoadingError)
    }

    /// So many failures in a row open the breaker.
    static let failuresInARow = 3
    /// So many failures among the last twenty open it too: one that fails every second time is of no use.
    static let failuresOfTwenty = 10
    /// So many successes in a row, and the next rest is a short one again.
    static let successesToForget = 60

    private var limiter: RequestLimiter
    /// The requests of the last period of each limit.
    private(set) var tallies: [RequestTally]
    private var recent: UInt32 = 0
    private var failuresRunning = 0
    private var successesRunning = 0
    private var consecutiveFailures = 0
    private var failureCategory: PriceLoadingError.Category?

    /// The rest it is in or came out of last without a success since; `nil` while the breaker is closed.
    package private(set) var cooldown: SourceCooldown?
    /// When it last gave a valid price.
    package private(set) var lastSuccess: ObservationTime?
    /// When it last gave none, and why.
    package private(set) var lastFailure: (at: ObservationTime, error: PriceLoadingError)?
    /// When it was last asked, `CLOCK_BOOTTIME` in milliseconds.
    private(set) var lastAsked: Int64?
    /// How often it was asked since the start.
    package private(set) var requests: Int64 = 0
    /// How long its last answers took.
    private(set) var latencies = LatencyWindow()

    /// - Parameter limits: All limits that it is asked within.
    package init(limits: [RequestLimit]) {
        limiter = RequestLimiter(limits)
        tallies = limits.map(RequestTally.init)
    }

    /// The state of the breaker.
    /// - Parameter boottime: Now, `CLOCK_BOOTTIME` in milliseconds.
    package func breaker(at boottime: Int64) -> Breaker {
        guard let cooldown else { return .closed }
        return boottime < cooldown.until.boottime ? .open : .halfOpen
    }

    /// Whether asking it now would make things worse.
    func isBound(at boottime: Int64) -> Bool {
        breaker(at: boottime) == .open && cooldown?.isBinding == true
    }

    /// Whether it refuses us, and was not asked for so long that it may be asked again if nobody else is left.
    func mayProbeRefusal(at boottime: Int64) -> Bool {
        guard let cooldown, breaker(at: boottime) == .open, cooldown.reason.category == .refused else { return false }
        return boottime - max(cooldown.since.boottime, lastAsked ?? .min) >= CooldownRule.refusalProbe.wholeMilliseconds
    }

    /// Forgets a rest that no exchange has asked for.
    /// - Returns: Whether there is none any more; `nil` if there was none.
    mutating func retry(at boottime: Int64) -> Bool? {
        guard let cooldown, breaker(at: boottime) == .open else { return nil }
        if case .rateLimited = cooldown.reason { return false }
        self.cooldown = nil
        consecutiveFailures = 0
        recent = 0
        failuresRunning = 0
        return true
    }

    /// The least time between two requests at the steady pace of its limits.
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

    /// A question has ended.
    /// - Parameters:
    ///   - outcome: How.
    ///   - latency: From asking to the end of the answer.
    ///   - now: When.
    ///   - jitter: Draws from 0 to 1, anew each time: only where a rest begins.
    /// - Returns: The rest that it began, if it began one.
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

    /// Its last answer was well-formed and is not believed: one such answer is enough for a rest.
    /// - Returns: The rest that this began, if it began one.
    mutating func distrusted(
        _ error: PriceLoadingError, at now: ObservationTime, jitter: @autoclosure () -> Double
    ) -> SourceCooldown? {
        lastFailure = (now, error)
        recent = recent << 1 | 1
        successesRunning = 0
        return breaker(at: now.boottime) == .open ? nil : beginRest(error, at: now, jitter: jitter())
    }

    /// Its last answer was well-formed and does not fit the others'.
    mutating func doubted(_ error: PriceLoadingError, at now: ObservationTime) {
        lastFailure = (now, error)
    }

    /// Goes on with a rest that an earlier run began.
    package mutating func resume(_ kept: KeptCooldown, at now: ObservationTime) {
        var left = kept.remaining(at: now)
        // A restart is how an operator says that a refusal was mended: it is not waited out to the end.
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
            // It was asked before it told us to stay away.
            if case .rateLimited = cooldown.reason, breaker(at: now.boottime) == .open { return }
            self.cooldown = nil
            // It starts with a clean slate, or the next failure would open the breaker again.
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
        // Asked although it rests, because nobody else was left: that changes nothing unless it was told to stay away.
        case .open where !error.category.isBinding: return nil
        case .closed where !error.category.isBinding && !hasFailedTooOften: return nil
        case .open, .halfOpen, .closed: return beginRest(error, at: now, jitter: jitter())
        }
    }

    private mutating func beginRest(
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
    /// The moment so much later, on both clocks.
    func advanced(by duration: Duration) -> ObservationTime {
        let milliseconds = duration.wholeMilliseconds
        return ObservationTime(
            wall: Timestamp(milliseconds: wall.milliseconds + milliseconds), boottime: boottime + milliseconds)
    }
}
