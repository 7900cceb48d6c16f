/// The health of one venue, shared by its markets: its limits, its bans and its refusals. A pure value. The caller supplies all times.
package struct VenueHealth: Sendable {
    var limiter: RequestLimiter
    /// The requests in the last period of each limit.
    private(set) var tallies: [RequestTally]
    /// Open while the venue limits or refuses the daemon's requests.
    var breaker = CircuitBreaker()
    private(set) var lastRequest: BootTime?
    /// The number of requests since the start.
    package private(set) var requests: Int64 = 0

    /// - Parameter limits: All limits that apply to its requests.
    init(limits: [RequestLimit]) {
        limiter = RequestLimiter(limits)
        tallies = limits.map(RequestTally.init)
    }

    /// Whether a ban, a rate limit or a refusal is in force.
    func isBound(at boottime: BootTime) -> Bool { breaker.state(at: boottime) == .open }

    /// Whether it refuses requests, and may be requested now if no other source is available: its last request was long ago.
    func mayProbeRefusal(at boottime: BootTime) -> Bool {
        guard let cooldown = breaker.cooldown, isBound(at: boottime), cooldown.reason.category == .refused else {
            return false
        }
        return boottime - max(cooldown.since.boottime, lastRequest ?? .min)
            >= CooldownRule.refusalProbe.wholeMilliseconds
    }

    mutating func requested(by requester: Requester, at boottime: BootTime) {
        limiter.take(requester, at: boottime)
        for index in tallies.indices { tallies[index].add(at: boottime) }
        requests += 1
        lastRequest = boottime
    }

    /// Takes over what is known of the same venue, but for its limits, which may have changed.
    mutating func adopt(_ previous: VenueHealth) {
        limiter.adopt(previous.limiter, lastRequest: previous.lastRequest)
        if tallies.map(\.limit) == previous.tallies.map(\.limit) { tallies = previous.tallies }
        breaker = previous.breaker
        lastRequest = previous.lastRequest
        requests = previous.requests
    }
}

/// Counts the requests in the last period of a limit, for display: a pure value. ``RequestLimiter`` does not use it.
///
/// Counts in thirtieths of the period. The count is never too low, and too high by at most the requests of one thirtieth.
struct RequestTally: Sendable {
    private static let parts: Int64 = 30

    let limit: RequestLimit
    private let part: Int64
    private var counts = [UInt32](repeating: 0, count: Int(parts) + 1)
    private var newest: Int64 = .min

    init(_ limit: RequestLimit) {
        self.limit = limit
        part = max(1, limit.period.wholeMilliseconds / Self.parts)
    }

    mutating func add(at boottime: BootTime) {
        moveOn(to: boottime.milliseconds / part)
        counts[slot(newest)] += 1
    }

    func count(at boottime: BootTime) -> Int {
        var copy = self
        copy.moveOn(to: boottime.milliseconds / part)
        return copy.counts.reduce(0) { $0 + Int($1) }
    }

    private mutating func moveOn(to present: Int64) {
        guard present > newest else { return }
        let passed = newest == .min ? Int64(counts.count) : present - newest
        for step in 0..<min(passed, Int64(counts.count)) { counts[slot(present - step)] = 0 }
        newest = present
    }

    private func slot(_ number: Int64) -> Int {
        // Negative if the machine has run for less than the period.
        let count = Int64(counts.count)
        return Int((number % count + count) % count)
    }
}
