import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import Glibc

/// `btcctl history`: prints candles.
enum History {
    /// What is printed, and of which time.
    struct Request {
        /// How candles are printed.
        enum Form: Equatable {
            /// A table on a terminal; otherwise, one line per candle.
            case text
            case csv
            case json
            case ledger(Ledger)
        }

        var daemon = DaemonAddress()
        var currency: String?
        var span: Range<Timestamp>
        /// The same for days of UTC, if it differs: a day that is named is that of UTC.
        var utcDays: Range<Timestamp>?
        /// What is to be known of the two times.
        var notes: [String] = []
        /// `nil` for the shortest step that covers the span and gives a table of readable length.
        var length: CandleLength?
        var days = DayZone.utc
        var form = Form.text
        var timestamps = TimestampFormatter()

        /// The span that candles of this step are wanted of.
        func span(_ step: Candle.Step) -> Range<Timestamp> { step == .day && days == .utc ? utcDays ?? span : span }

        var calendar: ReaderCalendar { ReaderCalendar(isUTC: days == .utc) }
    }

    static let verb = Verb(
        command: Command(
            "history", "Print the history of the price as candles.",
            details: """
                Examples:
                  btcctl history                                 the last 24 hours, hour by hour
                  btcctl history --since 7d --step 1d
                  btcctl history --step 1w -n 10                 the last ten weeks
                  btcctl history --since 2026-08-25 --until 2026-08-26T12:00 --csv > august.csv
                  btcctl history --since 2026-08-01 --step 1d --day-zone local
                  btcctl history --since 10m --step 1s --json
                  btcctl history --since 2026-01-01 --ledger hledger > prices.journal

                A candle has the first, the highest, the lowest and the last price of its span. On a terminal this prints a table, \
                else a row a line: the time, these four prices, and the origin. The origin is own, or an exchange for a candle that \
                was requested from it and not checked. Seconds are kept for the last hour. Days are in UTC, without --day-zone; \
                a week begins on Monday. A candle that covers only a part of its span, or has prices in doubt, says so.

                --ledger prints the last price of each local day (by default of 30 days), or of each --step, at the last second of it. What is not over is left out. What is to be known of a price is a comment.

                Exit status: 0 with at least one candle, 1 with none, 64 for a wrong command line, 69 if the daemon can't be \
                reached, 74 if standard output can't be written.
                """,
            options: Option.daemon + [.currency, since, until, last, step, .dayZone, csv, Ledger.option]
                + [Ledger.commodityOption, Ledger.satoshisOption] + Option.times + [.jsonLines])
    ) { line throws(UsageError) in
        run(try request(line))
    }

    private static let since = Option(
        "--since", value: "time", "The start: 24h (the default) or 7d ago, yesterday, 2026-08-25, 2026-08-25T14:30.")
    private static let until = Option("--until", value: "time", "The end, in the same forms.")
    private static let last = Option(
        "--count", letter: "n", value: "number",
        "Print so many candles, up to the present or --until; by default hours.")
    static let step = Option(
        "--step", value: "step", "The length of a candle: \(StepChoice.names), or auto (the default).",
        completion: .words(StepChoice.allCases.map(\.rawValue)))
    private static let csv = Option("--csv", "Print comma-separated values with a header.")

    private static func request(_ line: ParsedLine) throws(UsageError) -> Request {
        let ledger = try Ledger(line)
        let forms: [Request.Form?] = [
            line.has(csv) ? .csv : nil, line.has(.json) ? .json : nil, ledger.map { .ledger($0) },
        ]
        guard forms.compactMap(\.self).count <= 1 else {
            throw UsageError("only one of --csv, --json and --ledger can be printed")
        }
        let (now, isUTC) = (ObservationTime.now().wall, line.has(.utc))
        let read = { (text: String) throws(UsageError) in try moment(text, isUTC: isUTC, now: now) }
        let from = try line.value(since, read)
        let to = try line.value(until, read) ?? (time: now, utcDay: nil, note: nil)
        let days = ledger == nil ? try line.dayZone() : .local
        let chosen = try line.choice(step, among: StepChoice.allCases)?.length
        let number = try line.number(last, in: 1...100_000)
        if number != nil, from != nil { throw UsageError("--count and --since exclude each other") }
        let length = chosen ?? (ledger != nil ? .day : number != nil ? .hour : nil)
        let usual: Int64 = (ledger == nil ? 1 : 30) * 86_400_000
        var start = from?.time ?? Timestamp(milliseconds: now.milliseconds - usual)
        // The usual time holds no week.
        if let length, let count = number ?? (from == nil && length.isMerged && length.base == .day ? 12 : nil) {
            let isOfUTC = length.base == .day && days == .utc
            let calendar = ReaderCalendar(isUTC: days == .utc)
            // A journal has no candle that is not over.
            let begun = length.span(of: now.wholeSeconds, calendar).lowerBound
            let last = ledger == nil ? now : Timestamp(milliseconds: begun * 1000)
            start = length.start(
                ofLast: count, before: min(isOfUTC ? to.utcDay ?? to.time : to.time, last), calendar)
        }
        guard start < to.time else {
            let text = line.text(since) ?? (ledger == nil ? "24h" : "30d")
            throw UsageError(
                line.text(until).map { "--since: '\(text)' is not before '\($0)'" }
                    ?? "--since: '\(text)' is in the future")
        }
        if let ledger {
            if line.has(.utc) || line.has(.iso) || line.has(.dayZone) {
                throw UsageError(
                    "--ledger has the times that the tools read: those of the local time zone (TZ=UTC sets it)")
            }
            if ledger.tool == .beancount, let chosen, chosen.base != .day {
                throw UsageError("beancount has one price a day: leave out --step, or take 1w or 1mo")
            }
        }
        let (first, end) = (from?.utcDay ?? start, to.utcDay ?? to.time)
        return Request(
            daemon: try line.daemon(), currency: try line.currency(), span: start..<to.time,
            utcDays: first < end ? first..<end : nil,
            notes: [from?.note, to.note].compactMap(\.self), length: length, days: days,
            form: forms.compactMap(\.self).first ?? .text, timestamps: line.timestamps)
    }

    /// The most candles that are requested only to count them.
    private static let mostCounted: Int64 = 10_000

    private static func run(_ options: Request) -> Int32 {
        let now = ObservationTime.now().wall
        let isTable = options.form == .text && isatty(STDOUT_FILENO) == 1
        let asked = options.length.map(options.whole) ?? options
        let wanted = asked.span(options.length?.base ?? .second)
        let coverage = HistoryCoverage(
            from: wanted.lowerBound, to: min(wanted.upperBound, now))
        var table: [[String]] = []
        // Of those that are shown, of those that they are made of, and the seconds of the latter.
        var (count, parts, known) = (Int64(0), Int64(0), Int64(0))
        var (isFirst, isUnfinished, note) = (true, false, String?.none)
        return Output.status(json: options.form == .json) { () throws(Complaint) in
            let state = try Connecting.withDaemon(options.daemon) {
                connection throws(ClientError) -> PriceState? in
                var length = options.length ?? .second
                let show = { (all: [Candle], currency: String) in
                    let text = HistoryText(
                        currency: currency, length: length, timestamps: options.timestamps, days: options.days)
                    var candles = all
                    if case .ledger = options.form {
                        candles.removeAll { text.end(of: $0) > now.wholeSeconds }
                        isUnfinished = candles.count < all.count
                        if candles.isEmpty { return }
                    }
                    if isFirst {
                        if isTable { table = [text.header] }
                        switch options.form {
                        case .csv: Output.line(HistoryText.csvHeader)
                        case .ledger(let ledger): Output.line(ledger.header(currency, length))
                        case .text, .json: break
                        }
                    }
                    isFirst = false
                    count += Int64(candles.count)
                    if isTable {
                        table += candles.map(text.row)
                    } else if !candles.isEmpty {
                        let lines = candles.map { candle in
                            switch options.form {
                            case .text: text.line(candle)
                            case .csv: text.csv(candle)
                            case .json: text.json(candle)
                            case .ledger(let ledger): text.ledger(candle, ledger)
                            }
                        }
                        Output.write(lines.map { "\($0)\n" }.joined(), to: STDOUT_FILENO)
                    }
                }
                if options.length == nil {
                    let (best, candles, currency) = try covering(options, coverage, &connection)
                    length = CandleLength(best)
                    known = coverage.seconds(in: candles, best)
                    show(candles, currency)
                } else {
                    var merger = CandleMerger(length, options.calendar, at: now.wholeSeconds)
                    var currency: String?
                    try request(asked, length.base, &connection) { candles, named in
                        known += coverage.seconds(in: candles, length.base)
                        parts += Int64(candles.count)
                        currency = named
                        show(merger.add(candles), named)
                    }
                    let last = merger.finish()
                    if let currency, !last.isEmpty { show(last, currency) }
                }
                note = try missing(
                    asked, length.base, count: length.isMerged ? parts : count, known: known, coverage, &connection)
                return count > 0 ? nil : try connection.getPrice(in: Connecting.currency(options.currency)).state
            }
            for note in options.notes { Output.note(note) }
            if let length = options.length, wanted.isEmpty { note = "No \(length.rawValue) begins in this time." }
            if count == 0, isUnfinished { note = "No \(options.length?.rawValue ?? "day") of this time is over yet." }
            guard count > 0 else { throw .nothingKnown(in: state, note: note) }
            if isTable {
                let lines = HistoryText.table(table, width: Screen.size.width)
                Output.line(lines.joined(separator: "\n"))
            }
            if let note { Output.note(note) }
            return ExitStatus.success
        }
    }

    /// Requests candles, from the oldest to the newest.
    /// - Parameter take: Called for each batch, with its currency.
    static func request(
        _ options: Request, _ step: Candle.Step, _ connection: inout PriceConnection,
        _ take: ([Candle], String) -> Void
    ) throws(ClientError) {
        let span = options.span(step)
        var query = HistoryQuery(
            currency: Connecting.currency(options.currency), from: span.lowerBound, to: span.upperBound, step: step,
            more: true)
        guard step == .day, options.days == .local else {
            return try connection.history(query) { candles, currency, _ in take(candles, currency) }
        }
        let days = ReaderDays(from: span.lowerBound, to: span.upperBound, calendar: ReaderCalendar(isUTC: false))
        guard let hours = days.hours else { return }
        (query.from, query.to, query.step) = (hours.from, hours.to, .hour)
        var (known, minutes, currency) = ([Candle](), [Candle](), Currency.usd.rawValue)
        try connection.history(query) { candles, named, _ in
            known += candles
            currency = named
        }
        query.step = .minute
        for start in days.cut(known) {
            (query.from, query.to) = (
                Timestamp(milliseconds: start * 1000), Timestamp(milliseconds: (start + 3600) * 1000)
            )
            try connection.history(query) { candles, _, _ in minutes += candles }
        }
        take(days.candles(hours: known, minutes: minutes, at: ObservationTime.now().wall.wholeSeconds), currency)
    }

    /// The candles of the shortest step that covers the span in a table of readable length; if none does, of the one that covers most.
    private static func covering(
        _ options: Request, _ coverage: HistoryCoverage, _ connection: inout PriceConnection
    ) throws(ClientError) -> (Candle.Step, [Candle], String) {
        let (from, to) = (options.span.lowerBound, options.span.upperBound)
        let length = (to.milliseconds - from.milliseconds) / 1000
        let shortest: Candle.Step = length <= 3 * 3600 ? .minute : length <= 7 * 86_400 ? .hour : .day
        var best: (step: Candle.Step, candles: [Candle], currency: String, known: Int64)?
        for step in Candle.Step.allCases where step >= shortest {
            var (candles, currency, longer) = ([Candle](), Currency.usd.rawValue, options)
            // A longer candle may begin before the span.
            if step > shortest {
                // A local day begins at most a day before that of UTC.
                let earlier = step == .day && options.days == .local ? step.seconds : 0
                let start = step.start(of: options.span(step).lowerBound.wholeSeconds)
                let earliest = Timestamp(milliseconds: (start - earlier) * 1000)
                longer.span = earliest..<to
                longer.utcDays = options.utcDays.map { earliest..<$0.upperBound }
            }
            try request(longer, step, &connection) {
                candles += $0
                currency = $1
            }
            let known = coverage.seconds(in: candles, step)
            if best.map({ coverage.knowsMore(known, than: $0.known) }) ?? true {
                best = (step, candles, currency, known)
            }
            if known > 0, !coverage.isPoor(known, step) { break }
        }
        return best.map { ($0.step, $0.candles, $0.currency) } ?? (shortest, [], Currency.usd.rawValue)
    }

    /// `Only 1443 of 129600 minutes of this time are known`; `nil` if nearly all is.
    /// - Parameters:
    ///   - count: The number of candles that are known.
    ///   - known: The seconds that they cover.
    static func coverage(
        _ count: Int64, _ step: Candle.Step, known: Int64, of coverage: HistoryCoverage
    ) -> String? {
        guard coverage.isPoor(known, step) else { return nil }
        let wanted = coverage.count(step)
        let what = count == 0 ? "No" : count < wanted ? "Only \(count) of \(wanted)" : "Only parts of the \(wanted)"
        return "\(what) \(step)s of this time are known"
    }

    /// A note if much of the requested span is missing: `Only 1443 of 129600 minutes of this time are known; --step 1h knows more.`
    /// - Parameters:
    ///   - count: The number of candles that are known.
    ///   - known: The seconds that they cover.
    private static func missing(
        _ options: Request, _ step: Candle.Step, count: Int64, known: Int64, _ coverage: HistoryCoverage,
        _ connection: inout PriceConnection
    ) throws(ClientError) -> String? {
        guard var note = Self.coverage(count, step, known: known, of: coverage) else { return nil }
        var utc = options
        utc.days = .utc
        for choice in StepChoice.steps {
            guard let longer = choice.step, coverage.count(longer) <= mostCounted,
                options.length != nil && longer > step || longer == step && step == .day && options.days == .local
            else { continue }
            var seconds: Int64 = 0
            try request(utc, longer, &connection) { candles, _ in seconds += coverage.seconds(in: candles, longer) }
            guard coverage.knowsMore(seconds, than: known) else { continue }
            note += longer == step ? "; --day-zone utc knows more" : "; --step \(choice.rawValue) knows more"
            break
        }
        return note + "."
    }
}

extension History.Request {
    /// The same with a span of whole candles: those that begin in it.
    func whole(_ length: CandleLength) -> Self {
        guard length.isMerged else { return self }
        var whole = self
        let span = span(length.base)
        let first = length.span(of: (span.lowerBound.milliseconds + 999) / 1000 - 1, calendar).upperBound
        let end = length.span(of: (span.upperBound.milliseconds - 1) / 1000, calendar).upperBound
        whole.span = Timestamp(milliseconds: first * 1000)..<Timestamp(milliseconds: max(first, end) * 1000)
        whole.utcDays = whole.span
        return whole
    }
}

/// The value of `--step`.
enum StepChoice: String, CaseIterable {
    case auto
    case second = "1s"
    case minute = "1m"
    case fiveMinutes = "5m"
    case quarterHour = "15m"
    case hour = "1h"
    case fourHours = "4h"
    case day = "1d"
    case week = "1w"
    case month = "1mo"

    /// The choices that are a step of the history, in the order of ``Candle/Step``.
    static let steps: [StepChoice] = [.second, .minute, .hour, .day]
    /// All lengths, for a help: `1s, 1m, …`
    static let names = allCases.dropFirst().map(\.rawValue).joined(separator: ", ")

    /// `nil` if it depends on the span.
    var length: CandleLength? {
        Self.allCases.firstIndex(of: self).flatMap { $0 == 0 ? nil : CandleLength.allCases[$0 - 1] }
    }

    /// `nil` if it is no step of the history.
    var step: Candle.Step? { length.flatMap { $0.isMerged ? nil : $0.base } }
}
