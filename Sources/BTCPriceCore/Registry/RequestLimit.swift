/// An exchange's limit for one address: at most ``requests`` in any span of ``period``.
package struct RequestLimit: Sendable, Hashable {
    /// The maximum number of requests; at least 1.
    package let requests: Int
    /// The length of the span; above zero.
    package let period: Duration

    package init(_ requests: Int, per period: Duration) {
        precondition(requests >= 1 && period > .zero, "a limit allows at least one request")
        self.requests = requests
        self.period = period
    }

    /// A tenth of it: in a shorter burst if that still allows ten requests, otherwise over a longer span.
    var tenth: RequestLimit {
        requests >= 100 ? RequestLimit(requests / 10, per: period) : RequestLimit(requests, per: period * 10)
    }
}

/// The classes of requesters, which share the limits of an exchange.
package enum Requester: Sendable, Hashable {
    /// The ticks. They have priority.
    case tick
    /// A price that must be confirmed before the next tick.
    case confirmation
    /// The observer that runs alongside the ticks.
    case observer
    /// A client that wants a newer price than the last tick's, or a minute of the past.
    case client
    /// The backfill of the history.
    case candles
}

/// Keeps the requests to one source within all of its limits, and shares them among the requesters: a pure value.
///
/// Each limit is a generic cell rate algorithm (ITU-T I.371): a steady pace with room for a small burst. Both together never exceed
/// the limit in any span of its period, so it needs no history and no window that restarts.
///
/// - The ticks have priority: the others leave them a third of a burst, or without a burst, the time before their next request.
/// - Clients have a tenth of each limit, all together: they decide when they call, and the limit is that of the machine's address.
/// - The others are served in turn: if there is not enough for all, the one that has waited longest is next.
/// - If the ticks leave nothing, a requester that has said when it comes again (for candles or a client's minute) gets every tenth
///   request, but not that of two ticks in a row.
struct RequestLimiter: Sendable {
    /// One limit. All times are microseconds of `CLOCK_BOOTTIME`.
    private struct Gate {
        /// The time between two requests at the steady pace.
        let spacing: Int64
        /// How many requests may come at once.
        let burst: Int64
        /// When the next request is due at the steady pace.
        var arrival: Int64 = .min / 2

        init(_ limit: RequestLimit) {
            // A tenth is left unused: requests that are sent evenly may arrive closer together.
            let usable = limit.requests >= 10 ? limit.requests * 9 / 10 : limit.requests
            burst = Int64(max(1, usable * 3 / 10))
            spacing = limit.period.wholeMicroseconds / max(1, Int64(usable) - (usable > 1 ? burst : 0))
        }

        /// As if the whole burst had been used at this time.
        mutating func useUp(at boottime: BootTime) { arrival = boottime.milliseconds * 1000 + spacing * burst }

        mutating func take(at boottime: BootTime) {
            arrival = max(arrival, boottime.milliseconds * 1000) + spacing
        }

        /// How many requests of a burst are left to the ticks.
        var ticksPart: Int64 { (burst + 2) / 3 }

        /// The earliest time of a request that conforms and leaves `room` requests to others.
        func opens(leaving room: Int64) -> Int64 {
            arrival - (burst - 1 - min(room, burst - 1)) * spacing
        }
    }

    /// A requester that was refused.
    private struct Waiting {
        let since: BootTime
        /// When it comes again, if it has said so.
        var comes: BootTime?
        /// Its turn is kept until then.
        var until: BootTime
    }

    /// When the ticks are expected to send the next request, and the time between two of them, milliseconds.
    struct NextTick {
        let due: BootTime
        let interval: Int64
    }

    /// The number of requests of the ticks, after which one that waits is served before them.
    private static let ticksBeforeTurn = 9
    /// A tick may come this much earlier or later than expected, and waits as long for a limit, milliseconds.
    static let tickJitter: Int64 = 50

    /// The minimum time between two requests at the steady pace.
    let pace: Duration
    private var gates: [Gate]
    /// The clients' tenth of each limit.
    private var gatesOfClients: [Gate]
    private var waiting: [Requester: Waiting] = [:]
    /// The requests of the ticks since another requester waits.
    private var ticksMeanwhile = 0
    /// Whether the last tick was refused.
    private var hasRefusedTick = false

    init(_ limits: [RequestLimit]) {
        gates = limits.map(Gate.init)
        pace = .microseconds(gates.map(\.spacing).max() ?? 0)
        gatesOfClients = limits.map { Gate($0.tenth) }
    }

    /// Takes over what an earlier limiter of the same venue has counted. The limits stay.
    mutating func adopt(_ previous: RequestLimiter, lastRequest: BootTime?) {
        for index in gates.indices {
            if index < previous.gates.count, previous.gates[index].spacing == gates[index].spacing {
                gates[index].arrival = previous.gates[index].arrival
                gatesOfClients[index].arrival = previous.gatesOfClients[index].arrival
            } else if let lastRequest {
                // How much of a changed limit is used is not known.
                gates[index].useUp(at: lastRequest)
                gatesOfClients[index].useUp(at: lastRequest)
            }
        }
    }

    /// The earliest time at which a requester may send a request, or should ask again.
    /// - Parameter nextTick: The next request of the ticks; `nil` if they do not use the venue at present.
    func opens(for requester: Requester, at boottime: BootTime, nextTick: NextTick? = nil) -> BootTime {
        let owed = owed(at: boottime)
        if requester == .tick {
            // Another one comes now.
            let isTaken = owed.flatMap { waiting[$0]?.comes }.map { abs($0 - boottime) <= Self.tickJitter } == true
            let opens = max(Self.opens(gates) { isTaken && $0.burst > 1 ? 1 : 0 }, boottime)
            return isTaken && gates.contains { $0.burst == 1 } ? max(opens, boottime + Self.tickJitter + 1) : opens
        }
        if requester == .client, case let own = Self.opens(gatesOfClients, { _ in 0 }), own > boottime { return own }
        let isOwed = requester == owed
        let next = longestWaiting(at: boottime)
        let isNext = isOwed || next == nil || next == requester
        if !isNext, gates.contains(where: { $0.ticksPart + 2 > $0.burst }) {
            return max(Self.opens(gates) { $0.ticksPart }, boottime + Self.tickJitter)
        }
        let opens = max(Self.opens(gates) { isOwed ? 0 : $0.ticksPart + (isNext ? 0 : 1) }, boottime)
        guard let spacing = gates.filter({ $0.burst == 1 }).map({ ($0.spacing + 999) / 1000 }).max(), let nextTick,
            opens + spacing + Self.tickJitter > nextTick.due
        else { return opens }
        // If the limit does not allow a request for each tick, it can't be kept from refusing two in a row.
        let isSlow = spacing > nextTick.interval + Self.tickJitter
        let leavesNextButOne = opens + spacing <= nextTick.due + nextTick.interval + Self.tickJitter
        if isOwed, isSlow || leavesNextButOne && !hasRefusedTick { return opens }
        return max(boottime + Self.tickJitter, nextTick.due + 1)
    }

    /// Whether it is as if no request had been sent.
    func isUnused(at boottime: BootTime) -> Bool { gates.allSatisfy { $0.arrival <= boottime.milliseconds * 1000 } }

    /// Records that a requester was refused, and will ask again.
    /// - Parameters:
    ///   - comes: When it asks again; `nil` if that is not known.
    ///   - until: Its turn is kept until then.
    mutating func wait(_ requester: Requester, at boottime: BootTime, comes: BootTime? = nil, until: BootTime) {
        guard requester != .tick else {
            // If it was refused in favour of one that asks now, that one may still be served.
            hasRefusedTick = owed(at: boottime) == nil
            return
        }
        // A client that has used up the clients' tenth keeps no other one waiting.
        if requester == .client, Self.opens(gatesOfClients, { _ in 0 }) > boottime { return }
        if let known = waiting[requester], known.until >= boottime {
            waiting[requester]?.comes = comes
            waiting[requester]?.until = max(known.until, until)
        } else {
            if longestWaiting(at: boottime) == nil { ticksMeanwhile = 0 }
            waiting[requester] = Waiting(since: boottime, comes: comes, until: until)
        }
    }

    mutating func take(_ requester: Requester, at boottime: BootTime) {
        for index in gates.indices {
            gates[index].take(at: boottime)
            if requester == .client { gatesOfClients[index].take(at: boottime) }
        }
        if requester == .tick {
            ticksMeanwhile += 1
            hasRefusedTick = false
        } else {
            if requester == owed(at: boottime) { ticksMeanwhile = 0 }
            waiting[requester] = nil
        }
    }

    private static func opens(_ gates: [Gate], _ room: (Gate) -> Int64) -> BootTime {
        BootTime(milliseconds: gates.reduce(.min) { max($0, ($1.opens(leaving: room($1)) + 999) / 1000) })
    }

    /// The requester whose turn comes before that of a tick: the ticks have left it nothing, and it has said when it comes.
    private func owed(at boottime: BootTime) -> Requester? {
        guard ticksMeanwhile >= Self.ticksBeforeTurn, !waiting.isEmpty else { return nil }
        return longestWaiting(at: boottime) { $0.comes != nil }
    }

    /// The requester that was refused first, of those that will ask again.
    private func longestWaiting(at boottime: BootTime, where counts: (Waiting) -> Bool = { _ in true }) -> Requester? {
        guard !waiting.isEmpty else { return nil }
        return waiting.filter { $0.value.until >= boottime && counts($0.value) }
            .min { $0.value.since < $1.value.since }?.key
    }
}

extension Duration {
    /// The duration in microseconds, rounded down.
    var wholeMicroseconds: Int64 {
        Int64(clamping: attoseconds / 1_000_000_000_000)
    }
}
