package import BTCPriceCore
import Glibc

/// Formats a point in time as `Aug 25, 14:30` (`MMM d, HH:mm`, the C locale's month names; `Aug 25 2024, 14:30` in another year) or as
/// `2026-08-25T14:30:05+02:00` (ISO 8601, RFC 3339), in the reader's time zone (TZ, otherwise /etc/localtime) or in UTC. A time that the
/// clocks show twice has its zone: `Nov 1, 01:30 EST`.
///
/// Uses the C library's `localtime_r`, because Foundation without ICU knows no time zone except GMT.
package struct TimestampFormatter: Sendable, Hashable {
    /// UTC instead of the reader's time zone.
    package var isUTC: Bool
    /// ISO 8601 to the second, with the zone's offset, instead of `Aug 25, 14:30`.
    package var isISO: Bool
    /// Times in the same year as this one are formatted without a year; `nil` for the current time.
    package var present: Timestamp?
    /// `Aug 25, 14:30:05` instead of `Aug 25, 14:30`.
    package var hasSeconds = false

    package init(isUTC: Bool = false, isISO: Bool = false, present: Timestamp? = nil) {
        self.isUTC = isUTC
        self.isISO = isISO
        self.present = present
    }

    private var calendar: ReaderCalendar { ReaderCalendar(isUTC: isUTC) }

    /// - Parameter timestamp: Wall-clock time.
    package func string(from timestamp: Timestamp) -> String {
        let second = timestamp.wholeSeconds
        guard var parts = parts(of: second) else { return "-" }
        let (date, time) = Timestamp.utc(calendar.wall(at: second))
        if isISO { return "\(date)T\(time)\(isUTC ? "Z" : offset(parts.tm_gmtoff))" }
        let clock = hasSeconds ? time[...] : time.dropLast(3)
        // timegm(3) changes the zone.
        let zone = parts.tm_zone.map { String(cString: $0) } ?? ""
        let isTwice = calendar.moments(at: Int64(timegm(&parts))).count > 1
        return "\(short(parts)), \(clock)\(isTwice ? " \(zone)" : "")"
    }

    /// The date alone: `Aug 25`, `Aug 25 2024` in another year, or `2026-08-25`.
    package func date(of timestamp: Timestamp) -> String {
        let second = timestamp.wholeSeconds
        guard let parts = parts(of: second) else { return "-" }
        return isISO ? Timestamp.utc(calendar.wall(at: second)).date : short(parts)
    }

    private func parts(of second: Int64) -> tm? {
        calendar.parts(of: second).flatMap { Timestamp.monthNames.indices.contains(Int($0.tm_mon)) ? $0 : nil }
    }

    private func short(_ parts: tm) -> String {
        let thisYear = calendar.parts(of: present?.wholeSeconds ?? Int64(time(nil)))?.tm_year
        let year = parts.tm_year == thisYear ? "" : " \(Int(parts.tm_year) + 1900)"
        return "\(Timestamp.monthNames[Int(parts.tm_mon)]) \(parts.tm_mday)\(year)"
    }

    /// `+02:00`
    private func offset(_ seconds: Int) -> String {
        let minutes = abs(seconds) / 60
        return "\(seconds < 0 ? "-" : "+")\((minutes / 60).padded(2)):\((minutes % 60).padded(2))"
    }
}
