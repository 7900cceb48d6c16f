import FoundationEssentials

/// A point in wall-clock time: whole milliseconds since 1970-01-01T00:00:00Z.
///
/// An integer, because a date kept as a floating-point number of seconds loses milliseconds on its way through text.
public struct Timestamp: Sendable, Hashable, Comparable {
    /// Milliseconds since 1970, UTC.
    public let milliseconds: Int64

    /// What is taken for a time, on any clock, and for a span of time, where it is read from a file or a socket: some 8,900 years
    /// around zero. Of whatever lies in it a difference can be made without an overflow.
    public static let possibleMilliseconds: ClosedRange<Int64> = -(1 << 48)...(1 << 48)

    /// - Parameter milliseconds: Milliseconds since 1970, UTC.
    public init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// Orders by time.
    public static func < (lhs: Timestamp, rhs: Timestamp) -> Bool {
        lhs.milliseconds < rhs.milliseconds
    }
}

/// One moment on both clocks a price is dated by.
///
/// The wall clock is what people read; it can be set, in both directions. `CLOCK_BOOTTIME` only counts forward, suspended
/// time included, so an age computed on it is exact until the next boot.
public struct ObservationTime: Sendable, Hashable {
    /// The wall clock.
    public let wall: Timestamp
    /// `CLOCK_BOOTTIME`, milliseconds (clock_gettime(2)).
    public let boottime: Int64

    /// - Parameters:
    ///   - wall: The wall clock.
    ///   - boottime: `CLOCK_BOOTTIME`, milliseconds.
    public init(wall: Timestamp, boottime: Int64) {
        self.wall = wall
        self.boottime = boottime
    }
}

/// Reads both clocks at once. Handed in, so that tests have a time of their own.
public typealias TimeSource = @Sendable () -> ObservationTime

extension ObservationTime {
    /// Reads the machine's clocks. On Linux Swift's `ContinuousClock` is `CLOCK_BOOTTIME`, and its epoch the boot.
    public static func now() -> ObservationTime {
        let clock = ContinuousClock()
        return ObservationTime(
            wall: Timestamp(milliseconds: Int64((Date.now.timeIntervalSince1970 * 1000).rounded(.down))),
            boottime: clock.systemEpoch.duration(to: clock.now).wholeMilliseconds)
    }
}
