import BTCPriceCore
import Glibc

extension Program {
    /// Reads the command line of this process. If it asks for a text, that is printed; if it is not valid, an error is. Then the process
    /// ends: with status 0, or with 64 (EX_USAGE, sysexits.h).
    package func readOrExit<Value>(
        _ arguments: [String], _ body: (ParsedLine) throws(UsageError) -> Value
    ) -> Value {
        do throws(UsageError) {
            switch try read(arguments) {
            case .run(let line): return try advised(line.command) { () throws(UsageError) in try body(line) }
            case .print(let text): print(text, terminator: "")
            }
            exit(0)
        } catch {
            fail(error.message, status: 64)
        }
    }

    /// Prints an error in one line, and ends the process.
    package func fail(_ message: String, status: Int32) -> Never {
        let line = Array("\(command.name): \(message.printable)\n".utf8)
        _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
        exit(status)
    }
}
