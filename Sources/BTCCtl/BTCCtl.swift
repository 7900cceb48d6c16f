import ArgumentParser
import BTCPriceAPI
import BTCPriceFeature
import Glibc

/// The entry point of the client.
package enum BTCCtl {
    /// Runs the client.
    /// - Parameter arguments: The command line, without the program's name.
    /// - Returns: The exit status.
    package static func main(arguments: [String]) -> Int32 {
        Output.holdStandardDescriptors()
        if let invocation = Invocation(hotForm: arguments) { return run(invocation) }
        // Without a command, a terminal shows the overview. A program that reads the output gets the help text, as in earlier versions.
        if arguments.isEmpty, isatty(STDOUT_FILENO) == 1 { return Overview.run() }
        return parse(arguments)
    }

    // Not inlined, so that the hot forms do not pay for the setup of ArgumentParser's types.
    @inline(never)
    private static func parse(_ given: [String]) -> Int32 {
        let repaired = CommandLineRepair(given)
        let arguments = repaired.arguments
        if let complaint = repaired.complaint {
            return tellOfMistake(complaint, verb: repaired.verb, arguments, status: ExitStatus.usage)
        }
        do {
            var command = try BTCCtlCommand.parseAsRoot(arguments)
            if let command = command as? any InvocationCommand { return run(try command.invocation()) }
            try command.run()
            return ExitStatus.success
        } catch {
            return finish(error, arguments, verb: repaired.verb)
        }
    }

    private static func run(_ invocation: Invocation) -> Int32 {
        switch invocation {
        case .current(let options): Current.run(options)
        case .watch(let options): Watch.run(options)
        case .wait(let options): Wait.run(options)
        case .convert(let options): Convert.run(options)
        case .history(let options): History.run(options)
        case .at(let options): At.run(options)
        case .chart(let options): ChartView.run(options)
        case .report(let options): Report.run(options)
        case .metrics(let options): Metrics.run(options)
        case .change(let change, let socket, let json, let timestamps):
            Control.run(change, socket: socket, json: json, timestamps: timestamps)
        }
    }

    /// Handles a parser error; help and version are errors with status 0. With `--bar`, the line stays valid and the status is 0.
    private static func finish(_ error: any Error, _ arguments: [String], verb: String?) -> Int32 {
        let status = BTCCtlCommand.exitCode(for: error).rawValue
        if status == ExitStatus.success {
            Output.line(BTCCtlCommand.fullMessage(for: error))
            return status
        }
        var message = BTCCtlCommand.message(for: error)
        // The parser also suggests options that differ a lot from the given one. Remove such a suggestion.
        if let guess = message.firstMatch(of: /'--([^']*)'\. Did you mean '--([^']*)'\?/),
            Suggestion.nearest(to: String(guess.1), among: [String(guess.2)]) == nil,
            let end = message.firstRange(of: " Did you mean")
        {
            message = String(message[..<end.lowerBound])
        }
        if let option = arguments.first(where: { $0.hasPrefix("--") && message.contains("option '\($0)'") }),
            CommandLineRepair.verbs.contains(String(option.dropFirst(2)))
        {
            message += " There is a command of that name: 'btcctl \(option.dropFirst(2))'."
        }
        return tellOfMistake(message, verb: verb, arguments, status: status)
    }

    /// Reports a wrong command line in one line.
    private static func tellOfMistake(_ message: String, verb: String?, _ arguments: [String], status: Int32) -> Int32 {
        let help = verb.map { "btcctl \($0) --help" } ?? "btcctl --help"
        let stop = message.hasSuffix(".") || message.hasSuffix("?") ? "" : "."
        let complaint = Complaint(word: "usage", message: "\(message)\(stop) See '\(help)'.", status: status)
        if let bar = bar(in: arguments) { return PriceOutput(form: .bar(bar)).tell(complaint) }
        Output.tell(complaint, json: arguments.contains("--json"))
        return status
    }

    /// The status bar that an invalid command line names.
    private static func bar(in arguments: [String]) -> Bar? {
        for (index, word) in arguments.enumerated() {
            if word == "--bar", index + 1 < arguments.count { return Bar(rawValue: arguments[index + 1]) }
            if word.hasPrefix("--bar=") { return Bar(rawValue: String(word.dropFirst(6))) }
        }
        return nil
    }
}
