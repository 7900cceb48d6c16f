/// How often an exchange lets one address ask: at most so many requests in any span of a period.
package struct RequestLimit: Sendable, Hashable {
    /// The most requests; at least 1.
    package let requests: Int
    /// In any span of this length.
    package let period: Duration

    /// - Parameters:
    ///   - requests: The most requests; at least 1.
    ///   - period: In any span of this length; above zero.
    package init(_ requests: Int, per period: Duration) {
        precondition(requests >= 1 && period > .zero, "a limit lets somebody through")
        self.requests = requests
        self.period = period
    }
}

/// Who wants to ask a source. The ticks go first: others leave them a part of what a limit allows.
package enum Requester: Sendable, Hashable {
    /// The tick.
    case tick
    /// The observer beside the ticks.
    case observer
    /// A client that wants a newer price than the last tick's.
    case client
}

/// Keeps the requests to one source under all of its limits: a pure value.
///
/// Each limit is a generic cell rate algorithm (ITU-T I.371): a steady pace with room for a few at once. Steady part and room
/// together never exceed the limit in any span of its period, so it needs no history and no window that starts anew.
struct RequestLimiter: Sendable {
    /// One limit. All times are microseconds of `CLOCK_BOOTTIME`.
    private struct Gate {
        /// Between two requests at the steady pace.
        let spacing: Int64
        /// How many may come at once.
        let burst: Int64
        /// When the next request would come at the steady pace.
        var arrival: Int64 = .min / 2

        init(_ limit: RequestLimit) {
            // A tenth stays unused: requests that leave evenly may arrive closer together.
            let usable = limit.requests >= 10 ? limit.requests * 9 / 10 : limit.requests
            burst = Int64(max(1, usable * 3 / 10))
            spacing = limit.period.wholeMicroseconds / max(1, Int64(usable) - (usable > 1 ? burst : 0))
        }

        /// From when on a request conforms that leaves so much room to others.
        func opens(leaving room: Int64) -> Int64 {
            arrival - (burst - 1 - min(room, burst - 1)) * spacing
        }
    }

    private var gates: [Gate]

    init(_ limits: [RequestLimit]) {
        gates = limits.map(Gate.init)
    }

    /// The least time between two requests at the steady pace.
    var pace: Duration {
        .microseconds(gates.map(\.spacing).max() ?? 0)
    }

    /// Whether a request conforms.
    func admits(_ requester: Requester, at boottime: Int64) -> Bool {
        gates.allSatisfy { gate in
            // What the ticks keep for themselves: a third of the room.
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
