import BTCPriceSocket
import BTCPriceCore
import BTCPriceFeature
import CommandLine
import Glibc

/// `btcctl status`, `btcctl sources` and `btcctl currencies`: one request, or one every second with `--watch`.
struct Report {
    private enum Question {
        case status
        case sources(isVerbose: Bool, currency: String?)
        case currencies
    }

    private static let exitStatus = """
        Exit status: 0 with a response, 64 for a wrong command line, 69 if the daemon can't be reached (at the start, with --watch), \
        74 if standard output can't be written.
        """
    private static let watchFlag = Option("--watch", "Repeat the request every second, until stopped.")
    private static let verbose = Option("--verbose", letter: "v", "Show the vote, and explain the letters and columns.")
    private static let options = [watchFlag] + Option.times + [.json]

    static let statusVerb = Verb(
        command: Command(
            "status", "Show the state of the daemon.",
            details: """
                Examples:
                  btcctl status
                  btcctl status --watch

                \(exitStatus)
                """, options: [.socket] + options)
    ) { line in run(.status, line) }

    static let sourcesVerb = Verb(
        command: Command(
            "sources", "Show the sources, and why each is used or not.",
            details: """
                Examples:
                  btcctl sources
                  btcctl sources -v         with the vote, and what the letters and columns mean
                  btcctl sources -c EUR     those of the price in euros

                \(exitStatus)
                """, options: [.socket, .currency, verbose] + options)
    ) { line throws(UsageError) in
        run(.sources(isVerbose: line.has(verbose), currency: try line.currency()), line)
    }

    static let currenciesVerb = Verb(
        command: Command(
            "currencies", "Show the price in every currency that is kept.",
            details: """
                Examples:
                  btcctl currencies
                  btcctl currencies --watch

                \(exitStatus)
                """, options: [.socket] + options)
    ) { line in run(.currencies, line) }

    private static let period: Duration = .seconds(1)

    private let question: Question
    private let socket: String?
    private let watch: Bool
    private let json: Bool
    private let timestamps: ReaderTimestampFormatter
    private var screen = Screen()
    /// Whether the report is redrawn in place.
    private let isTerminal: Bool
    /// The width of the terminal in columns; unlimited on a pipe.
    private var width: Int { isatty(STDOUT_FILENO) == 1 ? Screen.size.width : .max }
    /// The lines shown last, and when the daemon stopped responding; `nil` while it responds.
    private var last: (lines: [String], lost: ContinuousClock.Instant?) = ([], nil)

    private static func run(_ question: Question, _ line: ParsedLine) -> Int32 {
        var report = Report(question, line)
        return report.run()
    }

    private init(_ question: Question, _ line: ParsedLine) {
        self.question = question
        socket = line.socket
        watch = line.has(Self.watchFlag)
        json = line.has(.json)
        timestamps = line.timestamps
        isTerminal = watch && !json && Screen.isPossible(environment: Output.environment)
    }

    private mutating func run() -> Int32 {
        let signals = watch ? Signals.catchThem() : -1
        if isTerminal { Signals.catchKeys() }
        var isFirst = true
        var lost: Complaint?
        while true {
            do throws(Complaint) {
                last = (try answer(), nil)
                show(last.lines.map { StyledLine($0) })
                lost = nil
            } catch {
                if isFirst {
                    Output.tell(error, json: json)
                    return error.status
                }
                // The same error is reported only once.
                if isTerminal {
                    let since = last.lost ?? .now
                    last.lost = since
                    show(Self.lost(last.lines.map { StyledLine($0) }, error, for: since.duration(to: .now)))
                } else if error != lost {
                    Output.tell(error, json: json)
                }
                lost = error
            }
            guard watch else { return ExitStatus.success }
            isFirst = false
            Signals.wait(Self.period, on: signals)
            Signals.endIfAsked { if isTerminal { Output.line("") } }
            if Signals.takeContinued() {
                screen = Screen()
                if isTerminal { Signals.catchKeys() }
            }
        }
    }

    /// The lines shown last, dimmed, below a note that the daemon has not responded for this time, or on what it has responded.
    static func lost(_ lines: [StyledLine], _ complaint: Complaint, for time: Duration) -> [StyledLine] {
        let note =
            complaint.word == "unreachable"
            ? "btc-priced has not responded for \(Table.text(time)); waiting for it." : complaint.message
        return Table.wrapped("", note, width: Screen.size.width).map { StyledLine([.init(text: $0, style: .alarm)]) }
            + lines.map { line in StyledLine(line.parts.map { .init(text: $0.text, style: .faint) }) }
    }

    private func answer() throws(Complaint) -> [String] {
        try Connecting.withDaemon(socket: socket) { connection throws(ClientError) in
            switch question {
            case .status:
                let status = try connection.getStatus()
                if json { return [Output.json("status", .object(status.json))] }
                return StatusText(timestamps: timestamps).lines(status, at: .now(), width: width)
            case .currencies:
                let currencies = try connection.listCurrencies()
                if json { return [Output.json("currencies", .array(currencies.map { .object($0.json) }))] }
                return CurrenciesText(timestamps: timestamps).lines(currencies, at: .now())
            case .sources(let isVerbose, let currency):
                let reports = try connection.listSources(Connecting.currency(currency))
                if json { return [Output.json("sources", .array(reports.map { .object($0.json) }))] }
                return SourcesText(timestamps: timestamps).lines(
                    reports, isVerbose: isVerbose, at: .now(), width: min(width, 80))
            }
        }
    }

    private mutating func show(_ lines: [StyledLine]) {
        if isTerminal {
            let isColored = ColorChoice.auto.isWanted(isTerminal: true, environment: Output.environment)
            Output.write(screen.draw(lines, in: Screen.size, isColored: isColored), to: STDOUT_FILENO)
        } else {
            let isUnicode = Output.isUnicode
            let texts = lines.map {
                (json ? $0 : $0.cut(to: width, isUnicode: isUnicode)).text(isColored: false)
            }
            Output.line(texts.joined(separator: "\n") + (watch && !json ? "\n" : ""))
        }
    }
}
