import BTCPriceCore

/// Limits the messages of a publisher, since all share one connection: above it, one is ignored, longer each time. A pure value.
struct MessageLimit: Sendable {
    /// Three times what a publisher of all currencies sends with ticks of a second.
    private static let traffic = TrafficLimit(messages: 500, bytes: 1 << 20)
    /// The time after which a publisher that was ignored is treated like any other, milliseconds.
    private static let forgiven: Int64 = 600_000

    private var traffic = Self.traffic
    private var backoff = Backoff(from: .seconds(10), to: .seconds(300))
    private var end: BootTime?
    /// Until when the publisher is ignored; `nil` if it is not.
    private(set) var ignoredUntil: BootTime?

    /// Why a publisher is ignored.
    var reason: String { traffic.excessText }

    /// Counts a message, and ignores the publisher from now on if it sends too much.
    /// - Returns: Whether the message may be read.
    mutating func take(_ bytes: Int, at now: BootTime) -> Bool {
        if traffic.count(bytes: bytes, at: now) { return true }
        if let end, now - end >= Self.forgiven { backoff.reset() }
        ignoredUntil = now + backoff.next().wholeMilliseconds
        end = ignoredUntil
        return false
    }

    /// Whether the publisher has been ignored for long enough.
    func isOver(at now: BootTime) -> Bool { ignoredUntil.map { $0 <= now } ?? false }

    mutating func resume() {
        ignoredUntil = nil
        traffic = Self.traffic
    }
}
