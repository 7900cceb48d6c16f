import Glibc

/// When the output is coloured.
enum ColorChoice: String, CaseIterable {
    case auto
    case always
    case never

    /// - Parameters:
    ///   - isTerminal: Whether standard output is a terminal.
    ///   - environment: Looks up a variable. `NO_COLOR` (no-color.org) counts unless it is empty.
    func isWanted(isTerminal: Bool, environment: (String) -> String?) -> Bool {
        switch self {
        case .always: true
        case .never: false
        case .auto: isTerminal && environment("TERM") != "dumb" && (environment("NO_COLOR") ?? "").isEmpty
        }
    }
}

/// A line of text with styled parts.
struct StyledLine: Equatable {
    /// A style: a parameter of SGR (ECMA-48, 8.3.117).
    enum Style: Int {
        case plain = 0
        case faint = 2
        case bad = 31
        case good = 32
        case alarm = 33
    }

    struct Part: Equatable {
        var text: String
        var style = Style.plain
    }

    var parts: [Part] = []

    init(_ text: String) {
        parts = [Part(text: text)]
    }

    init(_ parts: [Part]) {
        self.parts = parts
    }

    /// The width in columns. Every character takes one column.
    var width: Int { parts.reduce(0) { $0 + $1.text.count } }

    /// The first `columns` columns of the line.
    func prefix(_ columns: Int) -> StyledLine {
        var left = columns
        var kept: [Part] = []
        for part in parts where left > 0 {
            let text = String(part.text.prefix(left))
            left -= text.count
            kept.append(Part(text: text, style: part.style))
        }
        return StyledLine(kept)
    }

    /// The line, shortened to this number of columns with an ellipsis if it is longer.
    func cut(to columns: Int, isUnicode: Bool) -> StyledLine {
        guard width > columns else { return self }
        let ellipsis = isUnicode ? "…" : "..."
        var kept = prefix(max(0, columns - ellipsis.count))
        kept.parts.append(Part(text: ellipsis, style: kept.parts.last?.style ?? .plain))
        return kept
    }

    /// The line as text, with SGR sequences if it is coloured.
    func text(isColored: Bool) -> String {
        parts.map { part in
            isColored && part.style != .plain ? "\u{1B}[\(part.style.rawValue)m\(part.text)\u{1B}[m" : part.text
        }.joined()
    }
}
