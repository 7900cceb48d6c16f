/// A moment on `CLOCK_BOOTTIME` (clock_gettime(2)): whole milliseconds since the boot, suspended time included. Below zero for a moment
/// of an earlier boot.
///
/// The clock only counts forward, so an age computed from it is exact until the next boot. A time span is an `Int64` of milliseconds.
package struct BootTime: Sendable, Hashable, Comparable {
    package let milliseconds: Int64

    @inlinable package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    @inlinable package static var boot: BootTime { BootTime(milliseconds: 0) }
    @inlinable package static var min: BootTime { BootTime(milliseconds: .min) }
    @inlinable package static var max: BootTime { BootTime(milliseconds: .max) }

    @inlinable package static func < (lhs: BootTime, rhs: BootTime) -> Bool { lhs.milliseconds < rhs.milliseconds }
    @inlinable package static func - (lhs: BootTime, rhs: BootTime) -> Int64 { lhs.milliseconds - rhs.milliseconds }
    @inlinable package static func + (time: BootTime, span: Int64) -> BootTime {
        BootTime(milliseconds: time.milliseconds + span)
    }
    @inlinable package static func - (time: BootTime, span: Int64) -> BootTime {
        BootTime(milliseconds: time.milliseconds - span)
    }
    @inlinable package static func += (time: inout BootTime, span: Int64) { time = time + span }
}

/// A clock that counts the time in which the machine is suspended. Tests have one that they move.
///
/// It is no `Clock` of the standard library: a type that is generic over its clock is larger and slower, and `Clock.sleep` leaves the
/// caller's actor.
package protocol BoottimeClock: Sendable {
    var now: ContinuousClock.Instant { get }

    /// Sleeps until an instant.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    func sleep(until deadline: ContinuousClock.Instant) async throws
}

extension BoottimeClock {
    package func sleep(for duration: Duration) async throws {
        try await sleep(until: now.advanced(by: duration))
    }
}

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
