import Glibc

/// A few lines of a terminal that are redrawn in place.
struct Screen {
    private var drawn = 0

    /// Whether lines can be redrawn on standard output.
    static func isPossible(environment: (String) -> String?) -> Bool {
        isatty(STDOUT_FILENO) == 1 && environment("TERM") != "dumb"
    }

    /// The text that replaces what was drawn before by `lines`. A line is cut at the width: one that wrapped could not be
    /// taken back.
    mutating func draw(_ lines: [String], width: Int) -> String {
        // To the first line's start, and clear from there to the end of the screen (ECMA-48, CUU and ED).
        var text = "\r"
        if drawn > 1 { text += "\u{1B}[\(drawn - 1)A" }
        text += "\u{1B}[J"
        text += lines.map { String($0.prefix(max(1, width - 1))) }.joined(separator: "\r\n")
        drawn = lines.count
        return text
    }

    /// The terminal's width in columns; 80 where it tells none.
    static var width: Int {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}
