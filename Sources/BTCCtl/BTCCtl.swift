import ArgumentParser
import Glibc

/// The client as a program.
public enum BTCCtl {
    /// Runs it.
    /// - Parameter arguments: The command line, without the program's name.
    /// - Returns: The exit status.
    public static func main(arguments: [String]) -> Int32 {
        Output.holdStandardDescriptors()
        if let invocation = Invocation(hotForm: arguments) { return run(invocation) }
        return parse(arguments)
    }

    // Not inlined: what ArgumentParser's types take to be set up is not for the hot forms to wait for.
    @inline(never)
    private static func parse(_ arguments: [String]) -> Int32 {
        do {
            var command = try BTCCtlCommand.parseAsRoot(arguments)
            if let command = command as? any InvocationCommand { return run(try command.invocation()) }
            try command.run()
            return ExitStatus.success
        } catch {
            return finish(error, arguments)
        }
    }

    private static func run(_ invocation: Invocation) -> Int32 {
        switch invocation {
        case .current(let options): Current.run(options)
        case .watch(let options): Watch.run(options)
        case .wait(let options): Wait.run(options)
        case .convert(let options): Convert.run(options)
        case .report(let options): Asking.run(options)
        case .change(let change, let socket, let json): Changing.run(change, socket: socket, json: json)
        }
    }

    /// Help and version come as errors too, with the status 0. A status bar must not break, whatever else it was given.
    private static func finish(_ error: any Error, _ arguments: [String]) -> Int32 {
        let status = BTCCtlCommand.exitCode(for: error).rawValue
        if status == ExitStatus.success {
            Output.line(BTCCtlCommand.fullMessage(for: error))
            return status
        }
        let complaint = Complaint(word: "usage", message: BTCCtlCommand.message(for: error), status: status)
        if let bar = bar(in: arguments) { return PriceOutput(form: .bar(bar)).tell(complaint) }
        if arguments.contains("--json") {
            Output.tell(complaint, json: true)
        } else {
            Output.complain(BTCCtlCommand.fullMessage(for: error))
        }
        return status
    }

    /// The bar that a command line names which can't be read otherwise.
    private static func bar(in arguments: [String]) -> Bar? {
        for (index, word) in arguments.enumerated() {
            if word == "--bar", index + 1 < arguments.count { return Bar(rawValue: arguments[index + 1]) }
            if word.hasPrefix("--bar=") { return Bar(rawValue: String(word.dropFirst(6))) }
        }
        return nil
    }
}
