import ArgumentParser
import Glibc

/// The client as a program.
public enum BTCCtl {
    /// Runs it.
    /// - Parameter arguments: The command line, without the program's name.
    /// - Returns: The exit status.
    public static func main(arguments: [String]) -> Int32 {
        if let invocation = Invocation(hotForm: arguments) { return run(invocation) }
        do {
            var command = try BTCCtlCommand.parseAsRoot(arguments)
            if let command = command as? any InvocationCommand { return run(command.invocation) }
            try command.run()
            return ExitStatus.success
        } catch {
            return finish(error, arguments)
        }
    }

    private static func run(_ invocation: Invocation) -> Int32 {
        switch invocation {
        case .current(let options): return Current.run(options)
        case .watch(let options):
            var watch = Watch(options)
            return watch.run()
        case .report(let options):
            var asking = Asking(options)
            return asking.run()
        case .change(let change, let socket, let json): return Changing.run(change, socket: socket, json: json)
        case .wait(let options):
            var wait = Wait(options)
            return wait.run()
        }
    }

    /// Help and version come as errors too, with the status 0.
    private static func finish(_ error: any Error, _ arguments: [String]) -> Int32 {
        let status = BTCCtlCommand.exitCode(for: error).rawValue
        if status == ExitStatus.success {
            Output.line(BTCCtlCommand.fullMessage(for: error))
        } else if arguments.contains("--json") {
            let complaint = Complaint(word: "usage", message: BTCCtlCommand.message(for: error), status: status)
            Output.tell(complaint, json: true)
        } else {
            Output.complain(BTCCtlCommand.fullMessage(for: error))
        }
        return status
    }
}
