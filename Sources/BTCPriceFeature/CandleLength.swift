package import BTCPriceCore
import Glibc

/// The length of a candle that is shown: a step of the history, or several of them.
package enum CandleLength: String, Sendable, CaseIterable {
    case second
    case minute
    case fiveMinutes = "5m"
    case quarterHour = "15m"
    case hour
    case fourHours = "4h"
    case day
    /// From Monday.
    case week
    case month

    package init(_ step: Candle.Step) {
        switch step {
        case .second: self = .second
        case .minute: self = .minute
        case .hour: self = .hour
        case .day: self = .day
        }
    }

    /// The longest step that it can be made of.
    package var base: Candle.Step {
        switch self {
        case .second: .second
        case .minute, .fiveMinutes, .quarterHour: .minute
        case .hour, .fourHours: .hour
        case .day, .week, .month: .day
        }
    }

    /// Whether it is made of several candles of ``base``.
    package var isMerged: Bool { self != CandleLength(base) }

    /// Its length in seconds; for a month, that of the shortest.
    package var seconds: Int64 {
        switch self {
        case .fiveMinutes: 300
        case .quarterHour: 900
        case .fourHours: 14_400
        case .week: 7 * Candle.Step.day.seconds
        case .month: 28 * Candle.Step.day.seconds
        default: base.seconds
        }
    }

    /// The start of the first one of the last candles before a moment.
    /// - Parameter count: How many, with the one that contains the last millisecond before it.
    package func start(ofLast count: Int, before time: Timestamp, _ calendar: ReaderCalendar) -> Timestamp {
        var start = span(of: (time.milliseconds - 1) / 1000, calendar).lowerBound
        for _ in 1..<max(1, count) { start = span(of: start - 1, calendar).lowerBound }
        return Timestamp(milliseconds: start * 1000)
    }

    /// The span of the candle that contains a moment, Unix seconds.
    /// - Parameter calendar: Where days begin. Shorter candles begin at multiples of their length in UTC.
    package func span(of second: Int64, _ calendar: ReaderCalendar) -> Range<Int64> {
        guard base == .day, self != .day || !calendar.isUTC else {
            let rest = second % seconds
            let start = second - (rest < 0 ? rest + seconds : rest)
            return start..<start + seconds
        }
        guard let parts = calendar.parts(of: second) else { return second..<second + seconds }
        let wall = Candle.Step.day.start(of: calendar.wall(at: second))
        let day = Candle.Step.day.seconds
        switch self {
        case .month:
            let first = wall - Int64(parts.tm_mday - 1) * day
            // 31 days later it is the next month.
            let later = first + 31 * day
            let date = ReaderCalendar(isUTC: true).parts(of: later).map { Int64($0.tm_mday) } ?? 1
            return calendar.first(at: first)..<calendar.first(at: later - (date - 1) * day)
        case .week:
            let first = wall - Int64((parts.tm_wday + 6) % 7) * day
            return calendar.first(at: first)..<calendar.first(at: first + 7 * day)
        default: return calendar.first(at: wall)..<calendar.first(at: wall + day)
        }
    }
}

/// Makes candles of a length from those of its base, as they come. A pure value.
package struct CandleMerger: Sendable {
    private let length: CandleLength
    private let calendar: ReaderCalendar
    private let now: Int64
    /// Those of the candle that is not complete.
    private var parts: [Candle] = []

    /// - Parameter now: Unix seconds. Later minutes can't be known yet.
    package init(_ length: CandleLength, _ calendar: ReaderCalendar, at now: Int64) {
        (self.length, self.calendar, self.now) = (length, calendar, now)
    }

    /// Adds later candles of the base.
    /// - Returns: The candles that are complete.
    package mutating func add(_ candles: [Candle]) -> [Candle] {
        guard length.isMerged else { return candles }
        var made: [Candle] = []
        for candle in candles {
            if let first = parts.first, !length.span(of: first.start, calendar).contains(candle.start) {
                made += finish()
            }
            parts.append(candle)
        }
        return made
    }

    /// The candle of what was added last.
    package mutating func finish() -> [Candle] {
        guard let first = parts.first else { return [] }
        defer { parts = [] }
        let base = CandleLength(length.base)
        let whole = parts.map { part in
            var part = part
            // A day of the reader may have 23 or 25 hours.
            let span = base.span(of: part.start, calendar)
            part.covered = part.covered ?? span.upperBound - span.lowerBound
            return part
        }
        return Candle(whole, of: length.base, in: length.span(of: first.start, calendar), at: now).map { [$0] } ?? []
    }
}
