package import BTCPriceCore
import Glibc

/// A span of time that a chart shows.
package enum ChartSpan: String, Sendable, Hashable, CaseIterable {
    case hour = "1h"
    case day = "24h"
    case week = "7d"
    case month = "30d"
    case year = "1y"
    /// Everything that is known.
    case all

    /// The length in seconds; `nil` for all.
    package var seconds: Int64? {
        switch self {
        case .hour: 3600
        case .day: 86_400
        case .week: 7 * 86_400
        case .month: 30 * 86_400
        case .year: 365 * 86_400
        case .all: nil
        }
    }

    /// The step of the candles that are drawn.
    package var step: Candle.Step {
        switch self {
        case .hour, .day: .minute
        case .week, .month: .hour
        case .year, .all: .day
        }
    }

    /// The time axis, with labels at round times of the reader's time zone.
    /// - Parameters:
    ///   - now: The present, Unix seconds.
    ///   - first: The start of the first candle, Unix seconds.
    ///   - width: Columns of the chart.
    package func axis(now: Int64, first: Int64?, isUTC: Bool, width: Int) -> Chart.Axis {
        let length = seconds ?? max(86_400, now - (first ?? now))
        let range = now - length..<now + 1
        // A label takes about eight columns.
        let least = length / Int64(max(2, width / 10))
        let calendar = ReaderCalendar(isUTC: isUTC)
        return Chart.Axis(range, labels: calendar.labels(in: range, atLeast: least))
    }
}

/// Round times of the reader's time zone.
struct ReaderCalendar {
    /// The distance from one label to the next.
    private enum Pace {
        case minutes(Int32)
        case days(Int32)
        case months(Int32)
    }

    private static let paces: [(seconds: Int64, pace: Pace)] =
        [5, 10, 15, 30, 60, 120, 180, 240, 360, 720].map { (Int64($0) * 60, .minutes($0)) }
        + [1, 2, 5, 10].map { (Int64($0) * 86_400, .days($0)) }
        + [1, 2, 3, 6, 12, 24, 60].map { (Int64($0) * 2_630_000, .months($0)) }
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    let isUTC: Bool

    /// Round times with their labels.
    /// - Parameters:
    ///   - range: Unix seconds.
    ///   - least: The minimum distance between two labels, seconds.
    func labels(in range: Range<Int64>, atLeast least: Int64) -> [Chart.Axis.Label] {
        let pace = (Self.paces.first { $0.seconds >= least } ?? Self.paces[Self.paces.count - 1]).pace
        var parts = parts(of: range.lowerBound)
        parts.tm_sec = 0
        switch pace {
        case .minutes(let minutes):
            parts.tm_min = minutes >= 60 ? 0 : parts.tm_min / minutes * minutes
            if minutes >= 60 { parts.tm_hour = parts.tm_hour / (minutes / 60) * (minutes / 60) }
        case .days(let days):
            (parts.tm_min, parts.tm_hour) = (0, 0)
            if days > 1 { parts.tm_mday = 1 }
        case .months(let months):
            (parts.tm_min, parts.tm_hour, parts.tm_mday) = (0, 0, 1)
            parts.tm_mon = months >= 12 ? 0 : parts.tm_mon / months * months
        }
        var labels: [Chart.Axis.Label] = []
        while labels.count < 1000 {
            let second = second(of: parts)
            guard second < range.upperBound else { break }
            let shown = self.parts(of: second)
            if range.contains(second), isRound(shown, parts) { labels.append(.init(second, text(shown, pace))) }
            switch pace {
            case .minutes(let minutes): parts.tm_min += minutes
            case .days(let days):
                parts.tm_mday += days
                // Start again at the first of each month.
                let next = self.parts(of: self.second(of: parts))
                if days > 1, next.tm_mon != shown.tm_mon || next.tm_mday > 28 {
                    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (shown.tm_year, shown.tm_mon + 1, 1)
                }
            case .months(let months): parts.tm_mon += months
            }
        }
        return labels
    }

    /// Whether a time is the intended one. It is not if it falls in the hour that is skipped when daylight saving time begins.
    private func isRound(_ shown: tm, _ meant: tm) -> Bool {
        shown.tm_min % 5 == 0 && (meant.tm_hour + meant.tm_min / 60) % 24 == shown.tm_hour
    }

    private func text(_ parts: tm, _ pace: Pace) -> String {
        let month = Self.months[Int(parts.tm_mon)]
        switch pace {
        case .minutes where parts.tm_hour == 0 && parts.tm_min == 0: return "\(month) \(parts.tm_mday)"
        case .minutes: return "\(two(parts.tm_hour)):\(two(parts.tm_min))"
        case .days: return "\(month) \(parts.tm_mday)"
        case .months where parts.tm_mon == 0: return "\(Int(parts.tm_year) + 1900)"
        case .months: return month
        }
    }

    private func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private func parts(of second: Int64) -> tm {
        var (time, parts) = (time_t(second), tm())
        _ = isUTC ? gmtime_r(&time, &parts) : localtime_r(&time, &parts)
        return parts
    }

    private func second(of parts: tm) -> Int64 {
        var parts = parts
        parts.tm_isdst = -1
        return Int64(isUTC ? timegm(&parts) : mktime(&parts))
    }
}
