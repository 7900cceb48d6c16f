package import BTCPriceCore
import Glibc

/// The time that a chart shows.
package struct ChartSpan: Sendable, Hashable {
    package enum Start: Sendable, Hashable {
        /// That of everything that is known.
        case known
        /// So many seconds before the end.
        case last(Int64)
        /// Unix seconds.
        case at(Int64)
    }

    package let start: Start
    /// Unix seconds; `nil` for the present.
    package let end: Int64?
    /// How the title names it: `24h`, `Aug 1 to Aug 25`.
    package let name: String

    package init(_ start: Start, end: Int64? = nil, name: String) {
        (self.start, self.end, self.name) = (start, end, name)
    }

    package static let hour = ChartSpan(.last(3600), name: "1h")
    package static let day = ChartSpan(.last(86_400), name: "24h")
    package static let week = ChartSpan(.last(7 * 86_400), name: "7d")
    package static let month = ChartSpan(.last(30 * 86_400), name: "30d")
    package static let year = ChartSpan(.last(365 * 86_400), name: "1y")
    package static let all = ChartSpan(.known, name: "all")
    /// Those that are offered by name.
    package static let named = [hour, day, week, month, year, all]

    /// The shortest one, in seconds.
    package static let least: Int64 = 60

    /// The time shown, Unix seconds.
    /// - Parameter first: The start of the first known candle; `nil` for none.
    package func range(now: Int64, first: Int64? = nil) -> Range<Int64> {
        let end = end ?? now
        let start =
            switch start {
            case .known: min(end - 86_400, first ?? end)
            case .last(let seconds): end - seconds
            case .at(let second): second
            }
        return min(start, end - Self.least)..<end + 1
    }

    /// The step of the candles that are drawn: at most some 2,000 of them.
    package func step(now: Int64) -> Candle.Step {
        guard start != .known else { return .day }
        let range = range(now: now)
        return switch range.upperBound - range.lowerBound {
        case ...129_600: .minute
        case ...7_776_000: .hour
        default: .day
        }
    }

    /// The time axis, with labels at round times of the reader's time zone.
    /// - Parameters:
    ///   - now: The present, Unix seconds.
    ///   - first: The start of the first candle, Unix seconds.
    ///   - width: Columns of the chart.
    package func axis(now: Int64, first: Int64?, isUTC: Bool, width: Int) -> Chart.Axis {
        let range = range(now: now, first: first)
        // A label takes about eight columns.
        let least = (range.upperBound - range.lowerBound) / Int64(max(2, width / 10))
        let calendar = ReaderCalendar(isUTC: isUTC)
        return Chart.Axis(range: range, labels: calendar.labels(in: range, atLeast: least))
    }
}

/// Round times of the reader's time zone.
extension ReaderCalendar {
    /// The distance from one label to the next.
    private enum Pace {
        case minutes(Int32)
        case days(Int32)
        case months(Int32)

        var seconds: Int64 {
            switch self {
            case .minutes(let count): Int64(count) * 60
            case .days(let count): Int64(count) * 86_400
            case .months(let count): Int64(count) * 2_630_000
            }
        }
    }

    private static let paces =
        [1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720].map(Pace.minutes) + [1, 2, 5, 10].map(Pace.days)
        + [1, 2, 3, 6, 12, 24, 60].map(Pace.months)

    /// Round times with their labels.
    /// - Parameters:
    ///   - range: Unix seconds.
    ///   - least: The minimum distance between two labels, seconds.
    func labels(in range: Range<Int64>, atLeast least: Int64) -> [Chart.Axis.Label] {
        let pace = Self.paces.first { $0.seconds >= least } ?? Self.paces[Self.paces.count - 1]
        var meant = parts(of: range.lowerBound) ?? tm()
        meant.tm_sec = 0
        switch pace {
        case .minutes(let minutes):
            meant.tm_min = minutes >= 60 ? 0 : meant.tm_min / minutes * minutes
            if minutes >= 60 { meant.tm_hour = meant.tm_hour / (minutes / 60) * (minutes / 60) }
        case .days(let days):
            (meant.tm_min, meant.tm_hour) = (0, 0)
            if days > 1 { meant.tm_mday = 1 }
        case .months(let months):
            (meant.tm_min, meant.tm_hour, meant.tm_mday) = (0, 0, 1)
            meant.tm_mon = months >= 12 ? 0 : meant.tm_mon / months * months
        }
        var labels: [Chart.Axis.Label] = []
        while labels.count < 1000 {
            // Also makes the date valid: the next day of Aug 31 is Sep 1.
            let wall = Int64(timegm(&meant))
            let second = moments(at: wall).first(where: range.contains) ?? first(at: wall)
            guard second < range.upperBound else { break }
            if range.contains(second), isShown(second, for: wall, pace) {
                labels.append(.init(second: second, text: text(meant, pace)))
            }
            switch pace {
            case .minutes(let minutes): meant.tm_min += minutes
            case .days(let days):
                let month = meant.tm_mon
                meant.tm_mday += days
                timegm(&meant)
                // Start again at the first of each month.
                if days > 1, meant.tm_mon != month || meant.tm_mday > 28 {
                    if meant.tm_mon == month { meant.tm_mon += 1 }
                    meant.tm_mday = 1
                }
            case .months(let months): meant.tm_mon += months
            }
        }
        return labels
    }

    /// Whether a moment has the wanted time. It does not if the clock is set forward over it; then a day begins later than at midnight.
    private func isShown(_ second: Int64, for wall: Int64, _ pace: Pace) -> Bool {
        if case .minutes = pace { return self.wall(at: second) == wall }
        return Candle.Step.day.start(of: self.wall(at: second)) == wall
    }

    private func text(_ parts: tm, _ pace: Pace) -> String {
        let month = Timestamp.monthNames[Int(parts.tm_mon)]
        switch pace {
        case .minutes where parts.tm_hour == 0 && parts.tm_min == 0: return "\(month) \(parts.tm_mday)"
        case .minutes: return "\(parts.tm_hour.padded(2)):\(parts.tm_min.padded(2))"
        case .days: return "\(month) \(parts.tm_mday)"
        case .months where parts.tm_mon == 0: return "\(Int(parts.tm_year) + 1900)"
        case .months: return month
        }
    }
}
