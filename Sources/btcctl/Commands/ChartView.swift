import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import Glibc

/// `btcctl chart`: draws the price's history, once or at every tick.
struct ChartView {
    static let verb = Verb(
        command: Command(
            "chart", "Draw the price's history in the terminal.",
            details: """
                Examples:
                  btcctl chart                    the last 24 hours
                  btcctl chart --span 7d --step 4h
                  btcctl chart --span 1h --watch
                  btcctl chart --since 2026-08-01 --until 2026-08-25

                The highest and the lowest price are marked. With --watch, it is redrawn every second. A line needs a font with \
                braille characters; --symbols blocks, --ascii, and a locale that is not UTF-8, do without. On a pipe it has 80 columns and no colours.

                Exit status: 0 with a chart, 1 if nothing is known of that time, 64 for a wrong command line, 69 if the daemon \
                can't be reached, 74 if standard output can't be written.
                """,
            options: Option.daemon + [
                .currency, spanOption, since, until, .dayZone, candlesFlag, step, watchFlag, .symbols, .ascii, .color,
                .utc,
            ])
    ) { line throws(UsageError) in
        var view = try ChartView(line)
        return view.run()
    }

    static let spanOption = Option(
        "--span", value: "span", "How much is shown: 24h (the default), 1h, 3d, 1y, any other duration, or all.",
        completion: .words(ChartSpan.named.map(\.name)))
    private static let since = Option(
        "--since", value: "time", "The start, instead of --span: yesterday, 2026-08-25, 2026-08-25T14:30.")
    private static let until = Option("--until", value: "time", "The end, in the same forms. Default: now.")
    static let candlesFlag = Option(
        "--candles", "Draw candles: the first, highest, lowest and last price of each column.")
    private static let step = Option(
        "--step", value: "step", "Draw candles of this length: \(StepChoice.names), or auto (one a column).",
        completion: .words(StepChoice.allCases.map(\.rawValue)))
    private static let watchFlag = Option("--watch", "Draw again every second, until stopped.")

    private var daemon: DaemonAddress
    private let isCandles: Bool
    private let isUTC: Bool
    private let isTerminal: Bool
    private let repeating: Repeating
    private let symbols: Chart.Symbols
    private var history: ChartCandles

    private init(_ line: ParsedLine) throws(UsageError) {
        daemon = try line.daemon()
        let length = try line.choice(Self.step, among: StepChoice.allCases)?.length
        let days = try line.dayZone()
        history = ChartCandles(
            named: try line.currency(), span: try Self.span(line, ofUTC: days == .utc && length?.base == .day),
            days: days, length: length)
        if let length, let seconds = history.shown, length.seconds > seconds {
            throw UsageError("--step: '\(line.text(Self.step) ?? "")' is longer than this time")
        }
        if !history.hasFew {
            throw UsageError(
                "--step: '\(line.text(Self.step) ?? "")' is too short for this time: at most \(ChartCandles.mostOfLength) candles are drawn"
            )
        }
        isCandles = line.has(Self.candlesFlag) || line.has(Self.step)
        isUTC = line.has(.utc)
        isTerminal = isatty(STDOUT_FILENO) == 1
        let isColored = try line.color().isWanted(isTerminal: isTerminal, environment: Output.environment)
        repeating = Repeating(watch: line.has(Self.watchFlag), isColored: isColored)
        symbols = try line.symbols()
    }

    /// - Parameter days: Whether a time that is a day is that of UTC, as the candles are.
    private static func span(_ line: ParsedLine, ofUTC days: Bool) throws(UsageError) -> ChartSpan {
        let (now, isUTC) = (ObservationTime.now().wall, line.has(.utc))
        var notes: [String] = []
        let read = { (text: String) throws(UsageError) -> Timestamp in
            let (time, utcDay, note) = try moment(text, isUTC: isUTC, now: now)
            guard time <= now else { throw UsageError("it is in the future") }
            if let note { notes.append(note) }
            return days ? min(utcDay ?? time, now) : time
        }
        defer { for note in notes { Output.note(note) } }
        let (start, end) = (try line.value(since, read), try line.value(until, read))
        if start != nil, line.has(spanOption) { throw UsageError("--since and --span exclude each other") }
        if end != nil, line.has(watchFlag) { throw UsageError("--until and --watch exclude each other") }
        let dates = TimestampFormatter(isUTC: isUTC)
        let to = end.map { " to \(dates.string(from: $0))" } ?? ""
        guard let start else {
            let span = try line.value(spanOption, span(of:)) ?? .day
            return ChartSpan(span.start, end: end?.wholeSeconds, name: "\(span.name)\(to)")
        }
        guard start.wholeSeconds + ChartSpan.least <= (end ?? now).wholeSeconds else {
            throw UsageError("--since is not a minute before \(end == nil ? "now" : "--until")")
        }
        let from = dates.string(from: start)
        return ChartSpan(
            .at(start.wholeSeconds), end: end?.wholeSeconds, name: end == nil ? "since \(from)" : "\(from)\(to)")
    }

    static func span(of text: String) throws(UsageError) -> ChartSpan {
        if let named = ChartSpan.named.first(where: { $0.name == text }) { return named }
        guard text.first?.isNumber == true else { throw UsageError("it is a duration, such as 1h, 3d or 1y, or all") }
        let length = try duration(text).components.seconds
        guard length >= ChartSpan.least else { throw UsageError("it is shorter than a minute") }
        return ChartSpan(.last(length), name: text.allSatisfy(\.isNumber) ? "\(text)s" : text)
    }

    private mutating func run() -> Int32 {
        // A copy, because each answer changes the chart.
        let repeating = repeating
        return repeating.run(
            { () throws(Complaint) in try lines() },
            print: { lines in
                Output.line(lines.map { $0.text(isColored: repeating.isColored) }.joined(separator: "\n"))
            })
    }

    /// Requests the state, and once a minute the candles.
    private mutating func update() throws(Complaint) -> PriceState {
        let now = ObservationTime.now().wall.wholeSeconds
        var history = history
        let state = try Connecting.withSameDaemon(&daemon) { connection throws(ClientError) in
            let isNew = try history.update(&connection, now: now)
            let state = try connection.getPrice(in: Connecting.currency(history.named)).state
            if !isNew, !history.append(state, now: now) { _ = try history.update(&connection, now: now) }
            return state
        }
        self.history = history
        return state
    }

    /// The size of the title and the chart together, in columns and rows.
    private var size: (width: Int, height: Int) {
        let size = isTerminal ? Screen.size : (width: 80, height: Int.max)
        let width = repeating.isRedrawn ? size.width - 1 : size.width
        return (width, min(size.height - 1, max(10, min(30, size.width / 5 + 4))))
    }

    private mutating func lines() throws(Complaint) -> [StyledLine] {
        let state = try update()
        let size = size
        let now = ObservationTime.now().wall.wholeSeconds
        let (candles, currency, span) = (history.candles, history.currency, history.span)
        let axis = span.axis(
            now: now, first: candles.first?.start, isUTC: isUTC, width: size.width)
        let chart = Chart(
            candles, axis: axis, currency: currency, size: (size.width, size.height - 1),
            isCandles: isCandles, symbols: symbols)
        let drawn = chart.lines
        guard !drawn.isEmpty else { throw .nothingKnown(in: state) }
        let title = ChartTitle(candles, currency: currency, span: span, now: now)
        return [StyledLine(title.parts(state, width: size.width))] + drawn
    }
}
