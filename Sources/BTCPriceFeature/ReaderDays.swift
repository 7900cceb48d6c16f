package import BTCPriceCore

/// Days that begin at the reader's midnight, made of the candles of hours, and of minutes where a day begins within an hour of UTC.
package struct ReaderDays: Sendable {
    /// The days, in Unix seconds.
    private let days: [Range<Int64>]

    /// The days that begin at `from` or later, and before `to`.
    package init(from: Timestamp, to: Timestamp, calendar: ReaderCalendar) {
        let first = from.milliseconds <= 0 ? 0 : (from.milliseconds - 1) / 1000
        var (days, start) = ([Range<Int64>](), calendar.startOfDay(after: first))
        while start * 1000 < to.milliseconds {
            let end = calendar.startOfDay(after: start)
            days.append(start..<end)
            start = end
        }
        self.days = days
    }

    /// The span of the hours that they are made of; `nil` without a day.
    package var hours: (from: Timestamp, to: Timestamp)? {
        guard let first = days.first, let last = days.last else { return nil }
        return (
            Timestamp(milliseconds: Candle.Step.hour.start(of: first.lowerBound) * 1000),
            Timestamp(milliseconds: last.upperBound * 1000)
        )
    }

    /// The starts of those hours of which the minutes are needed, too, because a day begins within them.
    /// - Parameter hours: The hours that are known.
    package func cut(_ hours: [Candle]) -> [Int64] {
        let known = Set(hours.map(\.start))
        return Set(
            days.flatMap { [$0.lowerBound, $0.upperBound] }.filter { $0 % 3600 != 0 }.map(Candle.Step.hour.start)
        )
        .filter(known.contains).sorted()
    }

    /// The candles of the days of which enough is known.
    /// - Parameters:
    ///   - minutes: Those of the hours of ``cut(_:)``.
    ///   - now: Unix seconds.
    package func candles(hours: [Candle], minutes: [Candle], at now: Int64) -> [Candle] {
        let cut = Set(cut(hours))
        let single = minutes.map { minute in
            var minute = minute
            minute.covered = minute.covered ?? Candle.Step.minute.seconds
            return minute
        }
        var rest = (hours.filter { !cut.contains($0.start) } + single).sorted { $0.start < $1.start }[...]
        return days.compactMap { day in
            rest = rest.drop { $0.start < day.lowerBound }
            let parts = rest.prefix { $0.start < day.upperBound }
            return Candle(Array(parts), of: .hour, in: day, at: now)
        }
    }
}
