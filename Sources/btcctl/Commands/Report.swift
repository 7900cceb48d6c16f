import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import Glibc

/// `btcctl status`, `btcctl sources` and `btcctl currencies`: one request, or one every second with `--watch`.
enum Report {
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
                """, options: Option.daemon + options)
    ) { line throws(UsageError) in
        try run(line) { connection throws(ClientError) in
            let status = try connection.getStatus()
            if line.has(.json) { return [Output.json("status", .object(status.json))] }
            // A follower's socket has no such methods.
            let details = try Connecting.optional { () throws(ClientError) in
                (sources: try connection.listSources(nil), currencies: try connection.listCurrencies())
            }
            return StatusText(timestamps: line.timestamps).lines(
                status, details?.sources ?? [], details?.currencies ?? [], at: .now(), width: width)
        }
    }

    static let sourcesVerb = Verb(
        command: Command(
            "sources", "Show the sources, and why each is used or not.",
            details: """
                Examples:
                  btcctl sources
                  btcctl sources -v         with the vote, and what the letters and columns mean
                  btcctl sources -c EUR     those of the price in euros

                \(exitStatus)
                """, options: Option.daemon + [.currency, verbose] + options)
    ) { line throws(UsageError) in
        let currency = try line.currency()
        return try run(line) { connection throws(ClientError) in
            let reports = try connection.listSources(Connecting.currency(currency))
            if line.has(.json) { return [Output.json("sources", .array(reports.map { .object($0.json) }))] }
            return SourcesText(timestamps: line.timestamps).lines(
                reports, isVerbose: line.has(verbose), at: .now(), width: min(width, 80))
        }
    }

    static let currenciesVerb = Verb(
        command: Command(
            "currencies", "Show the price in every currency that is kept.",
            details: """
                Examples:
                  btcctl currencies
                  btcctl currencies --watch

                \(exitStatus)
                """, options: Option.daemon + options)
    ) { line throws(UsageError) in
        try run(line) { connection throws(ClientError) in
            let currencies = try connection.listCurrencies()
            if line.has(.json) { return [Output.json("currencies", .array(currencies.map { .object($0.json) }))] }
            return CurrenciesText(timestamps: line.timestamps).lines(currencies, at: .now())
        }
    }

    /// The width of the terminal in columns; unlimited on a pipe.
    private static var width: Int { isatty(STDOUT_FILENO) == 1 ? Screen.size.width : .max }

    private static func run(
        _ line: ParsedLine, _ answer: (inout PriceConnection) throws(ClientError) -> [String]
    ) throws(UsageError) -> Int32 {
        let (watch, json) = (line.has(watchFlag), line.has(.json))
        var daemon = try line.daemon()
        let isColored = ColorChoice.auto.isWanted(isTerminal: true, environment: Output.environment)
        return Repeating(watch: watch, json: json, isColored: isColored).run(
            { () throws(Complaint) in
                try Connecting.withSameDaemon(&daemon, answer).map { StyledLine($0) }
            },
            print: { lines in
                let isUnicode = Output.isUnicode
                let texts = lines.map { (json ? $0 : $0.cut(to: width, isUnicode: isUnicode)).text(isColored: false) }
                Output.line(texts.joined(separator: "\n") + (watch && !json ? "\n" : ""))
            })
    }
}

/// `btcctl currencies` as text: a row for each currency.
struct CurrenciesText {
    let timestamps: TimestampFormatter

    func lines(_ currencies: [CurrencyMessage], at now: ObservationTime) -> [String] {
        let head = ["Currency", "Price", "Age", "State", "Every", "Sources"]
        return Table.lines([head] + currencies.map { row($0, at: now) })
    }

    private func row(_ currency: CurrencyMessage, at now: ObservationTime) -> [String] {
        let state = currency.price.state
        let model = PriceViewModel(timestampFormatter: timestamps)
        model.show(state, at: now)
        let kind = state.derivation == nil ? state.confirmation?.rawValue : "derived"
        return [
            currency.currency, model.price, state.age(at: now).map { Table.text($0.age) } ?? PriceTexts.placeholder,
            [state.freshness.rawValue, kind].compactMap(\.self).joined(separator: ", "),
            Table.text(.milliseconds(currency.interval)), currency.sources.joined(separator: ", "),
        ]
    }
}
