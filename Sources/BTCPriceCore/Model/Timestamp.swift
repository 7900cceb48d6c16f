import Glibc

/// A point in wall-clock time: whole milliseconds since 1970-01-01T00:00:00Z.
///
/// An integer, because a date kept as a floating-point number of seconds loses milliseconds on its way through text.
package struct Timestamp: Sendable, Hashable, Comparable {
    /// Milliseconds since 1970, UTC.
    package let milliseconds: Int64

    /// What is taken for a time, on any clock, and for a span of time, where it is read from a file or a socket: some 8,900 years
    /// around zero. Of whatever lies in it a difference can be made without an overflow.
    package static let possibleMilliseconds: ClosedRange<Int64> = -(1 << 48)...(1 << 48)

    /// - Parameter milliseconds: Milliseconds since 1970, UTC.
    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// Orders by time.
    package static func < (lhs: Timestamp, rhs: Timestamp) -> Bool {
        lhs.milliseconds < rhs.milliseconds
    }
}

/// One moment on both clocks a price is dated by.
///
/// The wall clock is what people read; it can be set, in both directions. `CLOCK_BOOTTIME` only counts forward, suspended
/// time included, so an age computed on it is exact until the next boot.
package struct ObservationTime: Sendable, Hashable {
    /// The wall clock.
    package let wall: Timestamp
    /// `CLOCK_BOOTTIME`, milliseconds (clock_gettime(2)).
    package let boottime: Int64

    /// - Parameters:
    ///   - wall: The wall clock.
    ///   - boottime: `CLOCK_BOOTTIME`, milliseconds.
    package init(wall: Timestamp, boottime: Int64) {
        self.wall = wall
        self.boottime = boottime
    }
}

/// Reads both clocks at once. Handed in, so that tests have a time of their own.
package typealias TimeSource = @Sendable () -> ObservationTime

extension ObservationTime {
    /// Reads the machine's clocks. On Linux Swift's `ContinuousClock` is `CLOCK_BOOTTIME`, and its epoch the boot.
    package static func now() -> ObservationTime {
        let clock = ContinuousClock()
        var wall = timespec()
        clock_gettime(CLOCK_REALTIME, &wall)
        return ObservationTime(
            wall: Timestamp(milliseconds: Int64(wall.tv_sec) * 1000 + Int64(wall.tv_nsec) / 1_000_000),
            boottime: clock.systemEpoch.duration(to: clock.now).wholeMilliseconds)
    }
}
