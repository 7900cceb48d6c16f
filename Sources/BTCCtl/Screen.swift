import Glibc

/// A few lines of a terminal that are redrawn in place.
struct Screen {
    /// The widths of the lines that stand there.
    private var drawn: [Int] = []

    /// Whether lines can be redrawn on standard output.
    static func isPossible(environment: (String) -> String?) -> Bool {
        isatty(STDOUT_FILENO) == 1 && environment("TERM") != "dumb"
    }

    /// The text that replaces what was drawn before by `lines`. A line is cut at the width, and what is below the height is left
    /// out: what wrapped or scrolled away could not be taken back.
    mutating func draw(_ lines: [StyledLine], in size: (width: Int, height: Int), isColored: Bool = false) -> String {
        let lines = lines.prefix(max(1, size.height)).map { $0.prefix(max(1, size.width - 1)) }
        // To the first line's start, and clear from there to the end of the screen (ECMA-48, CUU and ED). In a terminal that has become
        // narrower, lines that stood there have wrapped, as terminals do it today.
        let rows = drawn.reduce(0) { $0 + max(1, ($1 + size.width - 1) / size.width) }
        var text = "\r"
        if rows > 1 { text += "\u{1B}[\(rows - 1)A" }
        text += "\u{1B}[J"
        text += lines.map { $0.text(isColored: isColored) }.joined(separator: "\r\n")
        drawn = lines.map(\.width)
        return text
    }

    /// The terminal's size in columns and rows; 80 and 24 where it tells none.
    static var size: (width: Int, height: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }
}
