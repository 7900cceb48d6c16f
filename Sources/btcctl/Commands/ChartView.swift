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
                  btcctl chart --span 30d --candles
                  btcctl chart --span 1h --watch

                The highest and the lowest price are marked. With --watch, it is redrawn every second. A line needs a font with \
                braille characters; --ascii, and a locale that is not UTF-8, do without. On a pipe it has 80 columns and no colours.

                Exit status: 0 with a chart, 1 if nothing is known of that time, 64 for a wrong command line, 69 if the daemon \
                can't be reached, 74 if standard output can't be written.
                """,
            options: [.socket, .currency, spanOption, .dayZone, candlesFlag, watchFlag, asciiFlag, .color, .utc])
    ) { line throws(UsageError) in
        var view = try ChartView(line)
        return view.run()
    }

    private static let spanOption = Option(
        "--span", value: "span", "What is shown: 1h, 24h (the default), 7d, 30d, 1y or all.",
        completion: .words(ChartSpan.allCases.map(\.rawValue)))
    private static let candlesFlag = Option(
        "--candles", "Draw candles: the first, highest, lowest and last price of each column.")
    private static let watchFlag = Option("--watch", "Draw again every second, until stopped.")
    private static let asciiFlag = Option("--ascii", "Use ASCII characters only.")

    private let socket: String?
    private let named: String?
    private let span: ChartSpan
    private let days: DayZone
    private let isCandles: Bool
    private let isUTC: Bool
    private let isTerminal: Bool
    private let repeating: Repeating
    private let isASCII: Bool
    private var candles: [Candle] = []
    private var currency = Currency.usd.rawValue
    /// The minute in which ``candles`` were requested, Unix seconds.
    private var minute: Int64?

    private init(_ line: ParsedLine) throws(UsageError) {
        socket = line.socket
        named = try line.currency()
        span = try line.choice(Self.spanOption, among: ChartSpan.allCases) ?? .day
        days = try line.dayZone()
        isCandles = line.has(Self.candlesFlag)
        isUTC = line.has(.utc)
        isTerminal = isatty(STDOUT_FILENO) == 1
        let isColored = try line.color().isWanted(isTerminal: isTerminal, environment: Output.environment)
        repeating = Repeating(watch: line.has(Self.watchFlag), isColored: isColored)
        isASCII = line.has(Self.asciiFlag) || !Output.isUnicode
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
        let present = Candle.Step.minute.start(of: now)
        let isNew = minute != present
        var (requested, currency) = ([Candle](), self.currency)
        let state = try Connecting.withDaemon(socket: socket) { connection throws(ClientError) in
            if isNew {
                let start = Timestamp(milliseconds: (span.seconds.map { now - $0 } ?? 0) * 1000)
                let asked = History.Request(
                    currency: named, span: start..<Timestamp(milliseconds: (now + 1) * 1000), days: days)
                requested = []
                try History.request(asked, span.step, &connection) { candles, named in
                    requested += candles
                    currency = named
                }
                if span == .hour {
                    var seconds: [Candle] = []
                    try History.request(asked, .second, &connection) { candles, _ in seconds += candles }
                    // The candles of seconds may begin later than the span. Before them, use the candles of minutes.
                    let first = seconds.first.map { Candle.Step.minute.start(of: $0.start + 59) } ?? .max
                    requested = requested.filter { $0.start < first } + seconds.filter { $0.start >= first }
                }
            }
            return try connection.getPrice(in: Connecting.currency(named)).state
        }
        if isNew { (candles, self.currency, minute) = (requested, currency, present) }
        // Between two requests for candles, append the current price.
        if !isNew, state.freshness == .fresh, let price = state.quote?.value {
            candles.append(Candle(start: now, price, isInDoubt: state.doubt != nil))
        }
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
        let axis = span.axis(
            now: now, first: candles.first?.start, isUTC: isUTC, width: size.width)
        let chart = Chart(
            candles, axis: axis, currency: currency, size: (size.width, size.height - 1),
            isCandles: isCandles, isASCII: isASCII)
        let drawn = chart.lines
        guard !drawn.isEmpty else { throw .nothingKnown(in: state) }
        let title = ChartTitle(candles, currency: currency, span: span, now: now)
        return [StyledLine(title.parts(state, width: size.width))] + drawn
    }
}
