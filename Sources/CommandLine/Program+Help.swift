extension Program {
    private static let width = 80

    /// The text of `--help`.
    func help(_ chosen: Command) -> String {
        let isProgram = chosen.name == command.name
        let options = (chosen.options + [.help] + (isProgram ? [.version] : [])).filter(\.isListed)
        let usage =
            ([isProgram ? command.name : "\(command.name) \(chosen.name)"]
                + (chosen.commands.isEmpty ? [] : ["<command>"]) + ["[options]"] + chosen.words.map(\.usage))
        var parts = [Self.wrapped(chosen.summary), Self.wrapped(chosen.details)]
        parts.append("Usage: \(usage.joined(separator: " "))")
        parts.append(Self.table("Arguments:", chosen.words.map { ("<\($0.name)>", $0.help) }))
        parts.append(Self.table("Options:", options.map { ($0.usage, $0.help) }))
        parts.append(Self.table("Commands:", chosen.commands.map { ($0.name, $0.summary) }))
        if !chosen.commands.isEmpty { parts.append("'\(command.name) help <command>' has more.") }
        return parts.filter { !$0.isEmpty }.joined(separator: "\n\n") + "\n"
    }

    private static func table(_ title: String, _ rows: [(name: String, help: String)]) -> String {
        guard !rows.isEmpty else { return "" }
        let column = 24
        return rows.reduce(into: title) { text, row in
            let start = "  \(row.name)"
            let isLong = start.count > column - 2
            let indent = String(repeating: " ", count: isLong ? column : column - start.count)
            text += "\n\(start)\(isLong ? "\n" : "")\(indent)" + wrapped(row.help, indent: column)
        }
    }

    /// Breaks lines between words. A line that begins with a space stays as it is.
    private static func wrapped(_ text: String, indent: Int = 0) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            if line.hasPrefix(" ") { return String(line) }
            var (lines, current) = ([String](), "")
            for word in line.split(separator: " ") {
                if !current.isEmpty, indent + current.count + 1 + word.count > width {
                    lines.append(current)
                    current = ""
                }
                current += (current.isEmpty ? "" : " ") + word
            }
            return (lines + [current]).joined(separator: "\n" + String(repeating: " ", count: indent))
        }.joined(separator: "\n")
    }
}
