/// Brings the command line into the form that the parser reads: options may come before the command.
struct CommandLineRepair {
    /// The commands.
    static let verbs = [
        "current", "watch", "wait", "convert", "history", "at", "chart",
        "status", "sources", "currencies", "metrics", "pause", "resume", "retry",
        "help",
    ]
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
        "--timeout", "--currency", "-c", "--since", "--until", "--step", "--span",
    ]

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
        arguments = [word] + given[..<index] + given[(index + 1)...]
        guard !Self.verbs.contains(word) else {
            verb = word
            return
        }
        complaint = "no command '\(word)'."
        if let meant = Self.meant(by: word) { complaint? += " Did you mean '\(meant)'?" }
    }

    /// The command that was probably meant.
    static func meant(by word: String) -> String? {
        let lower = word.lowercased()
        if let verb = otherNames[lower] ?? verbs.first(where: { $0 == lower }) { return verb }
        let nearest = verbs.map { ($0, distance($0, lower)) }.min { $0.1 < $1.1 }
        guard let nearest, nearest.1 <= 2, nearest.1 * 2 < nearest.0.count else { return nil }
        return nearest.0
    }

    /// The number of insertions, deletions, changes and swaps of neighbouring letters (Damerau-Levenshtein distance).
    private static func distance(_ first: String, _ second: String) -> Int {
        let (a, b) = (Array(first), Array(second))
        var before: [Int] = []
        var last = Array(0...b.count)
        for i in a.indices {
            var row = [i + 1]
            for j in b.indices {
                var best = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, before[j - 1] + 1) }
                row.append(best)
            }
            (before, last) = (last, row)
        }
        return last[b.count]
    }
}
