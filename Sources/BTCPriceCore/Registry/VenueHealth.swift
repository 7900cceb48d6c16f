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
