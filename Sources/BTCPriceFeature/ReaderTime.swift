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

        package init(time: Timestamp, second: Timestamp? = nil) {
            self.time = time
            self.second = second
        }
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
        let age = text.first == "-" ? text.dropFirst() : text[...]
        let (digits, name) = (age.prefix(while: isDigit), age.drop(while: isDigit))
        if let unit = units[name], let number = Int64(digits), number <= longestAgo / unit {
            guard let months = ["mo": 1, "y": 12][name].map({ Int32(number) * $0 }) else {
                return Reading(time: Timestamp(milliseconds: now.milliseconds - number * unit * 1000))
            }
            let then = calendar.moment(months, monthsBefore: now.wholeSeconds)
            return Reading(time: Timestamp(milliseconds: now.milliseconds + (then - now.wholeSeconds) * 1000))
        }
        if text.first == "@", let number = Int64(text.dropFirst()), number >= 0 {
            if number <= latest { return Reading(time: Timestamp(milliseconds: number * 1000)) }
            if text.count == 14 { return Reading(time: Timestamp(milliseconds: number)) }
        }
        if isClock(text) {
            let date = TimestampFormatter(isUTC: isUTC, isISO: true).date(of: now)
            return try reading("\(date)T\(text.count % 3 == 1 ? "0" : "")\(text)", isUTC: isUTC, now: now)
        }
        guard Written(text) != nil else {
            throw Mistake(
                message:
                    "'\(text)' is not a time; write 24h or 7d (ago), yesterday, 14:30, 2026-08-25, 2026-08-25T14:30, 2026-08-25T14:30:05Z or @1795400000"
            )
        }
        return try date(text, isUTC: isUTC)
    }

    /// Reads a date, perhaps with a time of day and a zone. The parameters are those of ``reading(_:isUTC:now:)``.
    package static func date(_ text: String, isUTC: Bool) throws(Mistake) -> Reading {
        guard let written = Written(text), var parts = written.parts else {
            throw Mistake(message: "'\(text)' is not a date and time such as 2026-08-25T14:30:05Z")
        }
        let calendar = ReaderCalendar(isUTC: isUTC)
        let day = parts.tm_mday
        let wall = Int64(timegm(&parts))
        guard parts.tm_mday == day else { throw Mistake(message: "there is no day '\(text.prefix(10))'") }
        if let offset = written.zone {
            guard let offset = seconds(ofOffset: offset) else { throw Mistake(message: "'\(text)' has no valid zone") }
            return Reading(time: Timestamp(milliseconds: (wall - offset) * 1000))
        }
        var moments = calendar.moments(at: wall)
        if moments.isEmpty, written.time == nil {
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
            second: moments.count > 1 && written.time != nil ? Timestamp(milliseconds: moments[1] * 1000) : nil)
    }

    /// The midnight of UTC that begins the day which a text names, such as `2026-08-25` or `yesterday`; `nil` if it names no day.
    /// - Parameter time: What ``reading(_:isUTC:now:)`` has read.
    package static func utcDay(_ text: String, read time: Timestamp, isUTC: Bool, now: Timestamp) -> Timestamp? {
        let written = Written(text)
        guard ["today", "yesterday"].contains(text) || written != nil && written?.time == nil else { return nil }
        let date = TimestampFormatter(isUTC: isUTC, isISO: true).date(of: time)
        return try? reading(date, isUTC: true, now: now).time
    }

    /// The last second of the year 9999.
    private static let latest: Int64 = 253_402_300_799

    private static func isDigit(_ character: Character) -> Bool { ("0"..."9").contains(character) }

    /// Whether it is a time of day: `9:30`, `14:30` or `14:30:05`.
    private static func isClock(_ text: String) -> Bool {
        var reader = Reader(rest: text[...])
        guard reader.digits(1...2) != nil, reader.take(":") != nil, reader.digits(2...2) != nil else { return false }
        return reader.rest.isEmpty
            || reader.take(":") != nil && reader.digits(2...2) != nil && reader.rest.isEmpty
    }

    /// Reads the parts of a text from its beginning.
    private struct Reader {
        var rest: Substring

        /// Reads digits of ASCII; `nil` if there are fewer.
        mutating func digits(_ count: ClosedRange<Int>) -> Substring? {
            let digits = rest.prefix(while: isDigit).prefix(count.upperBound)
            guard digits.count >= count.lowerBound else { return nil }
            rest = rest[digits.endIndex...]
            return digits
        }

        /// Reads one of these characters; `nil` if another one follows.
        mutating func take(_ characters: String) -> Character? {
            guard let first = rest.first, characters.contains(first) else { return nil }
            return rest.removeFirst()
        }
    }

    /// A date, perhaps with a time of day and a zone, as it is written.
    private struct Written {
        let year, month, day: Substring
        /// `14:30`
        private(set) var time: Substring?
        private(set) var second: Substring?
        /// `Z`, `+02:00`, `+0200` or `+02`
        private(set) var zone: Substring?

        /// - Returns: `nil` for any other text.
        init?(_ text: String) {
            var reader = Reader(rest: text[...])
            guard let year = reader.digits(4...4), reader.take("-") != nil, let month = reader.digits(2...2),
                reader.take("-") != nil, let day = reader.digits(2...2)
            else { return nil }
            (self.year, self.month, self.day) = (year, month, day)
            guard !reader.rest.isEmpty else { return }
            guard reader.take("T ") != nil else { return nil }
            time = reader.rest.prefix(5)
            guard reader.digits(2...2) != nil, reader.take(":") != nil, reader.digits(2...2) != nil else { return nil }
            if reader.take(":") != nil {
                second = reader.digits(2...2)
                guard second != nil, reader.take(".") == nil || reader.digits(1...9) != nil else { return nil }
            }
            guard !reader.rest.isEmpty else { return }
            zone = reader.rest
            guard let sign = reader.take("Z+-") else { return nil }
            if sign != "Z" {
                guard reader.digits(2...2) != nil else { return nil }
                if reader.take(":") != nil || !reader.rest.isEmpty {
                    guard reader.digits(2...2) != nil else { return nil }
                }
            }
            guard reader.rest.isEmpty else { return nil }
        }

        /// `nil` if a number is out of its range; the day may be.
        var parts: tm? {
            var parts = tm()
            guard let year = Int32(year), let month = Int32(month), let day = Int32(day), year >= 1970,
                let hour = Int32(time?.prefix(2) ?? "0"), let minute = Int32(time?.suffix(2) ?? "0"),
                let second = Int32(second ?? "0"), (1...12).contains(month), hour < 24, minute < 60, second < 60
            else { return nil }
            (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day)
            (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second)
            return parts
        }
    }

    private static func seconds(ofOffset text: Substring) -> Int64? {
        if text == "Z" { return 0 }
        let digits = text.filter(\.isNumber)
        guard let hours = Int64(digits.prefix(2)), let minutes = Int64(digits.count > 2 ? digits.suffix(2) : "0"),
            hours < 24, minutes < 60
        else {
            return nil
        }
        return (hours * 60 + minutes) * (text.first == "-" ? -60 : 60)
    }
}
