import BTCPriceCore

/// Determines when a stream is opened again. A pure value; all times are in milliseconds.
struct StreamBackoff: Sendable {
    /// What the end of a connection means.
    enum Kind: Sendable, Equatable {
        /// A network that is interrupted, or a server that is restarted.
        case transient
        /// The server asks for some time.
        case busy(least: Int64)
        /// Too many connections or messages. `retryAfter` is the wait that the server demands, if any.
        case limited(retryAfter: Int64?)
        /// A retry gets the same response.
        case refused
        /// The response is not from a WebSocket server. It may be the login page of a network.
        case unexpected
    }

    /// A connection that lasts this long after its first price counts as good.
    static let healthy: Int64 = 60_000
    /// The maximum number of attempts within ``span``, whatever happens. Binance allows 300, Kraken bans after 150 in ten minutes.
    static let mostAttempts = 10
    static let span: Int64 = 300_000
    /// The longest wait, a day.
    private static let longest: Int64 = 86_400_000

    private var transient = 0
    private var limited = 0
    private var refused = 0
    private var unexpected = 0
    private var attempts: [BootTime] = []
    /// The end of the cooldown. It stays in force even if nobody wants the stream meanwhile.
    var restUntil = BootTime.min

    /// Records an attempt.
    mutating func attempted(at boottime: BootTime) {
        attempts.removeAll { $0 <= boottime - Self.span }
        attempts.append(boottime)
    }

    /// The first moment at which an attempt may be made.
    func mayAttempt(at boottime: BootTime) -> BootTime {
        let recent = attempts.filter { $0 > boottime - Self.span && $0 <= boottime }
        guard recent.count >= Self.mostAttempts else { return boottime }
        return recent[recent.count - Self.mostAttempts] + Self.span
    }

    /// Resets the waits after a good connection: the next failure counts as the first one.
    mutating func reset() { (transient, limited, refused, unexpected) = (0, 0, 0, 0) }

    /// Counts a failure, and returns the time to wait.
    /// - Parameter jitter: A random number from 0 to 1.
    mutating func wait(after kind: Kind, jitter: Double) -> Int64 {
        switch kind {
        case .transient: return transientWait(jitter)
        case .busy(let least): return max(min(least, Self.longest), transientWait(jitter))
        case .limited(let retryAfter):
            defer { limited += 1 }
            return retryAfter.map { min(max(1000, $0), Self.longest) }
                ?? Self.drawn(Self.doubled(60_000, limited, most: 6 * 3_600_000), jitter)
        case .refused:
            defer { refused += 1 }
            return Self.drawn(Self.doubled(600_000, refused, most: Self.longest), jitter)
        case .unexpected:
            unexpected += 1
            return unexpected > 3 ? wait(after: .refused, jitter: jitter) : transientWait(jitter)
        }
    }

    /// The first retry comes at a random moment within 0.5 s, so that machines that lost the server together do not reconnect at once.
    private mutating func transientWait(_ jitter: Double) -> Int64 {
        defer { transient += 1 }
        if transient == 0 { return Int64(500 * jitter) }
        return Self.drawn(Self.doubled(1000, transient - 1, most: 60_000), jitter)
    }

    private static func doubled(_ first: Int64, _ times: Int, most: Int64) -> Int64 {
        Backoff.wait(from: .milliseconds(first), to: .milliseconds(most), after: times).wholeMilliseconds
    }

    /// A random wait between half of `wait` and all of it.
    private static func drawn(_ wait: Int64, _ jitter: Double) -> Int64 { wait / 2 + Int64(Double(wait / 2) * jitter) }
}
