import ArgumentParser
import BTCPriceCore
import BTCPriceFeature

struct HistoryCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Print what the price did, as candles.",
        discussion: """
            Examples:
              btcctl history                                 the last 24 hours, hour by hour
              btcctl history --since 7d --step 1d
              btcctl history --since 2026-08-25 --until 2026-08-26T12:00 --csv > august.csv
              btcctl history --since 2026-08-01 --step 1d --day-zone local
              btcctl history --since 10m --step 1s --json

            A candle has the first, the highest, the lowest and the last price of its span. On a terminal this prints a table, else a row \
            a line: the time, these four prices, and the origin. The origin is own, or an exchange for a candle that was requested from \
            it and not checked. Seconds are kept for the last hour. Days are in UTC, without --day-zone. A candle that covers only a part \
            of its span, or has prices in doubt, says so.

            Exit status: 0 with at least one candle, 1 with none, 64 for a wrong command line, 69 if the daemon can't be reached, 74 if \
            standard output can't be written.
            """)

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var currencyOption: CurrencyOption

    @Option(help: ArgumentHelp("The start: 24h or 7d ago, yesterday, 2026-08-25, 2026-08-25T14:30.", valueName: "time"))
    var since = "24h"

    @Option(help: ArgumentHelp("The end, in the same forms.", valueName: "time"))
    var until = "now"

    @Option(
        help: ArgumentHelp("The length of a candle: 1s, 1m, 1h, 1d or auto (the default).", valueName: "step"),
        completion: choices(StepChoice.self), transform: { try choice($0) })
    var step = StepChoice.auto

    @OptionGroup var days: DayOption

    @Flag(help: "Print comma-separated values with a header.")
    var csv = false

    @OptionGroup var times: TimeOptions

    @Flag(help: "Print one JSON object per line, also for errors.")
    var json = false

    func invocation() throws -> Invocation {
        guard !(csv && json) else { throw ValidationError("only one of --csv and --json can be printed") }
        let now = ObservationTime.now().wall
        let (from, early) = try moment(since, "--since", times, now: now)
        let (to, late) = try moment(until, "--until", times, now: now)
        guard from < to else {
            throw ValidationError(
                until == "now" ? "--since: '\(since)' is in the future" : "--since: '\(since)' is not before '\(until)'"
            )
        }
        return .history(
            HistoryOptions(
                socket: socketOption.socket, currency: currencyOption.currency, from: from, to: to,
                notes: [early, late].compactMap(\.self), step: step.step, days: days.dayZone,
                form: csv ? .csv : json ? .json : .text, timestamps: times.timestamps))
    }
}

/// The value of `--step`.
enum StepChoice: String, CaseIterable {
    case auto
    case second = "1s"
    case minute = "1m"
    case hour = "1h"
    case day = "1d"

    init(_ step: Candle.Step) {
        self =
            switch step {
            case .second: .second
            case .minute: .minute
            case .hour: .hour
            case .day: .day
            }
    }

    /// The choices that are a length of time: all except ``auto``.
    static let steps: [StepChoice] = [.second, .minute, .hour, .day]

    /// `nil` if it depends on the span.
    var step: Candle.Step? {
        switch self {
        case .auto: nil
        case .second: .second
        case .minute: .minute
        case .hour: .hour
        case .day: .day
        }
    }
}

struct AtCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "at", abstract: "Print the price at a moment of the past.",
        discussion: """
            Examples:
              btcctl at 2026-08-25T14:30
              btcctl at 2026-08-25T14:30 0.05btc     what 0.05 bitcoin were worth then
              btcctl at 2025-03-01T12:00 --fetch     asks an exchange for the minute
              btcctl at 7d --raw --max-step 1m       the price a week ago, for scripts

            The price is that of the shortest candle that is known: of a second in the last hour, else of a minute, an hour or a day; its \
            first or its last price, whichever is nearer to the moment. If it is of an hour or a day, it is printed as 'about', with the \
            lowest and the highest price of that time; with --raw, standard error says so.

            --fetch tells an exchange which moment you are interested in. The minute is kept as long as the others.

            Exit status: 0 with a price, 1 if nothing is known of that moment, 64 for a wrong command line, 69 if the daemon can't be \
            reached, 74 if standard output can't be written, 75 if less is known than --max-step asks for.
            """)

    @Argument(help: "The moment: 2026-08-25T14:30, 2026-08-25, 14:30, yesterday, 7d, @1795400000.")
    var time: String

    @Argument(help: "Amounts: 0.05btc, 100000sat, 250usd.")
    var amount: [String] = []

    @Option(
        help: ArgumentHelp(
            "Fail with status 75 if only a longer candle is known: 1s, 1m, 1h or 1d.", valueName: "step"),
        completion: .list(StepChoice.steps.map(\.rawValue)),
        transform: { try choice($0, among: StepChoice.steps) })
    var maxStep: StepChoice?

    @Flag(help: "Request the minute from an exchange if it is not known.")
    var fetch = false

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var currencyOption: CurrencyOption
    @OptionGroup var times: TimeOptions
    @OptionGroup var output: JSONOption

    @Flag(help: "Print the exact number alone: the price, or what the amount was worth.")
    var raw = false

    func invocation() throws -> Invocation {
        guard !(raw && output.json) else { throw ValidationError("only one of --json and --raw can be printed") }
        var (amounts, currency) = try ConvertCommand.read(amount, in: currencyOption.currency)
        for case .money(let unit) in amounts.compactMap(\.unit) {
            guard currency ?? unit.rawValue == unit.rawValue else {
                throw ValidationError(
                    "the price is wanted in \(currency ?? "") and in \(unit.rawValue): name one currency")
            }
            currency = unit.rawValue
        }
        let now = ObservationTime.now().wall
        let (time, note) = try moment(self.time, "the moment", times, now: now)
        guard time <= now else { throw ValidationError("the moment '\(self.time)' is in the future") }
        return .at(
            AtOptions(
                socket: socketOption.socket, currency: currency, time: time, note: note, amounts: amounts,
                maxStep: maxStep?.step, fetch: fetch,
                form: raw ? .raw : output.json ? .json : .text, timestamps: times.timestamps))
    }
}

struct ChartCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "chart", abstract: "Draw the price's history in the terminal.",
        discussion: """
            Examples:
              btcctl chart                    the last 24 hours
              btcctl chart --span 30d --candles
              btcctl chart --span 1h --watch

            The highest and the lowest price are marked. With --watch, it is redrawn every second. A line needs a font with braille \
            characters; --ascii, and a locale that is not UTF-8, do without. On a pipe it has 80 columns and no colours.

            Exit status: 0 with a chart, 1 if nothing is known of that time, 64 for a wrong command line, 69 if the daemon can't be \
            reached, 74 if standard output can't be written.
            """)

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var currencyOption: CurrencyOption

    @Option(
        help: ArgumentHelp("What is shown: 1h, 24h (the default), 7d, 30d, 1y or all.", valueName: "span"),
        completion: choices(ChartSpan.self), transform: { try choice($0) })
    var span = ChartSpan.day

    @OptionGroup var days: DayOption

    @Flag(help: "Draw candles: the first, highest, lowest and last price of each column.")
    var candles = false

    @Flag(help: "Draw again every second, until stopped.")
    var watch = false

    @Flag(help: "Use ASCII characters only.")
    var ascii = false

    @Option(
        help: ArgumentHelp("Colours for up and down: auto (the default), always or never.", valueName: "when"),
        completion: choices(ColorChoice.self), transform: { try choice($0) })
    var color = ColorChoice.auto

    @Flag(help: "Print times in UTC, not in the local time zone.")
    var utc = false

    func invocation() -> Invocation {
        .chart(
            ChartOptions(
                socket: socketOption.socket, currency: currencyOption.currency, span: span, days: days.dayZone,
                isCandles: candles, watch: watch, isASCII: ascii, color: color,
                timestamps: ReaderTimestampFormatter(isUTC: utc)))
    }
}

struct DayOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Where a day begins: at midnight in utc (the default) or in the local time zone, made of the hours that are known.",
            valueName: "zone"), completion: choices(DayZone.self), transform: { try choice($0) })
    var dayZone = DayZone.utc
}

/// Reads a point in time.
/// - Returns: The time, and a note if it occurs twice.
private func moment(
    _ text: String, _ option: String, _ times: TimeOptions, now: Timestamp
) throws -> (Timestamp, String?) {
    do {
        let read = try ReaderTime.reading(text, isUTC: times.utc, now: now)
        let exact = ReaderTimestampFormatter(isUTC: times.utc, isISO: true)
        let note = read.second.map { second in
            "\(text) occurs twice: this is the first one, \(exact.string(from: read.time)). The second one is \(exact.string(from: second))."
        }
        return (read.time, note)
    } catch {
        throw ValidationError("\(option): \(error.message)")
    }
}
