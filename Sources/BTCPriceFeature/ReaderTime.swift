package import BTCPriceCore
import Glibc

/// Reads points in time as people write them: `24h` or `-24h` (ago), `2026-08-25`, `2026-08-25T14:30`, `2026-08-25 14:30:05`,
/// `2026-08-25T14:30:05+02:00`, `2026-08-25T12:30Z`, `14:30` (today), and `now`, `today`, `yesterday` and `@1795400000` as in
/// systemd.time(7). Fractions of a second are ignored.
package enum ReaderTime {
    /// Why a text is not a valid point in time.
    package struct Mistake: Error, Sendable, Hashable {
        /// What is wrong.
        package let message: String
    }

    /// The longest time ago that is accepted, seconds: a little more than a hundred years.
    private static let longestAgo: Int64 = 3_200_000_000
    private static let units: [Character: Int64] = [
        "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_622_400,
    ]

    /// - Parameters:
    ///   - isUTC: Whether a time without a zone is in UTC rather than in the reader's time zone. If an hour occurs twice, at the end of
    ///     daylight saving time, the first one is used.
    ///   - now: The present.
    package static func read(_ text: String, isUTC: Bool, now: Timestamp) throws(Mistake) -> Timestamp {
        switch text {
        case "now": return now
        case "today": return try start(ofDaysAgo: 0, isUTC: isUTC, now: now)
        case "yesterday": return try start(ofDaysAgo: 1, isUTC: isUTC, now: now)
        default: break
        }
        let ago = text.first == "-" ? text.dropFirst() : text[...]
        if let unit = ago.last.flatMap({ units[$0] }), let number = Int64(ago.dropLast()),
            (0...longestAgo / unit).contains(number)
        {
            return Timestamp(milliseconds: now.milliseconds - number * unit * 1000)
        }
        if text.first == "@", let seconds = Int64(text.dropFirst()), (0...latest).contains(seconds) {
            return Timestamp(milliseconds: seconds * 1000)
        }
        if text.wholeMatch(of: /\d\d?:\d\d(?::\d\d)?/) != nil {
            let today = parts(of: now, isUTC: isUTC)
            let date = "\(today.tm_year + 1900)-\(digits(today.tm_mon + 1))-\(digits(today.tm_mday))"
            return try read("\(date)T\(text.count % 3 == 1 ? "0" : "")\(text)", isUTC: isUTC, now: now)
        }
        let pattern = /(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?/
        guard let match = text.wholeMatch(of: pattern), let parts = parts(match.output) else {
            throw Mistake(
                message:
                    "'\(text)' is not a time; write 24h or 7d (ago), yesterday, 14:30, 2026-08-25, 2026-08-25T14:30, 2026-08-25T14:30:05Z or @1795400000"
            )
        }
        if let offset = match.output.6 {
            guard let offset = seconds(ofOffset: offset) else { throw Mistake(message: "'\(text)' has no valid zone") }
            return try utc(parts, text).shifted(by: -offset)
        }
        return isUTC ? try utc(parts, text) : try local(parts, text)
    }

    /// The last second of the year 9999.
    private static let latest: Int64 = 253_402_300_799

    private static func digits(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private static func parts(of time: Timestamp, isUTC: Bool) -> tm {
        var (seconds, parts) = (time_t(time.milliseconds / 1000), tm())
        if isUTC { gmtime_r(&seconds, &parts) } else { localtime_r(&seconds, &parts) }
        return parts
    }

    /// Midnight of a day.
    private static func start(ofDaysAgo days: Int32, isUTC: Bool, now: Timestamp) throws(Mistake) -> Timestamp {
        // Count the days at noon, because a day may have 23 hours.
        var day = parts(of: now, isUTC: isUTC)
        (day.tm_hour, day.tm_min, day.tm_sec, day.tm_isdst) = (12, 0, 0, -1)
        day.tm_mday -= days
        let noon = Timestamp(milliseconds: Int64(isUTC ? timegm(&day) : mktime(&day)) * 1000)
        let start = parts(of: noon, isUTC: isUTC)
        return try read(
            "\(start.tm_year + 1900)-\(digits(start.tm_mon + 1))-\(digits(start.tm_mday))", isUTC: isUTC, now: now)
    }

    private typealias Match = (Substring, Substring, Substring, Substring, Substring?, Substring?, Substring?)

    private static func parts(_ match: Match) -> tm? {
        var parts = tm()
        guard let year = Int32(match.1), let month = Int32(match.2), let day = Int32(match.3), year >= 1970,
            let hour = Int32(match.4?.prefix(2) ?? "0"), let minute = Int32(match.4?.suffix(2) ?? "0"),
            let second = Int32(match.5 ?? "0"), (1...12).contains(month), hour < 24, minute < 60, second < 60
        else { return nil }
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day)
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second)
        return parts
    }

    private static func seconds(ofOffset text: Substring) -> Int64? {
        if text == "Z" { return 0 }
        let digits = text.filter(\.isNumber)
        guard let hours = Int64(digits.prefix(2)), let minutes = Int64(digits.suffix(2)), hours < 24, minutes < 60
        else {
            return nil
        }
        return (hours * 60 + minutes) * (text.first == "-" ? -60 : 60)
    }

    private static func utc(_ parts: tm, _ text: String) throws(Mistake) -> Timestamp {
        var made = parts
        let seconds = timegm(&made)
        guard made.tm_mday == parts.tm_mday else { throw Mistake(message: "there is no day '\(text.prefix(10))'") }
        return Timestamp(milliseconds: Int64(seconds) * 1000)
    }

    private static func local(_ parts: tm, _ text: String) throws(Mistake) -> Timestamp {
        _ = try utc(parts, text)
        // Try daylight saving time first: if an hour occurs twice, it has the earlier one.
        for summer: Int32 in [1, 0] {
            var made = parts
            made.tm_isdst = summer
            let seconds = mktime(&made)
            if made.tm_hour == parts.tm_hour, made.tm_min == parts.tm_min, made.tm_mday == parts.tm_mday {
                return Timestamp(milliseconds: Int64(seconds) * 1000)
            }
        }
        throw Mistake(message: "there is no '\(text)': the clock is set forward in that hour")
    }
}

extension Timestamp {
    fileprivate func shifted(by seconds: Int64) -> Timestamp { Timestamp(milliseconds: milliseconds + seconds * 1000) }
}
