import BTCPriceAPI
import BTCPriceCore
import BTCPriceFeature
import Glibc
import Varlink

/// `btcctl status`, `btcctl sources` and `btcctl currencies`: one request, or one every second with `--watch`.
struct Report {
    private static let period: Duration = .seconds(1)

    private let options: ReportOptions
    private var screen = Screen()
    /// Whether the report is redrawn in place.
    private let isTerminal: Bool
    /// The width of the terminal in columns; unlimited on a pipe.
    private var width: Int { isatty(STDOUT_FILENO) == 1 ? Screen.size.width : .max }
    /// The lines shown last, and when the daemon stopped responding; `nil` while it responds.
    private var last: (lines: [String], lost: ContinuousClock.Instant?) = ([], nil)

    /// Runs the command and returns the exit status.
    // Not inlined, so that `current` does not pay for the run-time setup of these types.
    @inline(never)
    static func run(_ options: ReportOptions) -> Int32 {
        var report = Report(options)
        return report.run()
    }

    private init(_ options: ReportOptions) {
        self.options = options
        isTerminal = options.watch && !options.json && Screen.isPossible(environment: Connecting.environment)
    }

    private mutating func run() -> Int32 {
        let signals = options.watch ? Signals.catchThem() : -1
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
                    Output.tell(error, json: options.json)
                    return error.status
                }
                // The same error is reported only once.
                if isTerminal {
                    let since = last.lost ?? .now
                    last.lost = since
                    show(Self.lost(last.lines.map { StyledLine($0) }, error, for: since.duration(to: .now)))
                } else if error != lost {
                    Output.tell(error, json: options.json)
                }
                lost = error
            }
            guard options.watch else { return ExitStatus.success }
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
        try Connecting.withDaemon(socket: options.socket) { connection throws(ClientError) in
            switch options.question {
            case .status:
                let status = try connection.getStatus()
                if options.json { return [Output.json("status", .object(status.json))] }
                return StatusText(timestamps: options.timestamps).lines(status, at: .now(), width: width)
            case .currencies:
                let currencies = try connection.listCurrencies()
                if options.json { return [Output.json("currencies", .array(currencies.map { .object($0.json) }))] }
                return CurrenciesText(timestamps: options.timestamps).lines(currencies, at: .now())
            case .sources(let isVerbose, let currency):
                let reports = try connection.listSources(Connecting.currency(currency))
                if options.json { return [Output.json("sources", .array(reports.map { .object($0.json) }))] }
                return SourcesText(timestamps: options.timestamps).lines(
                    reports, isVerbose: isVerbose, at: .now(), width: min(width, 80))
            }
        }
    }

    private mutating func show(_ lines: [StyledLine]) {
        if isTerminal {
            let isColored = ColorChoice.auto.isWanted(isTerminal: true, environment: Connecting.environment)
            Output.write(screen.draw(lines, in: Screen.size, isColored: isColored), to: STDOUT_FILENO)
        } else {
            let isUnicode = WatchView.isUnicode
            let texts = lines.map {
                (options.json ? $0 : $0.cut(to: width, isUnicode: isUnicode)).text(isColored: false)
            }
            Output.line(texts.joined(separator: "\n") + (options.watch && !options.json ? "\n" : ""))
        }
    }
}

/// `btcctl pause`, `btcctl resume` and `btcctl retry`.
enum Control {
    static func run(
        _ change: ReportOptions.Change, socket: String?, json: Bool, timestamps: ReaderTimestampFormatter
    ) -> Int32 {
        do throws(Complaint) {
            switch change {
            case .pause:
                try Connecting.withDaemon(socket: socket) { connection throws(ClientError) in try connection.pause() }
                if json { Output.line(Output.json("ticking", .string("paused"))) }
            case .resume:
                try Connecting.withDaemon(socket: socket) { connection throws(ClientError) in try connection.resume() }
                if json { Output.line(Output.json("ticking", .string("running"))) }
            case .retry(let source):
                let result = try Connecting.withDaemon(socket: socket) { connection throws(ClientError) in
                    try connection.retry(source)
                }
                for line in json ? [Output.json("retry", JSON(result.json))] : lines(result, timestamps) {
                    Output.line(line)
                }
            }
        } catch {
            Output.tell(error, json: json)
            return error.status
        }
        return ExitStatus.success
    }

    private static func lines(
        _ result: PriceConnection.RetryResult, _ timestamps: ReaderTimestampFormatter
    ) -> [String] {
        let retried =
            result.retried.isEmpty
            ? [] : ["Requested again from the next tick on: \(result.retried.joined(separator: ", "))."]
        let kept = result.kept.map { kept in
            "Kept: \(kept.source), cooldown until \(timestamps.string(from: kept.until)), as the exchange asked: \(kept.reason)."
        }
        return retried.isEmpty && kept.isEmpty ? ["No source is in a cooldown."] : retried + kept
    }
}
