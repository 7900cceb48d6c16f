package import BTCPriceCore
import Glibc

/// Reads points in time as people write them: `24h` or `-24h` (ago), `1y` or `3mo` (ago, by the calendar), `2026-08-25`, `2026-08-25T14:30`,
/// `2026-08-25 14:30:05`, `2026-08-25T14:30:05+02:00`, `2026-08-25T12:30Z`, `14:30` (today), and `now`, `today`, `yesterday` and
/// `@1795400000` as in systemd.time(7), with 13 digits in milliseconds. Fractions of a second are ignored.
package enum ReaderTime {
    /// Why a text is not a valid point in time.
    package struct Mistake: Error, Sendable, Hashable {
        package let message: String
    }

    package struct Reading: Sendable, Hashable {
        package let time: Timestamp
        /// The later moment with the same time, if the clocks show it twice and the text does not say which one is meant.
        package var second: Timestamp?
    }

    /// The longest time ago that is accepted, seconds: a little more than a hundred years.
    private static let longestAgo: Int64 = 3_200_000_000
    /// Seconds; at most so many for a month and a year.
    private static let units: [Substring: Int64] = [
        "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "mo": 2_678_400, "y": 31_622_400,
    ]

    /// - Parameter isUTC: Whether a time without a zone is in UTC rather than in the reader's time zone. If the clocks show it twice, the first one
    ///   is used. A day begins at its first moment, also if the clock is set forward over midnight.
    package static func reading(_ text: String, isUTC: Bool, now: Timestamp) throws(Mistake) -> Reading {
        let calendar = ReaderCalendar(isUTC: isUTC)
        let today = calendar.startOfDay(now.wholeSeconds)
        switch text {
        case "now": return Reading(time: now)
        case "today": return Reading(time: Timestamp(milliseconds: today * 1000))
        case "yesterday": return Reading(time: Timestamp(milliseconds: calendar.startOfDay(today - 1) * 1000))
        default: break
        }
        if let match = text.wholeMatch(of: /-?(\d+)(s|mo?|h|d|w|y)/), let unit = units[match.2],
            let number = Int64(match.1),
            number <= longestAgo / unit
        {
            guard let months = ["mo": 1, "y": 12][match.2].map({ Int32(number) * $0 }) else {
                return Reading(time: Timestamp(milliseconds: now.milliseconds - number * unit * 1000))
            }
            let then = calendar.moment(months, monthsBefore: now.wholeSeconds)
            return Reading(time: Timestamp(milliseconds: now.milliseconds + (then - now.wholeSeconds) * 1000))
        }
        if text.first == "@", let number = Int64(text.dropFirst()), number >= 0 {
            if number <= latest { return Reading(time: Timestamp(milliseconds: number * 1000)) }
            if text.count == 14 { return Reading(time: Timestamp(milliseconds: number)) }
        }
        if text.wholeMatch(of: /\d\d?:\d\d(?::\d\d)?/) != nil {
            let date = TimestampFormatter(isUTC: isUTC, isISO: true).date(of: now)
            return try reading("\(date)T\(text.count % 3 == 1 ? "0" : "")\(text)", isUTC: isUTC, now: now)
        }
        let pattern = /(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?/
        guard let match = text.wholeMatch(of: pattern), var parts = parts(match.output) else {
            throw Mistake(
                message:
                    "'\(text)' is not a time; write 24h or 7d (ago), yesterday, 14:30, 2026-08-25, 2026-08-25T14:30, 2026-08-25T14:30:05Z or @1795400000"
            )
        }
        let day = parts.tm_mday
        let wall = Int64(timegm(&parts))
        guard parts.tm_mday == day else { throw Mistake(message: "there is no day '\(text.prefix(10))'") }
        if let offset = match.output.6 {
            guard let offset = seconds(ofOffset: offset) else { throw Mistake(message: "'\(text)' has no valid zone") }
            return Reading(time: Timestamp(milliseconds: (wall - offset) * 1000))
        }
        var moments = calendar.moments(at: wall)
        if moments.isEmpty, match.output.4 == nil {
            let first = calendar.first(at: wall)
            guard calendar.wall(at: first) < wall + Candle.Step.day.seconds else {
                throw Mistake(message: "there is no day '\(text)' in this time zone")
            }
            moments = [first]
        }
        guard let first = moments.first else {
            throw Mistake(message: "there is no '\(text)': the clock is set forward in that hour")
        }
        return Reading(
            time: Timestamp(milliseconds: first * 1000),
            second: moments.count > 1 && match.output.4 != nil ? Timestamp(milliseconds: moments[1] * 1000) : nil)
    }

    /// The midnight of UTC that begins the day which a text names, such as `2026-08-25` or `yesterday`; `nil` if it names no day.
    /// - Parameter time: What ``reading(_:isUTC:now:)`` has read.
    package static func utcDay(_ text: String, read time: Timestamp, isUTC: Bool, now: Timestamp) -> Timestamp? {
        guard ["today", "yesterday"].contains(text) || text.wholeMatch(of: /\d{4}-\d\d-\d\d/) != nil else { return nil }
        let date = TimestampFormatter(isUTC: isUTC, isISO: true).date(of: time)
        return try? reading(date, isUTC: true, now: now).time
    }

    /// The last second of the year 9999.
    private static let latest: Int64 = 253_402_300_799

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
}
