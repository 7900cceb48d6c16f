/// Measures how far a stream lags: how much longer its messages take than the fastest ones. A pure value.
///
/// The clocks of the exchange and of this machine differ, so only differences count.
struct LagMeter: Sendable {
    /// The length of a period, milliseconds. A shortest time counts for one to two periods.
    private static let period: Int64 = 300_000
    /// How far ahead of the others a message may be, milliseconds.
    private static let farthest: Int64 = 60_000

    /// The shortest times from sending to arrival in the previous and in the present period, milliseconds. Sending and arrival each have
    /// their own clock.
    private var shortest: (before: Int64, present: Int64) = (.max, .max)
    private var periodEnd = Int64.min

    /// Adds a message that is neither late nor old by its own time.
    /// - Parameters:
    ///   - sent: When the message was sent, by the exchange's clock, milliseconds since 1970.
    ///   - boottime: When it arrived, `CLOCK_BOOTTIME` in milliseconds.
    mutating func add(sent: Int64, arrivedAt boottime: Int64) {
        roll(at: boottime)
        shortest.present = min(shortest.present, boottime - sent)
    }

    /// The lag of a message, milliseconds; `nil` if no other message is known.
    func lag(sent: Int64, arrivedAt boottime: Int64) -> Int64? {
        let known = min(shortest.before, shortest.present)
        return known < .max ? max(0, boottime - sent - known) : nil
    }

    /// Whether a message's time of sending is so far ahead of the others that it can't be right. The message is not added.
    mutating func isAhead(sent: Int64, arrivedAt boottime: Int64) -> Bool {
        roll(at: boottime)
        let known = min(shortest.before, shortest.present)
        return known < .max && boottime - sent < known - Self.farthest
    }

    private mutating func roll(at boottime: Int64) {
        guard boottime >= periodEnd else { return }
        shortest = (shortest.present, .max)
        periodEnd = boottime + Self.period
    }
}
