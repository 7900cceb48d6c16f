/// Converts the times of another machine's observations to this machine's clocks. A pure value.
///
/// Both machines count milliseconds since their boots. An observation takes the transmission time to arrive here, and longer if the
/// message was old when it was sent, or was delayed. The shortest time of the last minutes is taken as the transmission time. Only the
/// age of the first message is estimated with the wall clocks.
package struct RemoteClock: Sendable {
    /// How long a shortest time counts, in milliseconds: one to two of these periods. A machine restored from a snapshot is measured again.
    private static let period: Int64 = 60_000

    private var instance: String?
    /// The shortest times from an observation there to its arrival here, in milliseconds: in the previous period and in the current one.
    private var shortest: (before: Int64, present: Int64) = (.max, .max)
    private var periodEnd = BootTime.min

    package init() {}

    /// - Parameters:
    ///   - observed: The moment of the observation by the other machine's boot clock; `nil` if it is not known.
    ///   - timestamp: The same moment by its wall clock.
    ///   - instance: Identifies the other daemon's start.
    ///   - now: When the message arrived.
    /// - Returns: When it was observed, and whether that is an estimate by the wall clocks. It is never after the arrival.
    package mutating func date(
        _ observed: BootTime?, _ timestamp: Timestamp, of instance: String, arrivedAt now: ObservationTime
    ) -> (observed: ObservationTime, isEstimate: Bool) {
        if instance != self.instance {
            self.instance = instance
            shortest = (.max, .max)
        }
        let isFirst = shortest == (.max, .max)
        var age = max(0, now.wall.milliseconds - timestamp.milliseconds)
        if let observed {
            let time = now.boottime - observed
            if now.boottime >= periodEnd {
                shortest = (shortest.present, .max)
                periodEnd = now.boottime + Self.period
            }
            shortest.present = min(shortest.present, time)
            if !isFirst { age = time - min(shortest.before, shortest.present) }
        }
        let isEstimate = isFirst || observed == nil
        return (now.advanced(by: .milliseconds(-age)), isEstimate)
    }
}
