import Glibc
import NIOCore

/// The time as HTTP writes it (RFC 9110, section 5.6.7).
final class HTTPDate {
    private var second = Int.min
    private var text = ""

    /// The present time, made once a second. On the event loop only.
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
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return
            "\(days[Int(parts.tm_wday)]), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(parts.tm_year + 1900) "
            + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
    }
}

extension HTTPDate {
    /// `2026-08-25T14:30:05.123Z` (RFC 3339)
    /// - Parameter milliseconds: Since 1970, UTC.
    static func rfc3339(_ milliseconds: Int64) -> String {
        let (whole, rest) = milliseconds.quotientAndRemainder(dividingBy: 1000)
        var (seconds, parts) = (time_t(whole), tm())
        gmtime_r(&seconds, &parts)
        func digits(_ number: Int, _ count: Int) -> String {
            let text = "\(number)"
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        let date = [Int(parts.tm_mon) + 1, Int(parts.tm_mday)].map { digits($0, 2) }
        let time = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { digits(Int($0), 2) }
        return
            "\(parts.tm_year + 1900)-\(date.joined(separator: "-"))T\(time.joined(separator: ":")).\(digits(Int(rest), 3))Z"
    }
}
