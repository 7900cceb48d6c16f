import ArgumentParser
import BTCPriceCore
import BTCPriceVarlink

/// The whole command line, as ArgumentParser reads it.
struct BTCCtlCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "btcctl",
        abstract: "Shows the BTC/USD price that btc-priced keeps.",
        version: "btcctl \(Product.version)",
        subcommands: [
            CurrentCommand.self, WatchCommand.self, WaitCommand.self, StatusCommand.self, SourcesCommand.self,
            PauseCommand.self, ResumeCommand.self,
        ])
}

/// A command that can be read both ways.
protocol InvocationCommand: ParsableCommand {
    var invocation: Invocation { get }
}

struct SocketOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The daemon's socket. Without it: $BTC_PRICED_SOCKET, the user's own daemon, the system's.",
            valueName: "path"))
    var socket: String?
}

struct CurrentCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "current", abstract: "Print the price once.",
        discussion: """
            Exit status: 0 with a price (a stale one says so on standard error), 1 with none, 64 for a wrong command line, \
            69 if the daemon can't be reached, 75 if the price is older than --max-age.
            """)

    @OptionGroup var socketOption: SocketOption

    @Flag(help: "Have the exchanges asked now; what is held where they don't answer.")
    var refresh = false

    @Flag(help: "Have the exchanges asked now, or fail.")
    var noCache = false

    @Option(
        help: ArgumentHelp("Fail with status 75 if the price is older.", valueName: "seconds"),
        transform: CurrentCommand.age)
    var maxAge: Duration?

    @OptionGroup var output: JSONOption

    func validate() throws {
        guard !(refresh && noCache) else { throw ValidationError("--refresh and --no-cache exclude each other") }
    }

    var invocation: Invocation {
        .current(
            CurrentOptions(
                socket: socketOption.socket, policy: noCache ? .noCache : refresh ? .remoteFirst : .localFirst,
                maxAge: maxAge, json: output.json))
    }

    private static func age(_ text: String) throws -> Duration {
        try seconds(text, option: "--max-age")
    }
}

struct WatchCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Show the price at every tick, until stopped.",
        discussion: """
            On a terminal one line is redrawn; on a pipe every tick is a line of its own. It survives a restart of the \
            daemon. Exit status: 64 for a wrong command line, 69 if the daemon can't be reached at the start.
            """)

    @OptionGroup var socketOption: SocketOption

    @Flag(help: "Print one JSON object a line, for an error too.")
    var json = false

    var invocation: Invocation {
        .watch(WatchOptions(socket: socketOption.socket, json: json))
    }
}
