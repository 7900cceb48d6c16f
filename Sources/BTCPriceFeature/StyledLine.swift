/// A line of text with styled parts.
package struct StyledLine: Sendable, Equatable {
    /// A style: a parameter of SGR (ECMA-48, 8.3.117).
    package enum Style: Int, Sendable {
        case plain = 0
        case strong = 1
        case faint = 2
        case bad = 31
        case good = 32
        /// Magenta: yellow can't be read on a light background.
        case alarm = 35
    }

    package struct Part: Sendable, Equatable {
        package var text: String
        package var style: Style

        package init(text: String, style: Style = .plain) {
            self.text = text
            self.style = style
        }
    }

    package var parts: [Part] = []

    package init(_ text: String) {
        parts = [Part(text: text)]
    }

    package init(_ parts: [Part]) {
        self.parts = parts
    }

    /// The width in columns. Every character takes one column.
    package var width: Int { parts.reduce(0) { $0 + $1.text.count } }

    /// The first `columns` columns of the line.
    package func prefix(_ columns: Int) -> StyledLine {
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
    package func cut(to columns: Int, isUnicode: Bool) -> StyledLine {
        guard width > columns else { return self }
        let ellipsis = isUnicode ? "…" : "..."
        var kept = prefix(max(0, columns - ellipsis.count))
        kept.parts.append(Part(text: ellipsis, style: kept.parts.last?.style ?? .plain))
        return kept
    }

    /// The line as text, with SGR sequences if it is coloured.
    package func text(isColored: Bool) -> String {
        parts.map { part in
            isColored && part.style != .plain ? "\u{1B}[\(part.style.rawValue)m\(part.text)\u{1B}[m" : part.text
        }.joined()
    }
}
