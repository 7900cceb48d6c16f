package import BTCPriceCore
import Glibc

/// Reads points in time as people write them: `24h` (ago), `2026-08-25`, `2026-08-25T14:30`, `2026-08-25 14:30:05`,
/// `2026-08-25T14:30:05+02:00`, `2026-08-25T12:30Z`, `now`. Fractions of a second are left out.
package enum ReaderTime {
    /// Why a text is no point in time.
    package struct Mistake: Error, Sendable, Hashable {
        /// What is wrong.
        package let message: String
    }

    /// Somewhat more than a hundred years, seconds.
    private static let longestAgo: Int64 = 3_200_000_000
    private static let units: [Character: Int64] = [
        "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_622_400,
    ]

    /// - Parameters:
    ///   - isUTC: Whether a time without a zone is UTC, and not the reader's. Of an hour that comes twice, at the end of summer time,
    ///     the first one is meant.
    ///   - now: The present.
    package static func read(_ text: String, isUTC: Bool, now: Timestamp) throws(Mistake) -> Timestamp {
        if text == "now" { return now }
        if let unit = text.last.flatMap({ units[$0] }), let number = Int64(text.dropLast()),
            (0...longestAgo / unit).contains(number)
        {
            return Timestamp(milliseconds: now.milliseconds - number * unit * 1000)
        }
        let pattern = /(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?/
        guard let match = text.wholeMatch(of: pattern), let parts = parts(match.output) else {
            throw Mistake(
                message: "'\(text)' is no time; write 24h, 7d, 2026-08-25, 2026-08-25T14:30 or 2026-08-25T14:30:05Z")
        }
        if let offset = match.output.6 {
            guard let offset = seconds(ofOffset: offset) else { throw Mistake(message: "'\(text)' has no valid zone") }
            return try utc(parts, text).shifted(by: -offset)
        }
        return isUTC ? try utc(parts, text) : try local(parts, text)
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
        // Summer time first: of two such hours it has the earlier one.
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
