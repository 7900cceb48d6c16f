import Glibc

/// A point in wall-clock time: whole milliseconds since 1970-01-01T00:00:00Z.
///
/// An integer, because a floating-point number of seconds loses milliseconds when it is converted to text and back.
package struct Timestamp: Sendable, Hashable, Comparable {
    /// Milliseconds since 1970, UTC.
    package let milliseconds: Int64

    /// The accepted range of times on any clock and of time spans that are read from a file or a socket: about 8,900 years
    /// around zero. The difference of two such values does not overflow.
    package static let possibleMilliseconds: ClosedRange<Int64> = -(1 << 48)...(1 << 48)

    /// The possible intervals of a daemon's ticks, milliseconds: from 0.1 s, since no exchange would accept faster requests, to an hour.
    package static let possibleIntervals: ClosedRange<Int64> = 100...3_600_000

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    package static func < (lhs: Timestamp, rhs: Timestamp) -> Bool {
        lhs.milliseconds < rhs.milliseconds
    }
}

/// One moment on both clocks that date a price. The wall clock is for people, and can be set forward and back.
package struct ObservationTime: Sendable, Hashable {
    package let wall: Timestamp
    package let boottime: BootTime

    package init(wall: Timestamp, boottime: BootTime) {
        self.wall = wall
        self.boottime = boottime
    }
}

extension ObservationTime {
    /// The wall-clock time of another moment of this boot, by the wall clock as it is set now.
    package func wallTime(of boottime: BootTime) -> Timestamp {
        Timestamp(milliseconds: wall.milliseconds - (self.boottime - boottime))
    }

    /// The moment that is `duration` later, on both clocks.
    package func advanced(by duration: Duration) -> ObservationTime {
        let milliseconds = duration.wholeMilliseconds
        return ObservationTime(
            wall: Timestamp(milliseconds: wall.milliseconds + milliseconds), boottime: boottime + milliseconds)
    }
}

/// Reads both clocks at once. Injected, so that tests can set the time.
package typealias TimeSource = @Sendable () -> ObservationTime

extension ObservationTime {
    /// Reads the machine's clocks.
    package static func now() -> ObservationTime {
        func milliseconds(_ clock: clockid_t) -> Int64 {
            var time = timespec()
            clock_gettime(clock, &time)
            return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
        }
        return ObservationTime(
            wall: Timestamp(milliseconds: milliseconds(CLOCK_REALTIME)),
            boottime: BootTime(milliseconds: milliseconds(CLOCK_BOOTTIME)))
    }
}

extension Duration {
    /// The duration in milliseconds, rounded down.
    package var wholeMilliseconds: Int64 {
        // `components` would take three times as long.
        Int64(clamping: attoseconds / 1_000_000_000_000_000)
    }
}

extension Timestamp {
    /// In the C locale and in HTTP.
    package static let monthNames = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Unix seconds, rounded down, before 1970 too.
    package var wholeSeconds: Int64 { milliseconds.flooredQuotient(by: 1000) }

    /// `2026-11-21 09:30:05 UTC`
    package var utcText: String {
        let (date, time) = utc
        return "\(date) \(time) UTC"
    }

    /// `2026-11-21` and `09:30:05`, independent of the time zone and the locale.
    package var utc: (date: String, time: String) { Self.utc(wholeSeconds) }

    /// The same of Unix seconds, or of a date and time elsewhere as the second at which the clocks of UTC show it.
    package static func utc(_ seconds: Int64) -> (date: String, time: String) {
        let days = seconds.flooredQuotient(by: 86_400)
        let second = seconds - days * 86_400
        // The Gregorian calendar in eras of 400 years. Each year starts in March, so that a leap day is its last day.
        let shifted = days + 719_468
        let era = shifted.flooredQuotient(by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (
            "\(year.padded(4))-\(month.padded(2))-\(day.padded(2))",
            "\((second / 3600).padded(2)):\((second / 60 % 60).padded(2)):\((second % 60).padded(2))"
        )
    }
}

extension Int64 {
    fileprivate func flooredQuotient(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
