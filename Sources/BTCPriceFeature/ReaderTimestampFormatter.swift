package import BTCPriceCore
import Glibc

/// Formats a point in time as `Aug 25, 14:30` (`MMM d, HH:mm`, the C locale's month names; `Aug 25 2024, 14:30` in another year) or as
/// `2026-08-25T14:30:05+02:00` (ISO 8601, RFC 3339), in the reader's time zone (TZ, otherwise /etc/localtime) or in UTC.
///
/// Uses the C library's `localtime_r`, because Foundation without ICU knows no time zone except GMT.
package struct ReaderTimestampFormatter: TimestampFormatter, Hashable {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// UTC instead of the reader's time zone.
    package var isUTC: Bool
    /// ISO 8601 to the second, with the zone's offset, instead of `Aug 25, 14:30`.
    package var isISO: Bool
    /// Times in the same year as this one are formatted without a year; `nil` for the current time.
    package var present: Timestamp?

    package init(isUTC: Bool = false, isISO: Bool = false, present: Timestamp? = nil) {
        self.isUTC = isUTC
        self.isISO = isISO
        self.present = present
    }

    /// - Parameter timestamp: Wall-clock time.
    package func string(from timestamp: Timestamp) -> String {
        // Rounded down, for times before 1970 too.
        let seconds = time_t((timestamp.milliseconds - (timestamp.milliseconds < 0 ? 999 : 0)) / 1000)
        guard let parts = parts(of: seconds), Self.months.indices.contains(Int(parts.tm_mon)) else { return "-" }
        return isISO ? iso(parts) : short(parts)
    }

    private func parts(of seconds: time_t) -> tm? {
        var seconds = seconds
        var parts = tm()
        let isKnown = isUTC ? gmtime_r(&seconds, &parts) != nil : localtime_r(&seconds, &parts) != nil
        return isKnown ? parts : nil
    }

    private func short(_ parts: tm) -> String {
        let thisYear = self.parts(of: present.map { time_t($0.milliseconds / 1000) } ?? time(nil))?.tm_year
        let year = parts.tm_year == thisYear ? "" : " \(Int(parts.tm_year) + 1900)"
        let clock = "\(Self.two(parts.tm_hour)):\(Self.two(parts.tm_min))"
        return "\(Self.months[Int(parts.tm_mon)]) \(parts.tm_mday)\(year), \(clock)"
    }

    private func iso(_ parts: tm) -> String {
        let year = String(Int(parts.tm_year) + 1900)
        let date =
            "\(String(repeating: "0", count: max(0, 4 - year.count)))\(year)-\(Self.two(parts.tm_mon + 1))-\(Self.two(parts.tm_mday))"
        let time = "\(Self.two(parts.tm_hour)):\(Self.two(parts.tm_min)):\(Self.two(parts.tm_sec))"
        guard !isUTC else { return "\(date)T\(time)Z" }
        let minutes = Int32(abs(parts.tm_gmtoff) / 60)
        return "\(date)T\(time)\(parts.tm_gmtoff < 0 ? "-" : "+")\(Self.two(minutes / 60)):\(Self.two(minutes % 60))"
    }

    private static func two(_ number: Int32) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}
