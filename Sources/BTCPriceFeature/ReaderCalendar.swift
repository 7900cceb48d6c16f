import BTCPriceCore
import Glibc

/// The reader's dates and times: those of the C library's time zone (TZ, otherwise /etc/localtime), or of UTC. Moments are Unix seconds.
/// A date and time is the second at which the clocks of UTC show it.
package struct ReaderCalendar: Sendable, Hashable {
    private static let day = Candle.Step.day.seconds

    package let isUTC: Bool

    package init(isUTC: Bool) {
        self.isUTC = isUTC
    }

    /// The date and time of a moment, and its zone; `nil` if its year is too large.
    func parts(of second: Int64) -> tm? {
        var (time, parts) = (time_t(second), tm())
        let isKnown = isUTC ? gmtime_r(&time, &parts) != nil : localtime_r(&time, &parts) != nil
        return isKnown ? parts : nil
    }

    /// The difference to UTC at a moment, in seconds.
    private func offset(at second: Int64) -> Int64 { Int64(parts(of: second)?.tm_gmtoff ?? 0) }

    /// The reader's wall-clock time at a moment, as seconds since 1970-01-01 00:00 on that clock.
    func wall(at second: Int64) -> Int64 { second + offset(at: second) }

    /// The moments of a date and time, the earlier one first: two if the clock is set back over it, none if it is set forward over it.
    func moments(at wall: Int64) -> [Int64] {
        // tm_isdst does not tell which one is earlier: it is 1 in the winter of some zones.
        let (before, after) = (offset(at: wall - Self.day), offset(at: wall + Self.day))
        if before == after { return [wall - before] }
        return [wall - max(before, after), wall - min(before, after)].filter { self.wall(at: $0) == wall }
    }

    /// The first moment of a date and time; if the clock is set forward over it, the moment of that.
    func first(at wall: Int64) -> Int64 {
        if let first = moments(at: wall).first { return first }
        var (before, after) = (wall - Self.day, wall + Self.day)
        while after - before > 1 {
            let middle = (before + after) / 2
            if self.wall(at: middle) < wall { before = middle } else { after = middle }
        }
        return after
    }

    package func startOfDay(_ second: Int64) -> Int64 { first(at: Candle.Step.day.start(of: wall(at: second))) }

    package func startOfDay(after second: Int64) -> Int64 {
        first(at: Candle.Step.day.start(of: wall(at: second)) + Self.day)
    }

    /// The moment with the same date and time so many months before; of the month's last day if it has fewer days.
    func moment(_ months: Int32, monthsBefore second: Int64) -> Int64 {
        guard var parts = parts(of: second) else { return second }
        let day = Int64(parts.tm_mday)
        parts.tm_mon -= months
        parts.tm_mday = 1
        var next = parts
        next.tm_mon += 1
        let (start, end) = (Int64(timegm(&parts)), Int64(timegm(&next)))
        return first(at: start + (min(day, (end - start) / Self.day) - 1) * Self.day)
    }
}
