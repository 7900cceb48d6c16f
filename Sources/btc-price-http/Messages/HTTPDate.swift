import BTCPriceCore
import Glibc

/// The time as HTTP writes it (RFC 9110, section 5.6.7).
final class HTTPDate {
    private var second = Int.min
    private var text = ""

    /// The current time, formatted at most once a second. Use only on the event loop.
    var now: String {
        let present = time(nil)
        if present != second { (second, text) = (present, Self.text(present)) }
        return text
    }

    /// - Parameter seconds: Unix time.
    static func text(_ seconds: Int) -> String {
        var (seconds, parts) = (time_t(seconds), tm())
        gmtime_r(&seconds, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let (day, month) = (days[Int(parts.tm_wday)], Timestamp.monthNames[Int(parts.tm_mon)])
        let clock = Timestamp.utc(Int64(seconds)).time
        return "\(day), \(parts.tm_mday.padded(2)) \(month) \(parts.tm_year + 1900) \(clock) GMT"
    }

    /// `2026-08-25T14:30:05.123Z` (RFC 3339)
    /// - Parameter milliseconds: Since 1970, UTC.
    static func rfc3339(_ milliseconds: Int64) -> String {
        let timestamp = Timestamp(milliseconds: milliseconds)
        let (date, time) = timestamp.utc
        return "\(date)T\(time).\((milliseconds - timestamp.wholeSeconds * 1000).padded(3))Z"
    }
}
