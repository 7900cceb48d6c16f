/// An option of a command line: `--max-age <duration>`.
package struct Option: Sendable {
    /// With the hyphens: `--max-age`.
    package let name: String
    /// Its short form: `c` for `-c`.
    let letter: Character?
    /// What the help calls its value; `nil` if it has none.
    package let value: String?
    let help: String
    let completion: Completion
    /// Whether the help shows it.
    let isListed: Bool

    package init(
        _ name: String, letter: Character? = nil, value: String? = nil, _ help: String,
        completion: Completion = .none, isListed: Bool = true
    ) {
        self.name = name
        self.letter = letter
        self.value = value
        self.help = help
        self.completion = completion
        self.isListed = isListed
    }

    /// `-c, --currency <code>`
    var usage: String { (letter.map { "-\($0), " } ?? "") + name + (value.map { " <\($0)>" } ?? "") }

    func isNamed(_ text: some StringProtocol) -> Bool { name == text || letter.map { text == "-\($0)" } == true }

    static let help = Option("--help", letter: "h", "Show this help.")
    static let version = Option("--version", "Show the version.")
    static let completionScript = Option(
        "--generate-completion-script", value: "shell", "Print the completions for bash, zsh or fish.",
        completion: .words(["bash", "zsh", "fish"]), isListed: false)
    /// The options of every program and command.
    static let standard = [help, version, completionScript]
}

/// The words of a command line that are not options, of one kind.
package struct Words: Sendable {
    let name: String
    let help: String
    /// How many there may be.
    let count: ClosedRange<Int>
    let completion: Completion

    package init(_ name: String, _ help: String, count: ClosedRange<Int>, completion: Completion = .none) {
        self.name = name
        self.help = help
        self.count = count
        self.completion = completion
    }

    /// `<time>`, `[<source>]` or `[<amount> ...]`
    var usage: String {
        let repeated = count.upperBound > 1 ? "<\(name)> ..." : "<\(name)>"
        return count.lowerBound > 0 ? repeated : "[\(repeated)]"
    }
}

/// What a shell completes a value with.
package enum Completion: Sendable {
    case none
    case files
    case directories
    case words([String])
    /// The candidates for the words of the command line, and for the beginning of the value.
    case computed(@Sendable (_ words: [String], _ beginning: String) -> [String])
}
