import NIOCore

/// When the connections of a stream are read: just before each tick, and at an interval in between. A pure value.
struct ReadSchedule: Sendable, Hashable {
    /// How long before a tick a read begins, and the minimum time between two reads: enough for the messages of all exchanges.
    static let lead = TimeAmount.milliseconds(2)

    /// The time between two reads, above zero.
    private var interval = TimeAmount.milliseconds(500)
    private var tick = NIODeadline.uptimeNanoseconds(0)

    /// - Parameter tick: A tick, in whole milliseconds, so that all exchanges are read at the same moment; `nil` for the one before.
    mutating func change(interval: TimeAmount, tick: NIODeadline?) {
        self.interval = interval
        if let tick { self.tick = .uptimeNanoseconds(tick.uptimeNanoseconds / 1_000_000 * 1_000_000) }
    }

    /// The first read after another one.
    func next(after read: NIODeadline) -> NIODeadline {
        let first = tick - Self.lead
        let passed = (read + Self.lead - first).nanoseconds
        let (count, rest) = passed.quotientAndRemainder(dividingBy: interval.nanoseconds)
        return first + .nanoseconds((rest < 0 ? count : count + 1) * interval.nanoseconds)
    }
}
