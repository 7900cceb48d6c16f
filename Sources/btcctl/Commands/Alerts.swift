import CommandLine
import Glibc

/// `btcctl alert`: the commands of btc-price-alert, which has the reader of the file that this client does without.
enum Alerts {
    static let verb = Verb(
        command: Command("alert", "Keep alerts on the price: add, list, test, pause and remove them.")
    ) { _ throws(UsageError) in run([]) }

    private static let program = "btc-price-alert"

    /// The words for the other program; `nil` if the command line is none of its.
    /// - Parameter arguments: The command line, without this program's name; or the words of a call for completions.
    static func arguments(in arguments: [String]) -> [String]? {
        let isCompleting = arguments.first == Program.completing
        var words = isCompleting ? Array(arguments.dropFirst()) : arguments
        // The last word of a call for completions is not finished.
        guard let index = BTCCtl.program.index(ofCommandIn: isCompleting ? words.dropLast() : words) else { return nil }
        let named = words[index] == "help" ? index + 1 : index
        guard named < words.count, words[named] == verb.command.name else { return nil }
        words.remove(at: named)
        return (isCompleting ? [Program.completing] : []) + words
    }

    /// Runs the other program in place of this one: the one beside it, or else one in `PATH`.
    /// - Returns: The exit status if that fails.
    static func run(_ words: [String]) -> Int32 {
        // Handlers end with this program, but what it ignores stays ignored.
        let arguments = ([program] + words).map { strdup($0) } + [nil]
        execvp(CommandStart.path(of: program), arguments)
        let reason = String(cString: strerror(errno))
        let complaint = Complaint(
            word: "unavailable", message: "\(program) can't be started: \(reason).",
            advice: "It is a package of its own: 'apt install \(program)'.", status: ExitStatus.unreachable)
        Output.tell(complaint, json: false)
        return complaint.status
    }
}
