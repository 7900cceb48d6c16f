public import BTCPriceCore
import Glibc

/// `Aug 25, 14:30`: `MMM d, HH:mm` in the reader's time zone (TZ, else /etc/localtime) and the C locale's month names.
///
/// By the C library's `localtime_r`: Foundation has no time zone but GMT where ICU is not linked.
public struct LocalTimestampFormatter: TimestampFormatter {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// A formatter.
    public init() {}

    /// - Parameter timestamp: Wall-clock time.
    public func string(from timestamp: Timestamp) -> String {
        // Rounded down, for times before 1970 too.
        var seconds = time_t((timestamp.milliseconds - (timestamp.milliseconds < 0 ? 999 : 0)) / 1000)
        var parts = tm()
        guard localtime_r(&seconds, &parts) != nil, Self.months.indices.contains(Int(parts.tm_mon)) else { return "-" }
        return
            "\(Self.months[Int(parts.tm_mon)]) \(parts.tm_mday), \(Self.two(parts.tm_hour)):\(Self.two(parts.tm_min))"
    }

    private static func two(_ number: Int32) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}
