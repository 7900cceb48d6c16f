/// How far a stream is behind: how much longer its messages take than the fastest ones. A pure value.
///
/// The clocks of the exchange and of this machine differ, so that only differences count.
struct LagMeter: Sendable {
    /// How long a shortest time counts, milliseconds: between one and two of these.
    private static let period: Int64 = 300_000
    /// How far ahead of the others a message may be, milliseconds.
    private static let farthest: Int64 = 60_000

    /// The shortest times from sending to arrival, each by its own clock, milliseconds: of the period before, and of the present one.
    private var shortest: (before: Int64, present: Int64) = (.max, .max)
    private var periodEnd = Int64.min

    /// Takes in a message that is neither old by itself nor late.
    /// - Parameters:
    ///   - sent: By the exchange's clock, milliseconds since 1970.
    ///   - boottime: Its arrival, `CLOCK_BOOTTIME` in milliseconds.
    mutating func add(sent: Int64, arrivedAt boottime: Int64) {
        roll(at: boottime)
        shortest.present = min(shortest.present, boottime - sent)
    }

    /// The lag of a message, milliseconds; `nil` if no other is known.
    func lag(sent: Int64, arrivedAt boottime: Int64) -> Int64? {
        let known = min(shortest.before, shortest.present)
        return known < .max ? max(0, boottime - sent - known) : nil
    }

    /// Whether a message was sent so long after the others, by the exchange's clock, that it can't have been. It is not taken in.
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
