import ArgumentParser
import BTCPriceFeature

/// Rewrites the command line for the parser, which needs the command first: users may put options before it.
struct CommandLineRepair {
    /// The commands.
    static let verbs =
        BTCCtlCommand.configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
    /// Common other names for the commands.
    private static let otherNames = [
        "price": "current", "get": "current", "show": "current", "now": "current", "follow": "watch", "tail": "watch",
        "stream": "watch", "calc": "convert", "candles": "history", "ohlc": "history", "graph": "chart",
        "plot": "chart", "info": "status", "list": "sources", "exchanges": "sources",
        "stop": "pause", "start": "resume", "continue": "resume",
    ]
    /// Options with a separate value.
    private static let valued: Set<String> = [
        "--socket", "--format", "--bar", "--max-age", "--color", "--exec", "--above", "--below", "--change",
        "--timeout", "--currency", "-c", "--since", "--until", "--step", "--span", "--max-step", "--write",
        "--day-zone",
    ]

    /// Options with a number that is not below zero.
    private static let positive: Set<String> = ["--max-age", "--timeout", "--above", "--below", "--change"]

    /// The arguments with the command first.
    let arguments: [String]
    /// What is wrong with the command, in one line; `nil` if it is valid.
    private(set) var complaint: String?
    /// The command, if there is one.
    private(set) var verb: String?

    init(_ given: [String]) {
        var index = 0
        while index < given.count, given[index].hasPrefix("-") {
            index += Self.valued.contains(given[index]) ? 2 : 1
        }
        // Options of the parser itself: completion scripts and their calls.
        let isForParser = given.first.map { $0.hasPrefix("--generate-completion-script") || $0 == "---completion" }
        guard index < given.count, isForParser != true else {
            arguments = given
            return
        }
        let word = given[index]
        var words = Array(given[..<index] + given[(index + 1)...])
        var awaitsTime = word == "at"
        for (place, text) in words.enumerated() {
            let option = place > 0 && Self.valued.contains(words[place - 1]) ? words[place - 1] : nil
            if text.wholeMatch(of: /-[.\d].*/) != nil {
                // The parser would read it as options. `-1h` means an hour ago; nothing else is below zero.
                if option.map({ ["--since", "--until"].contains($0) }) ?? awaitsTime {
                    words[place] = String(text.dropFirst())
                } else if let option, Self.positive.contains(option) {
                    complaint = "\(option): '\(text)' is below zero."
                } else if option == nil, ["at", "convert"].contains(word) {
                    complaint = "'\(text)' is not an amount: it is below zero."
                }
            }
            if option == nil, !words[place].hasPrefix("-") { awaitsTime = false }
        }
        arguments = [word] + words
        guard Self.verbs.contains(word) else {
            complain(of: word)
            return
        }
        verb = word
        if word == "help", let named = words.first(where: { !$0.hasPrefix("-") }), !Self.verbs.contains(named) {
            complain(of: named)
        }
    }

    private mutating func complain(of word: String) {
        verb = nil
        complaint = "no command '\(word)'."
        if let meant = Self.meant(by: word) { complaint? += " Did you mean '\(meant)'?" }
    }

    /// The command that was probably meant.
    static func meant(by word: String) -> String? {
        let lower = word.lowercased()
        if let verb = otherNames[lower] ?? verbs.first(where: { $0 == lower }) { return verb }
        return Suggestion.nearest(to: lower, among: verbs)
    }
}
