import BTCPriceSocket
import CommandLine
import Glibc

enum BTCCtl {
    static let verbs = [
        Current.verb, Watch.verb, Top.verb, Wait.verb, Convert.verb, History.verb, At.verb, ChartView.verb,
        Report.statusVerb,
        Report.sourcesVerb, Report.currenciesVerb, Events.verb, Alerts.verb, Why.verb, Check.verb, Metrics.verb,
        AgentServer.verb,
        Control.pauseVerb,
        Control.resumeVerb, Control.retryVerb, Control.sourceVerb,
    ]

    static let program = Program(
        Command(
            "btcctl", "Shows the price of a bitcoin that btc-priced keeps.",
            details: """
                Examples:
                  btcctl current             Aug 25, 14:30 - $68,901.23
                  btcctl watch               the same at every tick
                  btcctl top                 the price, its chart and its markets on one screen
                  btcctl convert 0.05btc     0.05 BTC = 5,000,000 sat = $3,445.06
                  btcctl chart               the last 24 hours
                  btcctl sources             where the price comes from

                Exit status: 0 on success, 64 for a wrong command line; the help of each command has the others.
                """, commands: verbs.map(\.command)),
        version: "btcctl \(Product.fullVersion)",
        otherNames: [
            "price": "current", "get": "current", "show": "current", "now": "current", "follow": "watch",
            "tail": "watch", "stream": "watch", "calc": "convert", "candles": "history", "ohlc": "history",
            "graph": "chart", "screen": "top", "dashboard": "top", "plot": "chart", "info": "status", "list": "sources",
            "exchanges": "sources",
            "log": "events", "incidents": "events", "alerts": "alert", "alarm": "alert", "notify": "alert",
            "diagnose": "why", "doctor": "why", "disable": "source",
            "enable": "source", "stop": "pause",
            "start": "resume", "continue": "resume",
        ])

    /// Runs the client.
    /// - Parameter arguments: The command line, without the program's name.
    /// - Returns: The exit status.
    static func main(arguments: [String]) -> Int32 {
        Output.holdStandardDescriptors()
        if let words = Alerts.arguments(in: arguments) { return Alerts.run(words) }
        Signals.catchPipes()
        // Without a command, a terminal shows the overview. A program that reads the output gets the help text, as in earlier versions.
        if arguments.isEmpty, isatty(STDOUT_FILENO) == 1 { return Overview.run() }
        do throws(UsageError) {
            switch try program.read(arguments) {
            case .print(let text): Output.write(text, to: STDOUT_FILENO)
            case .run(let line):
                Output.isQuiet = line.has(.quiet)
                guard let verb = verbs.first(where: { $0.command.name == line.command }) else { break }
                return try program.advised(line.command) { () throws(UsageError) in try verb.run(line) }
            }
            return ExitStatus.success
        } catch {
            // A monitor reads standard output, and takes 1 and 2 for a state of the price.
            if program.commandName(in: arguments) == Check.verb.command.name {
                return Check.end(.unknown, error.message)
            }
            let complaint = Complaint(word: "usage", message: error.message, status: ExitStatus.usage)
            // A status bar gets a line that it can show. The other commands have no --bar, and scripts rely on their status.
            if ["current", "watch"].contains(program.commandName(in: arguments)),
                let bar = Option.bar.text(in: arguments).flatMap(Bar.init(rawValue:))
            {
                return PriceOutput(form: .bar(bar)).tell(complaint)
            }
            Output.tell(complaint, json: arguments.contains("--json"))
            return complaint.status
        }
    }
}
