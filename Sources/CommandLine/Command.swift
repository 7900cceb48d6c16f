/// What a program, or one of its commands, accepts.
package struct Command: Sendable {
    package let name: String
    /// One sentence.
    let summary: String
    /// Examples and exit statuses. A line that begins with a space is not wrapped.
    var details: String { makeDetails() }
    var options: [Option] { makeOptions() }
    var words: [Words] { makeWords() }
    /// The commands, one of which must be given; empty for a command without any.
    let commands: [Command]

    // Made when they are needed: a call needs those of one command.
    private let makeDetails: @Sendable () -> String
    private let makeOptions: @Sendable () -> [Option]
    private let makeWords: @Sendable () -> [Words]

    package init(
        _ name: String, _ summary: String, details: @autoclosure @escaping @Sendable () -> String = "",
        options: @autoclosure @escaping @Sendable () -> [Option] = [],
        words: @autoclosure @escaping @Sendable () -> [Words] = [], commands: [Command] = []
    ) {
        self.name = name
        self.summary = summary
        self.commands = commands
        makeDetails = details
        makeOptions = options
        makeWords = words
    }
}

/// A command line that was read.
package struct ParsedLine: Sendable {
    /// The name of the command, or of the program if it has no commands.
    package let command: String
    /// The words that are not options, in their order.
    package internal(set) var words: [String] = []
    /// The options in their order, with the text of the value; it is empty if the option has none.
    package internal(set) var options: [(name: String, text: String)] = []

    package func has(_ option: Option) -> Bool { options.contains { $0.name == option.name } }

    /// The value of an option; the last one, if it is repeated.
    package func text(_ option: Option) -> String? { options.last { $0.name == option.name }?.text }

    /// All values of an option that may be repeated.
    package func values<Value>(
        _ option: Option, _ read: (String) throws(UsageError) -> Value
    ) throws(UsageError) -> [Value] {
        var values: [Value] = []
        for each in options where each.name == option.name {
            do throws(UsageError) {
                values.append(try read(each.text))
            } catch {
                throw UsageError("'\(each.text)' is not valid for \(option.name): \(error.message)")
            }
        }
        return values
    }

    /// The value of an option; `nil` if it is not given.
    package func value<Value>(
        _ option: Option, _ read: (String) throws(UsageError) -> Value
    ) throws(UsageError) -> Value? {
        try values(option, read).last
    }

    /// The value of an option that is one of several words; `nil` if it is not given.
    package func choice<Choice: RawRepresentable<String>>(
        _ option: Option, among choices: [Choice]
    ) throws(UsageError) -> Choice? {
        try value(option) { text throws(UsageError) in
            if let choice = choices.first(where: { $0.rawValue == text }) { return choice }
            let words = choices.map(\.rawValue)
            throw UsageError("it is \(words.dropLast().joined(separator: ", ")) or \(words.last ?? "")")
        }
    }

    /// The value of an option that is a whole number; `nil` if it is not given.
    package func number(_ option: Option, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
        try value(option) { text throws(UsageError) in
            guard let number = Int(text), range.contains(number) else {
                throw UsageError("it is a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }
    }
}

/// A command line that is not valid.
package struct UsageError: Error, Hashable, CustomStringConvertible {
    /// What is wrong, without a full stop.
    package let message: String

    package init(_ message: String) { self.message = message }

    package var description: String { message }
}
