import BTCPriceCore
import Glibc

/// Reads the command lines of a program by the table of its commands.
///
/// An option is `--name`, `--name value`, `--name=value`, `-n value` or `-nvalue`, before or after the command. A word that begins with a hyphen
/// is an option, unless it is the hyphen alone, or a digit or a point follows (`-1h`). After `--` nothing is an option. If an option is repeated, the last one counts.
package struct Program: Sendable {
    /// What a command line asks for.
    package enum Request: Sendable {
        case run(ParsedLine)
        /// Print this text: the help, the version, or what a shell needs.
        case print(String)
    }

    let command: Command
    let version: String
    /// Other names for commands, for the suggestions.
    let otherNames: [String: String]
    /// An option that is not in the table: those that the program's configuration adds.
    let otherOption: @Sendable (String) -> Option?

    /// - Parameters:
    ///   - command: The program. Its options are those of each of its commands.
    ///   - version: What `--version` prints.
    package init(
        _ command: Command, version: String, otherNames: [String: String] = [:],
        otherOption: @escaping @Sendable (String) -> Option? = { _ in nil }
    ) {
        self.command = command
        self.version = version
        self.otherNames = otherNames
        self.otherOption = otherOption
    }

    /// - Parameter arguments: Without the program's name.
    /// - Throws: ``UsageError``, whose message ends with the command that shows the help.
    package func read(_ arguments: [String]) throws(UsageError) -> Request {
        if arguments.first == Self.completing { return .print(completions(Array(arguments.dropFirst()))) }
        if arguments.isEmpty, !command.commands.isEmpty { return .print(help(command)) }
        guard let index = index(ofCommandIn: arguments) else { return try read(arguments, of: command) }
        if arguments[index] == "help" {
            let rest = arguments[(index + 1)...].filter { $0 != "help" }
            let named = commandName(in: rest)
            return .print(help(try named.map { name throws(UsageError) in try self.command(name) } ?? command))
        }
        return try read(Array(arguments[..<index] + arguments[(index + 1)...]), of: try self.command(arguments[index]))
    }

    /// Adds to an error the command that shows the help.
    package func advised<Result>(
        _ name: String, _ body: () throws(UsageError) -> Result
    ) throws(UsageError) -> Result {
        do throws(UsageError) {
            return try body()
        } catch {
            let stop = error.message.last.map { ".?".contains($0) } == true ? "" : "."
            let words = name == command.name ? name : "\(command.name) \(name)"
            throw UsageError("\(error.message)\(stop) See '\(words) --help'.")
        }
    }

    /// The index of the command's name: the first word that is neither an option nor the value of one.
    package func index(ofCommandIn arguments: [String]) -> Int? {
        guard !command.commands.isEmpty else { return nil }
        var index = 0
        while index < arguments.count {
            let word = arguments[index]
            guard word.hasPrefix("-") else { return index }
            index += takesNext(word, arguments[(index + 1)...].first) ? 2 : 1
        }
        return nil
    }

    /// Whether the value of an option is the next word: not of `--currency=EUR` and `-cEUR`.
    /// Of an option that only some commands give a value, it is not if it is the name of one that does not.
    private func takesNext(_ word: String, _ next: String?) -> Bool {
        let hasValue = { (name: String) in
            let named = command.commands.filter { $0.name == next }.compactMap { self.option(name, of: $0) }
            if let named = named.first { return named.value != nil }
            return command.commands.contains { self.option(name, of: $0)?.value != nil }
        }
        guard !word.hasPrefix("--"), Self.isOption(word) else { return hasValue(word) }
        // Of `-vc` only the last letter can have one.
        let letters = word.dropFirst()
        return letters.firstIndex { hasValue("-\($0)") } == letters.indices.last
    }

    /// The name of the command among the arguments, whether there is one of this name or not; `nil` for none.
    package func commandName(in arguments: [String]) -> String? {
        index(ofCommandIn: arguments).map { arguments[$0] }
    }

    private func command(_ name: String) throws(UsageError) -> Command {
        if let known = command.commands.first(where: { $0.name == name }) { return known }
        return try advised(command.name) { () throws(UsageError) in
            let lower = name.lowercased()
            let names = command.commands.map(\.name) + ["help"]
            let meant = otherNames[lower] ?? Suggestion.nearest(to: lower, among: names)
            throw UsageError("no command '\(name)'." + (meant.map { " Did you mean '\($0)'?" } ?? ""))
        }
    }

    private func read(_ arguments: [String], of chosen: Command) throws(UsageError) -> Request {
        try advised(chosen.name) { () throws(UsageError) in try request(arguments, of: chosen) }
    }

    private func request(_ arguments: [String], of chosen: Command) throws(UsageError) -> Request {
        var line = ParsedLine(command: chosen.name)
        let options = chosen.options + Option.standard
        var rest = arguments[...]
        var mayBeOption = true
        // Whatever else is wrong.
        if rest.prefix(while: { $0 != "--" }).contains(where: Option.help.isNamed) { return .print(help(chosen)) }
        while let word = rest.popFirst() {
            guard mayBeOption, Self.isOption(word) else {
                line.words.append(word)
                continue
            }
            if word == "--" {
                mayBeOption = false
                continue
            }
            let equals = word.firstIndex(of: "=")
            var name = String(word[..<(equals ?? word.endIndex)])
            var text = equals.map { String(word[word.index(after: $0)...]) }
            if !name.hasPrefix("--"), name.count > 2, let first = self.option(String(name.prefix(2)), among: options) {
                // `-cEUR` is `-c EUR`, and `-vc` is `-v -c`.
                name = first.name
                text = first.value == nil ? nil : String(word.dropFirst(2))
                if first.value == nil {
                    let others = word.dropFirst(2)
                    guard self.option("-\(others.prefix(1))", among: options) != nil else {
                        throw unknown(word, in: chosen)
                    }
                    rest = ["-\(others)"] + rest
                }
            }
            guard let option = option(name, among: options) else { throw unknown(name, in: chosen) }
            if option.value == nil {
                guard text == nil else { throw UsageError("\(option.name) has no value") }
            } else if text == nil {
                guard let next = rest.first else { throw UsageError("\(option.name) needs a value: \(option.usage)") }
                guard !Self.isOption(next) else {
                    throw UsageError(
                        "\(option.name) needs a value: \(option.usage); one that begins with a hyphen is written "
                            + "\(option.name)='\(next)'")
                }
                text = rest.removeFirst()
            }
            switch option.name {
            case Option.help.name: return .print(help(chosen))
            case Option.version.name: return .print(version + "\n")
            case Option.completionScript.name: return .print(try completionScript(for: text ?? ""))
            default: line.options.append((option.name, text ?? ""))
            }
        }
        guard chosen.commands.isEmpty else { throw UsageError("a command is missing") }
        let most = chosen.words.reduce(0) { $0 + $1.count.upperBound }
        if line.words.count > most { throw UsageError("unexpected word '\(line.words[most])'") }
        if let missing = chosen.words.enumerated().first(where: {
            $1.count.lowerBound > 0 && line.words.count < $0 + $1.count.lowerBound
        }) {
            throw UsageError("\(missing.element.usage) is missing")
        }
        return .run(line)
    }

    func option(_ name: String, of chosen: Command) -> Option? {
        option(name, among: chosen.options + Option.standard)
    }

    private func option(_ name: String, among options: [Option]) -> Option? {
        options.first { $0.isNamed(name) } ?? otherOption(name)
    }

    private static func isOption(_ word: String) -> Bool {
        guard word.utf8.first == UInt8(ascii: "-"), word.utf8.count > 1 else { return false }
        let second = word.utf8[word.utf8.index(after: word.startIndex)]
        return !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(second) && second != UInt8(ascii: ".")
    }

    private func unknown(_ name: String, in chosen: Command) -> UsageError {
        if chosen.commands.contains(where: { option(name, of: $0) != nil }) {
            return UsageError("a command is missing")
        }
        var message = "unknown option '\(name)'."
        // Without the hyphens, which all have in common.
        let names = chosen.options.map { String($0.name.dropFirst(2)) }
        if name.utf8.count > 3, let near = Suggestion.nearest(to: String(name.dropFirst(2)), among: names) {
            message += " Did you mean '--\(near)'?"
        }
        if let other = command.commands.first(where: { "--\($0.name)" == name }) {
            message += " There is a command of that name: '\(command.name) \(other.name)'."
        }
        return UsageError(message)
    }
}

extension Program {
    /// Reads the command line of this process. If it asks for a text, that is printed; if it is not valid, an error is. Then the process
    /// ends: with status 0, or with 64 (EX_USAGE, sysexits.h).
    package func readOrExit<Value>(
        _ arguments: [String], _ body: (ParsedLine) throws(UsageError) -> Value
    ) -> Value {
        do throws(UsageError) {
            switch try read(arguments) {
            case .run(let line): return try advised(line.command) { () throws(UsageError) in try body(line) }
            case .print(let text): write(text)
            }
            exit(0)
        } catch {
            fail(error.message, status: 64)
        }
    }

    /// Writes a text to standard output. If that fails, prints an error and ends the process with status 74 (EX_IOERR, sysexits.h).
    package func write(_ text: String) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            if count >= 0 {
                bytes = bytes.dropFirst(count)
            } else if errno == EAGAIN {
                var poller = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
                poll(&poller, 1, -1)
            } else if errno != EINTR {
                fail("cannot write: \(String(cString: strerror(errno)))", status: 74)
            }
        }
    }

    /// Prints an error in one line, and ends the process.
    package func fail(_ message: String, status: Int32) -> Never {
        let line = Array("\(command.name): \(message.printable)\n".utf8)
        _ = line.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
        exit(status)
    }
}
