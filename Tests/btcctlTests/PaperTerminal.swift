import BTCPriceCore
import Testing

/// A terminal on paper: obeys the sequences that a ``Screen`` may send, and reports every other one.
struct PaperTerminal {
    private(set) var rows: [[Character]]
    private(set) var row = 0
    private(set) var column = 0
    private(set) var width: Int
    /// What is not allowed: an unknown sequence, a control, a character behind the last column.
    private(set) var mistakes: [String] = []
    /// The lines that were scrolled out.
    private(set) var scrolled = 0

    /// - Parameter filled: What the cells have that nobody has written.
    init(width: Int, height: Int, row: Int = 0, filled: Character = " ") {
        rows = Array(repeating: Array(repeating: filled, count: width), count: height)
        (self.width, self.row) = (width, row)
    }

    /// The rows without the spaces at their ends.
    var texts: [String] { rows.map { String($0).withoutTrailingSpaces } }

    mutating func show(_ text: String) {
        var rest = Array(text.unicodeScalars)[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\r": column = 0
            case "\n":
                row += 1
                guard row == rows.count else { break }
                row -= 1
                scrolled += 1
                rows = rows.dropFirst() + [Array(repeating: " ", count: width)]
            case "\u{1B}": sequence(&rest)
            default: write(scalar)
            }
        }
    }

    private mutating func write(_ scalar: Unicode.Scalar) {
        guard scalar.value >= 0x20, scalar.value != 0x7F, !(0x80...0x9F ~= scalar.value) else {
            return mistakes.append("control \(scalar.value)")
        }
        guard column < width else { return mistakes.append("\(scalar) behind the last column") }
        rows[row][column] = Character(scalar)
        column += 1
    }

    private mutating func sequence(_ rest: inout ArraySlice<Unicode.Scalar>) {
        guard rest.popFirst() == "[", let end = rest.firstIndex(where: { $0.value >= 0x40 }) else {
            return mistakes.append("a sequence that is no CSI")
        }
        let parameter = String(String.UnicodeScalarView(rest[..<end]))
        let final = rest[end]
        rest = rest[(end + 1)...]
        let number = Int(parameter) ?? 1
        switch (final, parameter) {
        case ("A", _) where number <= row: row -= number
        case ("B", _) where row + number < rows.count: row += number
        case ("G", _) where 1...width ~= number: column = number - 1
        case ("H", ""): (row, column) = (0, 0)
        case ("K", ""): erase(from: column)
        case ("J", ""):
            erase(from: column)
            for below in rows.indices where below > row { rows[below] = Array(repeating: " ", count: width) }
        case ("m", ""), ("m", "1"), ("m", "2"), ("m", "31"), ("m", "32"), ("m", "35"): break
        default: mistakes.append("ESC [ \(parameter) \(final)")
        }
    }

    private mutating func erase(from column: Int) {
        for column in column..<width { rows[row][column] = " " }
    }
}
