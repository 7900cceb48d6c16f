/// The health of one market: a pure value. The caller supplies all times.
///
/// Its breaker opens when the market fails too often or gives a price that is not believed. Rate limits and refusals belong to the
/// venue: see ``VenueHealth``.
package struct MarketHealth: Sendable {
    package enum Outcome: Sendable, Hashable {
        case success
        /// No valid price, and why.
        case failure(PriceLoadingError)

        /// Whether it says something about the source: not a cancellation, nor a timeout that is too short to judge it.
        var isOfSource: Bool { self != .failure(.cancelled) && self != .failure(.timedOut(after: nil)) }
    }

    /// The number of consecutive failures that opens the breaker.
    static let failuresInARow = 3
    /// The number of failures among the last twenty results that also opens it: a source that fails every second time is useless.
    static let failuresOfTwenty = 10
    /// Equal errors from a venue's markets within this time, in milliseconds, are one response. The shortest cooldown is longer.
    static let sameResponse: Int64 = 100
    /// The number of consecutive successes after which the next cooldown is short again.
    static let successesToForget = 60

    private var recent: UInt32 = 0
    private var failuresRunning = 0
    private var successesRunning = 0

    private(set) var breaker = CircuitBreaker()
    /// When it last gave a valid price.
    package private(set) var lastSuccess: ObservationTime?
    /// When it last gave no valid price, and why.
    package private(set) var lastFailure: (at: ObservationTime, error: PriceLoadingError)?
    /// Why its last request failed; `nil` if it did not.
    var presentFailure: PriceLoadingError? { failuresRunning > 0 ? lastFailure?.error : nil }
    private(set) var latencies = LatencyWindow()
    /// The size of the body of its last response with a price, bytes; `nil` without any.
    var bodyBytes: Int?
    /// The requests that have ended since the start, by ``PriceLoadingError/kind``; `ok` for a valid price.
    package private(set) var results: [String: Int64] = [:]
    /// The number of prices that were not believed.
    package private(set) var rejections: Int64 = 0
    /// The latencies of the responses with a valid price, since the start.
    package private(set) var durations = DurationHistogram()

    /// Records the end of a request.
    /// - Parameters:
    ///   - latency: From the request to the end of the response.
    ///   - jitter: A new random number from 0 to 1, read only if a cooldown starts.
    /// - Returns: The cooldown that it started, if any.
    mutating func ended(
        _ outcome: Outcome, latency: Duration, at now: ObservationTime, venue: inout VenueHealth,
        jitter: @autoclosure () -> Double
    ) -> SourceCooldown? {
        switch outcome {
        case .success:
            results["ok", default: 0] += 1
            durations.add(latency)
            succeeded(latency: latency, at: now, venue: &venue)
            return nil
        case .failure(let error):
            results[error.kind, default: 0] += 1
            guard outcome.isOfSource else { return nil }
            return failed(error, at: now, venue: &venue, jitter: jitter())
        }
    }

    /// Records a well-formed response that is not believed. One such response is enough for a cooldown.
    /// - Returns: The cooldown that it started, if any.
    mutating func rejected(
        _ error: PriceLoadingError, at now: ObservationTime, jitter: @autoclosure () -> Double
    ) -> SourceCooldown? {
        lastFailure = (now, error)
        rejections += 1
        recent = recent << 1 | 1
        successesRunning = 0
        return breaker.state(at: now.boottime) == .open ? nil : breaker.open(error, at: now, jitter: jitter())
    }

    /// Records a well-formed response that does not agree with the other sources.
    mutating func doubted(_ error: PriceLoadingError, at now: ObservationTime) {
        lastFailure = (now, error)
    }

    mutating func retry() {
        breaker.reset()
        recent = 0
        failuresRunning = 0
    }

    private mutating func succeeded(latency: Duration, at now: ObservationTime, venue: inout VenueHealth) {
        lastSuccess = now
        latencies.add(latency)
        recent <<= 1
        failuresRunning = 0
        successesRunning += 1
        if successesRunning >= Self.successesToForget {
            breaker.forget()
            venue.breaker.forget()
        }
        if let cooldown = venue.breaker.cooldown {
            // The request was sent before the venue reported the rate limit.
            if case .rateLimited = cooldown.reason, venue.breaker.state(at: now.boottime) == .open { return }
            venue.breaker.close()
            recent = 0
        }
        if breaker.cooldown != nil {
            breaker.close()
            // Otherwise the next failure would open the breaker again.
            recent = 0
        }
    }

    private mutating func failed(
        _ error: PriceLoadingError, at now: ObservationTime, venue: inout VenueHealth,
        jitter: @autoclosure () -> Double
    ) -> SourceCooldown? {
        lastFailure = (now, error)
        recent = recent << 1 | 1
        failuresRunning += 1
        successesRunning = 0
        if error.category.isBinding {
            breaker.reset()
            // Markets that share a request report the same response, one after the other.
            if let known = venue.breaker.cooldown, known.reason == error,
                now.boottime - known.since.boottime <= Self.sameResponse
            {
                return known
            }
            return venue.breaker.open(error, at: now, jitter: jitter())
        }
        switch breaker.state(at: now.boottime, venue.breaker) {
        case let state where error.retryAfter != nil:
            if state != .open { venue.breaker.reset() }
            return breaker.open(error, at: now, jitter: jitter())
        // Requested during its cooldown as a last resort: only a rate limit or a refusal changes the cooldown.
        case .open: return nil
        case .closed where !hasFailedTooOften: return nil
        case .closed, .halfOpen:
            venue.breaker.reset()
            return breaker.open(error, at: now, jitter: jitter())
        }
    }

    private var hasFailedTooOften: Bool {
        failuresRunning >= Self.failuresInARow
            || (recent & 0xF_FFFF).nonzeroBitCount >= Self.failuresOfTwenty
    }
}

/// A ring buffer of the latencies of a source's last 128 responses.
package struct LatencyWindow: Sendable, Hashable {
    private static let capacity = 128
    private var milliseconds: [UInt32] = []
    private var next = 0

    /// The number of latencies, at most 128.
    package var count: Int { milliseconds.count }

    package mutating func add(_ latency: Duration) {
        let value = UInt32(clamping: latency.wholeMilliseconds)
        if milliseconds.count < Self.capacity {
            milliseconds.append(value)
        } else {
            milliseconds[next] = value
        }
        next = (next + 1) % Self.capacity
    }

    /// The latency that `percent` percent of the responses did not exceed (nearest rank); `nil` if the window is empty.
    func percentile(_ percent: Int) -> Duration? {
        guard !milliseconds.isEmpty else { return nil }
        let rank = max(1, (milliseconds.count * min(max(percent, 0), 100) + 99) / 100)
        return .milliseconds(Int64(milliseconds.sorted()[rank - 1]))
    }
}
