import ArgumentParser
import BTCPriceCore

struct JSONOption: ParsableArguments {
    @Flag(help: "Print one JSON object, for an error too.")
    var json = false
}

struct ReportOption: ParsableArguments {
    @Flag(help: "Ask again every second, until stopped.")
    var watch = false
}

private let reportStatus =
    "Exit status: 64 for a wrong command line, 69 if the daemon can't be reached (at the start, with --watch)."

struct StatusCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show how the daemon is.", discussion: reportStatus)

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var report: ReportOption
    @OptionGroup var output: JSONOption

    var invocation: Invocation {
        .report(
            ReportOptions(
                question: .status, socket: socketOption.socket, watch: report.watch, json: output.json))
    }
}

struct SourcesCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "sources", abstract: "Show the sources, and why each is used or not.", discussion: reportStatus)

    @OptionGroup var socketOption: SocketOption
    @Flag(name: .shortAndLong, help: "Explain the letters and columns.")
    var verbose = false
    @OptionGroup var report: ReportOption
    @OptionGroup var output: JSONOption

    var invocation: Invocation {
        .report(
            ReportOptions(
                question: .sources(isVerbose: verbose), socket: socketOption.socket, watch: report.watch,
                json: output.json))
    }
}

private let changeStatus = """
    For root, the daemon's own user and the group btc-priced. Exit status: 0 also where it was so already, 64 for a wrong command line, 69 if the daemon \
    can't be reached, 77 for a user who may not.
    """

struct PauseCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Halt the ticks until 'btcctl resume'.", discussion: changeStatus)

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var output: JSONOption

    var invocation: Invocation { .change(.pause, socket: socketOption.socket, json: output.json) }
}

struct ResumeCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Have the ticks run again, the first at once.", discussion: changeStatus)

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var output: JSONOption

    var invocation: Invocation { .change(.resume, socket: socketOption.socket, json: output.json) }
}

struct WaitCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait", abstract: "Wait until there is a fresh price, and print it.",
        discussion: """
            A daemon that is not there is waited for, too. Exit status: 0 with a fresh price, 64 for a wrong command line, 69 \
            if what answers is no btc-priced of this age, 75 if there was none within --timeout.
            """)

    @OptionGroup var socketOption: SocketOption

    @Option(
        help: ArgumentHelp("Give up after so long. Without it: never.", valueName: "seconds"),
        transform: WaitCommand.timeout)
    var timeout: Duration?

    @OptionGroup var output: JSONOption

    var invocation: Invocation {
        .wait(WaitOptions(socket: socketOption.socket, timeout: timeout, json: output.json))
    }

    private static func timeout(_ text: String) throws -> Duration {
        try seconds(text, option: "--timeout")
    }
}

/// A number of seconds as it is given on the command line.
func seconds(_ text: String, option: String) throws -> Duration {
    guard let seconds = Double(text), (0...1e9).contains(seconds) else {
        throw ValidationError("\(option) is a number of seconds, from 0 to 1000000000")
    }
    return .seconds(seconds)
}
