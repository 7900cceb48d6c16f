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
}

/// The classes of requesters. Each has a share of a limit that no other class can take.
package enum Requester: Sendable, Hashable {
    /// The ticks. They have priority.
    case tick
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
/// - The others are served in turn: the one that has waited longest is next.
/// - If the ticks leave nothing, the one that has waited longest gets every tenth request.
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

        /// The earliest time of a request that conforms and leaves `room` requests to others.
        func opens(leaving room: Int64) -> Int64 {
            arrival - (burst - 1 - min(room, burst - 1)) * spacing
        }
    }

    /// A requester that was refused.
    private struct Waiting {
        let since: Int64
        /// Its turn is kept until then, milliseconds.
        var until: Int64
    }

    /// The number of requests of the ticks, after which one that waits is served before them.
    static let ticksBeforeTurn = 9
    /// A tick may come this much earlier or later than expected, and waits as long for a limit, milliseconds.
    static let tickJitter: Int64 = 50

    private var gates: [Gate]
    private var waiting: [Requester: Waiting] = [:]
    /// The requests of the ticks since another requester waits.
    private var ticksMeanwhile = 0

    init(_ limits: [RequestLimit]) {
        gates = limits.map(Gate.init)
    }

    /// Takes over what an earlier limiter of the same venue has counted. The limits stay.
    mutating func adopt(_ previous: RequestLimiter) {
        let latest = previous.gates.map { $0.arrival - $0.spacing }.max()
        // As if its last request had been the only one: the limits may be others, and their bursts, too.
        for index in gates.indices {
            if index < previous.gates.count, previous.gates[index].spacing == gates[index].spacing {
                gates[index].arrival = previous.gates[index].arrival
            } else if let latest {
                gates[index].arrival = latest + gates[index].spacing * gates[index].burst
            }
        }
    }

    /// The minimum time between two requests at the steady pace.
    var pace: Duration {
        .microseconds(gates.map(\.spacing).max() ?? 0)
    }

    /// The earliest time at which a requester may send a request, or should ask again, `CLOCK_BOOTTIME` in milliseconds.
    /// - Parameters:
    ///   - boottime: The current time.
    ///   - nextTick: When the ticks are expected to send the next request; `nil` if it is not known.
    func opens(for requester: Requester, at boottime: Int64, nextTick: Int64? = nil) -> Int64 {
        let next = longestWaiting(at: boottime)
        let isOwed = next != nil && ticksMeanwhile >= Self.ticksBeforeTurn
        if requester == .tick {
            let opens = opens { isOwed && $0.burst > 1 ? 1 : 0 }
            let isRefused = isOwed && gates.contains { $0.burst == 1 }
            return max(opens, isRefused ? boottime + Self.tickJitter + 1 : boottime)
        }
        // A third of the burst is reserved for the ticks.
        let opens = max(opens { isOwed ? 0 : ($0.burst + 2) / 3 }, boottime)
        if let next, next != requester { return max(opens, boottime + Self.tickJitter) }
        let single = gates.filter { $0.burst == 1 }.map(\.spacing).max()
        if !isOwed, let single, let nextTick, opens + (single + 999) / 1000 + Self.tickJitter > nextTick {
            return max(boottime, nextTick) + 1
        }
        return opens
    }

    /// Whether a requester may send a request.
    func admits(_ requester: Requester, at boottime: Int64, nextTick: Int64? = nil) -> Bool {
        opens(for: requester, at: boottime, nextTick: nextTick) <= boottime
    }

    /// Whether it is as if no request had been sent.
    func isUnused(at boottime: Int64) -> Bool { gates.allSatisfy { $0.arrival <= boottime * 1000 } }

    /// Records that a requester was refused, and will ask again.
    /// - Parameter until: Its turn is kept until then, `CLOCK_BOOTTIME` in milliseconds.
    mutating func wait(_ requester: Requester, at boottime: Int64, until: Int64) {
        if let known = waiting[requester], known.until >= boottime {
            waiting[requester]?.until = max(known.until, until)
        } else {
            if longestWaiting(at: boottime) == nil { ticksMeanwhile = 0 }
            waiting[requester] = Waiting(since: boottime, until: until)
        }
    }

    /// Counts a request.
    mutating func take(_ requester: Requester, at boottime: Int64) {
        for index in gates.indices {
            gates[index].arrival = max(gates[index].arrival, boottime * 1000) + gates[index].spacing
        }
        if requester == .tick {
            ticksMeanwhile += 1
        } else {
            waiting[requester] = nil
            ticksMeanwhile = 0
        }
    }

    private func opens(leaving room: (Gate) -> Int64) -> Int64 {
        gates.reduce(.min) { max($0, ($1.opens(leaving: room($1)) + 999) / 1000) }
    }

    /// The requester that was refused first, of those that will ask again.
    private func longestWaiting(at boottime: Int64) -> Requester? {
        guard !waiting.isEmpty else { return nil }
        return waiting.filter { $0.value.until >= boottime }.min { $0.value.since < $1.value.since }?.key
    }
}

extension Duration {
    /// The duration in microseconds, rounded down.
    var wholeMicroseconds: Int64 {
        Int64(clamping: attoseconds / 1_000_000_000_000)
    }
}
