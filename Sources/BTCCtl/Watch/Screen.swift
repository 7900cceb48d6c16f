import Glibc

/// A few lines of a terminal that are redrawn in place.
struct Screen {
    /// The widths of the lines that stand there.
    private var drawn: [Int] = []
    /// The terminal's width then.
    private var width: Int?

    /// Whether lines can be redrawn on standard output.
    static func isPossible(environment: (String) -> String?) -> Bool {
        isatty(STDOUT_FILENO) == 1 && environment("TERM") != "dumb"
    }

    /// The text that replaces what was drawn before by `lines`. A line is cut at the width, and what is below the height is left
    /// out: what wrapped or scrolled away could not be taken back.
    mutating func draw(_ lines: [StyledLine], in size: (width: Int, height: Int), isColored: Bool = false) -> String {
        let lines = lines.prefix(max(1, size.height)).map { $0.prefix(max(1, size.width - 1)) }
        // To the first line's start (ECMA-48, CUU), each line with what is left of the one before cleared behind it (EL), and what was
        // below it (ED) only then: some terminals take a clear from the very first place on for a whole screen to be kept in their
        // history. In a terminal that has become narrower, lines that stood there have wrapped, as terminals do it today.
        let rows = drawn.reduce(0) { $0 + max(1, ($1 + size.width - 1) / size.width) }
        var text = "\r"
        if rows > 1 { text += "\u{1B}[\(rows - 1)A" }
        // Where lines have wrapped, the clear takes the terminal's note of that away, too.
        if let width, size.width != width { text += "\u{1B}[J" }
        width = size.width
        text += lines.map { "\($0.text(isColored: isColored))\u{1B}[K" }.joined(separator: "\r\n") + "\u{1B}[J"
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
