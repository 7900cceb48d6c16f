import BTCPriceFeature
import Glibc

/// What a terminal shows, and the text that changes it: only the cells that differ are sent, so a redraw does not flicker.
struct Screen {
    enum Extent {
        /// A few lines below the command line.
        case lines
        /// All of the terminal; the alternate screen is for it alone.
        case whole
    }

    private struct Cell: Equatable {
        var scalar: Unicode.Scalar
        var style: StyledLine.Style
    }

    private let extent: Extent
    /// Whether an ellipsis is drawn as `…` rather than `...`.
    private let isUnicode = Output.isUnicode
    /// The lines drawn last.
    private var lines: [StyledLine] = []
    /// Their cells.
    private var rows: [[Cell]] = []
    /// The row of the cursor, from the first line.
    private var row = 0
    /// The terminal's size when they were drawn; `nil` before the first drawing.
    private var size: (width: Int, height: Int)?

    init(_ extent: Extent = .lines) {
        self.extent = extent
    }

    /// Whether lines can be redrawn on standard output.
    static func isPossible(environment: (String) -> String?) -> Bool {
        isatty(STDOUT_FILENO) == 1 && environment("TERM") != "dumb"
    }

    /// Returns the text that replaces the previous lines by `lines`; empty if nothing differs. Lines are cut at the width, and lines below
    /// the height are omitted, because wrapped or scrolled text can't be redrawn.
    mutating func draw(_ lines: [StyledLine], in size: (width: Int, height: Int), isColored: Bool = false) -> String {
        var text = ""
        let isNew = self.size == nil
        if let old = self.size, old.width != size.width || extent == .whole && old.height != size.height {
            text += forget(at: size.width)
        }
        self.size = size
        let before = (lines: self.lines, rows: rows)
        self.lines = Array(lines.prefix(max(1, size.height)))
        if extent == .whole { self.lines += Array(repeating: StyledLine(""), count: size.height - self.lines.count) }
        rows = self.lines.enumerated().map { index, line in
            index < before.lines.count && before.lines[index] == line
                ? before.rows[index] : cells(line, width: max(0, size.width - 1), isColored: isColored)
        }
        if before.rows.isEmpty { text += extent == .whole ? "\u{1B}[H" : isNew ? "\r" : "" }
        for (index, cells) in rows.enumerated() {
            guard index < before.rows.count else {
                // A new line at the end scrolls, if it has to.
                if index > 0 { text += move(to: index - 1) + "\r\n" }
                row = index
                text += Self.text(cells[...]) + "\u{1B}[K"
                continue
            }
            for run in Self.runs(from: before.rows[index], to: cells) {
                text += move(to: index) + Self.column(run.lowerBound) + Self.text(cells[run])
            }
            if cells.count < before.rows[index].count {
                text += move(to: index) + Self.column(cells.count) + "\u{1B}[K"
            }
        }
        guard extent == .lines, !text.isEmpty || before.rows.count > rows.count else { return text }
        // The cursor waits behind the last line. What is below is cleared (ECMA-48, ED) last: if the screen is cleared from its first
        // position, some terminals keep all of it in their history.
        text += move(to: rows.count - 1) + Self.column(rows[rows.count - 1].count)
        return before.rows.count > rows.count ? text + "\u{1B}[J" : text
    }

    /// Draws all cells again next time: others may have written to the terminal.
    mutating func forget() {
        (lines, rows, row, size) = ([], [], 0, nil)
    }

    /// - Returns: The text that goes back to the first of the lines, which the terminal has wrapped if it has become narrower, and clears
    ///   them. That also clears the terminal's record of wrapped lines.
    private mutating func forget(at width: Int) -> String {
        let drawn = rows.reduce(0) { $0 + max(1, ($1.count + width - 1) / max(1, width)) }
        forget()
        return extent == .whole ? "" : "\r" + (drawn > 1 ? "\u{1B}[\(drawn - 1)A" : "") + "\u{1B}[J"
    }

    /// Moves the cursor up or down (CUU, CUD) among the lines that are drawn.
    private mutating func move(to row: Int) -> String {
        defer { self.row = row }
        return row == self.row ? "" : row < self.row ? "\u{1B}[\(self.row - row)A" : "\u{1B}[\(row - self.row)B"
    }

    /// Moves the cursor in its row (CHA).
    private static func column(_ column: Int) -> String { column == 0 ? "\r" : "\u{1B}[\(column + 1)G" }

    /// The cells of a line, with an ellipsis if it is wider.
    private func cells(_ line: StyledLine, width: Int, isColored: Bool) -> [Cell] {
        var cells: [Cell] = []
        for part in line.parts {
            for scalar in part.text.unicodeScalars {
                cells.append(Cell(scalar: scalar.isOneColumn ? scalar : "?", style: isColored ? part.style : .plain))
            }
        }
        guard cells.count > width else { return cells }
        let ellipsis: [Unicode.Scalar] = isUnicode ? ["…"] : [".", ".", "."]
        let kept = cells.prefix(max(0, width - ellipsis.count))
        let style = kept.last?.style ?? .plain
        return Array((kept + ellipsis.map { Cell(scalar: $0, style: style) }).prefix(width))
    }

    /// The columns to write again. Two that are close are one: to move the cursor takes as many bytes.
    private static func runs(from old: [Cell], to new: [Cell]) -> [Range<Int>] {
        var runs: [Range<Int>] = []
        for index in new.indices where index >= old.count || old[index] != new[index] {
            if let last = runs.last, index - last.upperBound < 6 {
                runs[runs.count - 1] = last.lowerBound..<index + 1
            } else {
                runs.append(index..<index + 1)
            }
        }
        return runs
    }

    /// The cells as text, with SGR sequences for their styles.
    private static func text(_ cells: ArraySlice<Cell>) -> String {
        var (text, style) = ("", StyledLine.Style.plain)
        for cell in cells {
            if cell.style != style {
                if style != .plain { text += "\u{1B}[m" }
                if cell.style != .plain { text += "\u{1B}[\(cell.style.rawValue)m" }
                style = cell.style
            }
            text.unicodeScalars.append(cell.scalar)
        }
        return style == .plain ? text : text + "\u{1B}[m"
    }

    /// The terminal's size in columns and rows; 80 and 24 if it is not known.
    static var size: (width: Int, height: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }
}

extension Unicode.Scalar {
    /// Whether terminals draw it in one column: Latin, Greek and Cyrillic letters, and the punctuation, signs, lines, blocks and dots that
    /// are drawn here. Others, such as ideographs, emoji, marks that combine and controls, would move what is behind them.
    fileprivate var isOneColumn: Bool {
        switch value {
        case 0x20...0x7E, 0xA0...0xAC, 0xAE...0x2FF, 0x370...0x482, 0x48A...0x52F, 0xE3F, 0x2010...0x2027,
            0x2030...0x205E, 0x20A0...0x20CF, 0x2100...0x2319, 0x2500...0x25FC, 0x2800...0x28FF:
            true
        default: false
        }
    }
}
