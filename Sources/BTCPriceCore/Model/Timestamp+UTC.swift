import Glibc

extension Timestamp {
    /// `2026-11-21 09:30:05 UTC`, independent of the time zone and the locale.
    package var utcText: String {
        var seconds = time_t(milliseconds / 1000 - (milliseconds % 1000 < 0 ? 1 : 0))
        var time = tm()
        gmtime_r(&seconds, &time)
        let rest = [time.tm_mon + 1, time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec].map { $0.padded(2) }
        let year = (Int(time.tm_year) + 1900).padded(4)
        return "\(year)-\(rest[0])-\(rest[1]) \(rest[2]):\(rest[3]):\(rest[4]) UTC"
    }

    /// `2026-11-21`
    package var utcDate: String { String(utcText.prefix { $0 != " " }) }
}

extension FixedWidthInteger {
    /// The number with at least this many digits, with zeros before it.
    @inlinable package func padded(_ width: Int, radix: Int = 10) -> String {
        let digits = String(self, radix: radix)
        return String(repeating: "0", count: Swift.max(0, width - digits.count)) + digits
    }
}
