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

/// The requester of a price. Ticks have priority: the other requesters leave them a part of what a limit allows.
package enum Requester: Sendable, Hashable {
    /// The tick.
    case tick
    /// The observer that runs alongside the ticks.
    case observer
    /// A client that wants a newer price than the last tick's.
    case client
}

/// Keeps the requests to one source within all of its limits: a pure value.
///
/// Each limit is a generic cell rate algorithm (ITU-T I.371): a steady pace with room for a small burst. Both together never exceed
/// the limit in any span of its period, so it needs no history and no window that restarts.
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

    private var gates: [Gate]

    init(_ limits: [RequestLimit]) {
        gates = limits.map(Gate.init)
    }

    /// The minimum time between two requests at the steady pace.
    var pace: Duration {
        .microseconds(gates.map(\.spacing).max() ?? 0)
    }

    /// Whether a request conforms.
    func admits(_ requester: Requester, at boottime: Int64) -> Bool {
        gates.allSatisfy { gate in
            // A third of the burst is reserved for the ticks.
            boottime * 1000 >= gate.opens(leaving: requester == .tick ? 0 : (gate.burst + 2) / 3)
        }
    }

    /// Counts a request.
    mutating func take(at boottime: Int64) {
        for index in gates.indices {
            gates[index].arrival = max(gates[index].arrival, boottime * 1000) + gates[index].spacing
        }
    }
}

extension Duration {
    /// The duration in microseconds, rounded down.
    var wholeMicroseconds: Int64 {
        Int64(clamping: attoseconds / 1_000_000_000_000)
    }
}
