import ArgumentParser
import BTCPriceCore
import BTCPriceFeature

/// The options of the commands that show a report.
struct ReportArguments: ParsableArguments {
    @Flag(help: "Repeat the request every second, until stopped.")
    var watch = false

    @OptionGroup var times: TimeOptions
    @OptionGroup var output: JSONOption

    func invocation(_ question: ReportOptions.Question, _ socket: SocketOption) -> Invocation {
        .report(
            ReportOptions(
                question: question, socket: socket.socket, watch: watch, json: output.json, timestamps: times.timestamps
            ))
    }
}

private let reportStatus =
    "Exit status: 0 with a response, 64 for a wrong command line, 69 if the daemon can't be reached (at the start, with --watch), "
    + "74 if standard output can't be written."

struct StatusCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the state of the daemon.",
        discussion: """
            Examples:
              btcctl status
              btcctl status --watch

            \(reportStatus)
            """)

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var report: ReportArguments

    func invocation() -> Invocation { report.invocation(.status, socketOption) }
}

struct SourcesCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "sources", abstract: "Show the sources, and why each is used or not.",
        discussion: """
            Examples:
              btcctl sources
              btcctl sources -v         with the vote, and what the letters and columns mean
              btcctl sources -c EUR     those of the price in euros

            \(reportStatus)
            """)

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var currencyOption: CurrencyOption
    @Flag(name: .shortAndLong, help: "Show the vote, and explain the letters and columns.")
    var verbose = false
    @OptionGroup var report: ReportArguments

    func invocation() -> Invocation {
        report.invocation(.sources(isVerbose: verbose, currency: currencyOption.currency), socketOption)
    }
}

struct CurrenciesCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "currencies", abstract: "Show the price in every currency that is kept.",
        discussion: """
            Examples:
              btcctl currencies
              btcctl currencies --watch

            \(reportStatus)
            """)

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var report: ReportArguments

    func invocation() -> Invocation { report.invocation(.currencies, socketOption) }
}

struct MetricsCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics", abstract: "Print the metrics for Prometheus, or write them to a file.",
        discussion: """
            Examples:
              btcctl metrics
              btcctl metrics --write /var/lib/prometheus/node-exporter/btc-priced.prom

            The file is replaced as a whole, so that its reader never finds a part of it.

            Exit status: 0 with a response, 64 for a wrong command line, 69 if the daemon can't be reached, 74 if standard output or \
            the file can't be written.
            """)

    @OptionGroup var socketOption: SocketOption

    @Flag(help: "Print OpenMetrics 1.0 instead of the Prometheus text format.")
    var openmetrics = false

    @Option(
        help: ArgumentHelp("Write to this file, which everybody can read, and print nothing.", valueName: "file"),
        completion: .file())
    var write: String?

    func invocation() -> Invocation {
        .metrics(
            MetricsOptions(
                socket: socketOption.socket, format: openmetrics ? .openMetrics : .prometheus, file: write))
    }
}

private let changeStatus = """
    For root, the daemon's own user and the group btc-priced.

    Exit status: 0 on success, also if nothing had to change, 64 for a wrong command line, 69 if the daemon can't be reached, 74 if \
    standard output can't be written, 77 if this user may not do that.
    """

struct PauseCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Stop the ticks until 'btcctl resume'.", discussion: changeStatus)

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var output: JSONOption

    func invocation() -> Invocation {
        .change(.pause, socket: socketOption.socket, json: output.json, timestamps: ReaderTimestampFormatter())
    }
}

struct ResumeCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Start the ticks again, the first one at once.", discussion: changeStatus)

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var output: JSONOption

    func invocation() -> Invocation {
        .change(.resume, socket: socketOption.socket, json: output.json, timestamps: ReaderTimestampFormatter())
    }
}

struct RetryCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Clear the cooldowns of sources, so that the next tick requests them again.",
        discussion: """
            Examples:
              sudo btcctl retry            all sources
              sudo btcctl retry kraken     only this one

            A cooldown that an exchange has asked for (a limit or a ban) is kept, and named.

            \(changeStatus)
            """)

    @Argument(help: "The source; without one, all of them.", completion: Completions.source)
    var source: String?

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var times: TimeOptions
    @OptionGroup var output: JSONOption

    func invocation() -> Invocation {
        .change(
            .retry(source), socket: socketOption.socket, json: output.json, timestamps: times.timestamps)
    }
}
