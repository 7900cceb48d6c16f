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
