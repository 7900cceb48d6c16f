import BTCPriceCore

/// A table that another program has exported: UTF-8 with or without a byte order mark, with commas, semicolons or tabs between the cells, and
/// quotation marks as in RFC 4180. Every byte is kept.
struct PaymentTable {
    struct Row {
        /// The number of its first line, from 1.
        let line: Int
        /// Its bytes without the end of the line.
        let bytes: ArraySlice<UInt8>
        /// `\n`, `\r\n`, or nothing at the end of the file.
        let end: ArraySlice<UInt8>
        /// The texts of the cells; `nil` if its quotation marks are wrong.
        let cells: [String]?

        var isEmpty: Bool { cells?.allSatisfy { $0.allSatisfy(\.isWhitespace) } ?? false }
    }

    /// The file is no such table, in one line.
    struct Mistake: Error, Equatable {
        let message: String
    }

    private static let (quote, newline, carriageReturn) = (UInt8(ascii: "\""), UInt8(ascii: "\n"), UInt8(ascii: "\r"))
    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    /// A cell in quotation marks that goes on for more bytes has no end.
    private static let longestCell = 1 << 16

    /// How many texts show what is in a column.
    private static let mostSamples = 20

    /// The byte order mark and a line `sep=;`, which names the separator, or nothing.
    let start: ArraySlice<UInt8>
    let separator: UInt8
    private(set) var rows: [Row] = []

    init(_ bytes: [UInt8]) throws(Mistake) {
        guard !bytes.contains(0), !bytes.starts(with: [0xFF, 0xFE]), !bytes.starts(with: [0xFE, 0xFF]) else {
            throw Mistake(message: "it is not text in UTF-8: save it as CSV in UTF-8")
        }
        let text = bytes[(bytes.starts(with: Self.mark) ? Self.mark.count : 0)...]
        if text.starts(with: Array("sep=".utf8)), let named = text.dropFirst(4).first, ",;|\t".utf8.contains(named),
            let end = Self.lineEnd(text.dropFirst(5))
        {
            (separator, start) = (named, bytes[..<end.endIndex])
        } else {
            (separator, start) = (Self.separator(of: text), bytes[..<text.startIndex])
        }
        var rest = bytes[start.endIndex...]
        var line = start.endIndex == text.startIndex ? 1 : 2
        while !rest.isEmpty {
            let row = Self.row(rest, line, separator)
            rows.append(row)
            line += row.bytes.count { $0 == Self.newline } + 1
            rest = rest[row.end.endIndex...]
        }
    }

    /// The first texts of each column that are not empty.
    /// - Parameter skipped: How many rows at the beginning do not count.
    func columns(after skipped: Int) -> [[String]] {
        var columns: [[String]] = []
        for row in rows.dropFirst(skipped) where !row.isEmpty {
            for (index, text) in (row.cells ?? []).enumerated() {
                if index == columns.count { columns.append([]) }
                if !text.isEmpty, columns[index].count < Self.mostSamples { columns[index].append(text) }
            }
        }
        return columns
    }

    /// The separator that the first row has most.
    private static func separator(of bytes: ArraySlice<UInt8>) -> UInt8 {
        var counts: [UInt8: Int] = [:]
        var isQuoted = false
        for byte in bytes {
            if byte == quote { isQuoted.toggle() }
            if byte == newline, !isQuoted { break }
            if !isQuoted { counts[byte, default: 0] += 1 }
        }
        let candidates = [UInt8(ascii: "\t"), UInt8(ascii: ";"), UInt8(ascii: ",")]
        let most = candidates.compactMap { counts[$0] }.max()
        return candidates.first { counts[$0] == most && most != nil } ?? UInt8(ascii: ",")
    }

    /// The row at the beginning of some bytes. One whose quotation marks are wrong ends with its first line.
    private static func row(_ bytes: ArraySlice<UInt8>, _ line: Int, _ separator: UInt8) -> Row {
        var cells: [String]? = []
        var rest = bytes
        var end: ArraySlice<UInt8>?
        while end == nil {
            var text: ArraySlice<UInt8>
            if rest.first == quote {
                guard let (quoted, after) = quotedCell(rest),
                    after.first.map({ $0 == separator }) ?? true || lineEnd(after) != nil
                else {
                    cells = nil
                    let stop = bytes.firstIndex(of: newline) ?? bytes.endIndex
                    end = lineEnd(
                        bytes[(stop > bytes.startIndex && bytes[stop - 1] == carriageReturn ? stop - 1 : stop)...])
                    break
                }
                (text, rest) = (quoted, after)
            } else {
                let stop = rest.firstIndex { $0 == separator || $0 == newline } ?? rest.endIndex
                let isEndOfLine = stop < rest.endIndex && rest[stop] == newline
                let isCarriage = isEndOfLine && stop > rest.startIndex && rest[stop - 1] == carriageReturn
                (text, rest) = (rest[..<(isCarriage ? stop - 1 : stop)], rest[(isCarriage ? stop - 1 : stop)...])
            }
            cells?.append(String(decoding: text, as: UTF8.self))
            if rest.first == separator {
                rest = rest.dropFirst()
            } else {
                end = lineEnd(rest)
            }
        }
        let last = end ?? bytes[bytes.endIndex...]
        return Row(line: line, bytes: bytes[..<last.startIndex], end: last, cells: cells)
    }

    /// The end of a line at the beginning of some bytes, or of the file; `nil` if there is none.
    private static func lineEnd(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        if bytes.isEmpty || bytes.first == newline { return bytes.prefix(1) }
        return bytes.starts(with: [carriageReturn, newline]) ? bytes.prefix(2) : nil
    }

    /// A cell in quotation marks, and what follows it; `nil` if it has no end.
    private static func quotedCell(_ bytes: ArraySlice<UInt8>) -> (text: ArraySlice<UInt8>, rest: ArraySlice<UInt8>)? {
        var text: [UInt8] = []
        var index = bytes.startIndex + 1
        while index < bytes.endIndex, index - bytes.startIndex < longestCell {
            if bytes[index] == quote {
                guard index + 1 < bytes.endIndex, bytes[index + 1] == quote else {
                    return (text[...], bytes[(index + 1)...])
                }
                index += 1
            }
            text.append(bytes[index])
            index += 1
        }
        return nil
    }

    /// A row with more cells, so many of them empty that all rows have the same number.
    /// - Parameters:
    ///   - added: The texts of the new cells.
    ///   - width: The number of cells that the row has without them.
    func extended(_ row: Row, _ added: [String], width: Int) -> [UInt8] {
        var bytes = Array(row.bytes)
        bytes += [UInt8](repeating: separator, count: max(0, width - (row.cells?.count ?? width)))
        for text in added {
            bytes.append(separator)
            let isPlain = text.utf8.allSatisfy { $0 != separator && $0 != Self.quote && $0 != Self.newline }
            bytes += isPlain ? Array(text.utf8) : Array("\"\(text.replaced("\"", by: "\"\""))\"".utf8)
        }
        return bytes + row.end
    }
}
