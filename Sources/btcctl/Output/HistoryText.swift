import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket

/// Whose midnight begins a day.
enum DayZone: String, CaseIterable {
    case utc
    /// That of the reader's time zone.
    case local
}

struct HistoryText {
    static let csvHeader =
        "time,start,open,high,low,close,ticks,fresh,origin,covered_minutes,doubtful,currency,pair,covered_seconds,single"

    /// ISO 4217
    let currency: String
    let length: CandleLength
    let timestamps: TimestampFormatter
    let days: DayZone

    init(currency: String, length: CandleLength, timestamps: TimestampFormatter, days: DayZone = .utc) {
        self.currency = currency
        self.length = length
        var timestamps = timestamps
        timestamps.hasSeconds = length == .second
        self.timestamps = timestamps
        self.days = days
    }

    init(currency: String, step: Candle.Step, timestamps: TimestampFormatter) {
        self.init(currency: currency, length: CandleLength(step), timestamps: timestamps)
    }

    /// Whether it is made of days, and begins at a midnight.
    private var isOfDays: Bool { length.base == .day }
    private var calendar: ReaderCalendar { ReaderCalendar(isUTC: days == .utc) }
    private var name: String { length.rawValue.prefix(1).uppercased() + length.rawValue.dropFirst() }

    var header: [String] {
        [isOfDays ? "\(name) (\(days == .utc ? "UTC" : "local"))" : "Time", "Open", "High", "Low", "Close", "Origin"]
    }

    /// A table that is no wider than the terminal: if it must be, without the first price, and without the highest and the lowest one. The
    /// notes on a candle that have no room beside it follow in lines of their own.
    /// - Parameter rows: The ``header`` and rows of candles.
    static func table(_ rows: [[String]], width: Int) -> [String] {
        func parts(_ row: [String], without left: [Int]) -> (cells: [String], notes: String) {
            let cells = row.indices.filter { !left.contains($0) }.map { row[$0] }
            guard let last = cells.last, let comma = last.start(of: ", ") else { return (cells, "") }
            return (cells.dropLast() + [String(last[..<comma])], String(last[comma...].dropFirst(2)))
        }
        let tables = [[], [1], [1, 2, 3]].map { left in rows.map { parts($0, without: left) } }
        let fitting = tables.first { table in Table.lines(table.map(\.cells)).allSatisfy { $0.count <= width } }
        let table = fitting ?? tables[tables.count - 1]
        return zip(Table.lines(table.map(\.cells)), table).flatMap { line, row in
            let whole = row.notes.isEmpty ? line : "\(line), \(row.notes)"
            return whole.count <= width ? [whole] : [line] + Table.wrapped("    ", row.notes, width: width + 1)
        }
    }

    func row(_ candle: Candle) -> [String] {
        let money = MoneyFormatter()
        return [isOfDays ? day(candle) : timestamps.string(from: start(of: candle))]
            + [candle.open, candle.high, candle.low, candle.close].map { money.string(from: $0, currency: currency) }
            + [([candle.origin] + notes(on: candle)).joined(separator: ", ")]
    }

    /// A line for other programs: `2026-08-25T14:30:00+02:00 68901.23 68950 68890.1 68900 own`, and notes in parentheses.
    func line(_ candle: Candle) -> String {
        let notes = notes(on: candle)
        return
            ([iso(candle)] + prices(candle) + [candle.origin]
            + (notes.isEmpty ? [] : ["(\(notes.joined(separator: ", ")))"])).joined(separator: " ")
    }

    /// A line with the columns of ``csvHeader``.
    func csv(_ candle: Candle) -> String {
        var fields = [iso(candle), "\(candle.start)"] + prices(candle)
        fields += ["\(candle.ticks)", "\(candle.fresh)", candle.origin]
        fields += [candle.coveredMinutes, candle.doubtful].map { $0.map(String.init) ?? "" }
        fields += [currency, "BTC/\(currency)"]
        fields += [candle.covered, candle.single].map { $0.map(String.init) ?? "" }
        return fields.joined(separator: ",")
    }

    /// A line of a journal.
    func ledger(_ candle: Candle, _ ledger: Ledger) -> String {
        ledger.line(
            candle.close, at: Timestamp(milliseconds: (end(of: candle) - 1) * 1000), currency,
            notes(on: candle) + (candle.isDerived ? [Candle.derived] : []))
    }

    /// When a candle ends, in Unix seconds.
    func end(of candle: Candle) -> Int64 {
        length.span(of: candle.start, calendar).upperBound
    }

    /// One JSON object: the interface's `Candle` with its currency and step.
    func json(_ candle: Candle) -> String {
        Output.json(["currency": .string(currency), "step": .string(length.rawValue)], candle.json)
    }

    /// `Aug 25, 14:30 - $68,901.23`; `Jun 1, 12:00 - about $71,573.67 (day: $71,561.40 to $72,666.78)` if no minute is known;
    /// `Jun 1, 12:00 - about $71,573.67 (unconfirmed)` if all of it is in doubt.
    func line(_ known: PriceAt, at time: Timestamp) -> String {
        let price = MoneyFormatter().string(from: known.price, currency: currency)
        let range = known.isCoarse ? range(of: known.candle) : nil
        let qualifiers = [
            range, known.candle.isInDoubt ? "unconfirmed" : nil, known.candle.isDerived ? "derived" : nil,
        ].compactMap(\.self)
        return PriceTexts.line(
            timestamps.string(from: time),
            known.isApproximate ? "about \(price) (\(qualifiers.joined(separator: "; ")))" : price)
    }

    /// `day: $71,561.40 to $72,666.78`, or `38 of 60 minutes of the hour: …`
    func range(of candle: Candle) -> String {
        let money = MoneyFormatter()
        let (low, high) = (candle.low, candle.high)
        let part = PriceTexts.coverage(of: candle, minutes: minutes(of: candle)).map { "\($0) of the " } ?? ""
        return
            "\(part)\(length.rawValue): \(money.string(from: low, currency: currency)) to \(money.string(from: high, currency: currency))"
    }

    /// `Minute from Aug 25, 14:30: open $68,901.23, high $68,950.00, low $68,890.10, close $68,900.00; own prices, 59 of 60 ticks`,
    /// `Day of Aug 25 (UTC): …`
    func description(of candle: Candle) -> String {
        let money = MoneyFormatter()
        let parts = [("open", candle.open), ("high", candle.high), ("low", candle.low), ("close", candle.close)]
            .map { "\($0) \(money.string(from: $1, currency: currency))" }
        let origin =
            switch candle.origin {
            case Candle.own: "own prices, \(candle.fresh) of \(candle.ticks) ticks"
            case Candle.mixed: "of several origins, not all checked"
            case Candle.derived: "derived from another currency's by the reference rate of the day"
            default: "from \(candle.origin), not checked"
            }
        let time = isOfDays ? "of \(day(candle)) (UTC)" : "from \(timestamps.string(from: start(of: candle)))"
        return
            "\(name) \(time): \(parts.joined(separator: ", ")); \(([origin] + notes(on: candle)).joined(separator: ", "))"
    }

    private func day(_ candle: Candle) -> String {
        var timestamps = timestamps
        timestamps.isUTC = days == .utc
        return timestamps.date(of: start(of: candle))
    }

    func notes(on candle: Candle) -> [String] { PriceTexts.notes(on: candle, minutes: minutes(of: candle)) }

    private func minutes(of candle: Candle) -> Int64 { (end(of: candle) - candle.start) / 60 }

    private func start(of candle: Candle) -> Timestamp { Timestamp(milliseconds: candle.start * 1000) }

    private func iso(_ candle: Candle) -> String {
        var timestamps = timestamps
        timestamps.isISO = true
        // West of Greenwich a day of UTC would have the date of the day before.
        if isOfDays, days == .utc { timestamps.isUTC = true }
        return timestamps.string(from: start(of: candle))
    }

    private func prices(_ candle: Candle) -> [String] {
        [candle.open, candle.high, candle.low, candle.close].map(\.description)
    }
}
