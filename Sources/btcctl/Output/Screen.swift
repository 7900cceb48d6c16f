import BTCPriceFeature
import Glibc

/// A few terminal lines that are redrawn in place.
struct Screen {
    /// The widths of the lines drawn last, in columns.
    private var drawn: [Int] = []
    /// The terminal's width when they were drawn.
    private var width: Int?

    /// Whether lines can be redrawn on standard output.
    static func isPossible(environment: (String) -> String?) -> Bool {
        isatty(STDOUT_FILENO) == 1 && environment("TERM") != "dumb"
    }

    /// Whether an ellipsis is drawn as `…` rather than `...`.
    private let isUnicode = Output.isUnicode

    /// Returns the text that replaces the previous lines by `lines`. Lines are cut at the width, and lines below the height are
    /// omitted, because wrapped or scrolled text can't be redrawn.
    mutating func draw(_ lines: [StyledLine], in size: (width: Int, height: Int), isColored: Bool = false) -> String {
        let lines = lines.prefix(max(1, size.height)).map { $0.cut(to: max(1, size.width - 1), isUnicode: isUnicode) }
        // Move to the start of the first line (ECMA-48, CUU), write each line and clear to the end of its row (EL), then clear what is
        // below (ED). ED comes last: if the screen is cleared from its first position, some terminals keep all of it in their history.
        // If the terminal has become narrower, the previous lines have wrapped.
        let rows = drawn.reduce(0) { $0 + max(1, ($1 + size.width - 1) / size.width) }
        var text = "\r"
        if rows > 1 { text += "\u{1B}[\(rows - 1)A" }
        // If the width has changed, this also clears the terminal's record of wrapped lines.
        if let width, size.width != width { text += "\u{1B}[J" }
        width = size.width
        text += lines.map { "\($0.text(isColored: isColored))\u{1B}[K" }.joined(separator: "\r\n") + "\u{1B}[J"
        drawn = lines.map(\.width)
        return text
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
