import FoundationEssentials
import Glibc
import TOMLKit

/// The parsed configuration file: the names of the settings, with their values and line numbers.
package struct ConfigurationFile {
    /// The system daemon's file.
    package static let systemPath = "/etc/btc-priced/config.toml"

    /// A value, with the names that lead to it.
    package struct Entry: Sendable {
        package let names: [String]
        package let value: RawValue
        package let line: Int?

        /// `tick.interval-ms`
        package var name: String { names.joined(separator: ".") }
    }

    /// A key of several names in the syntax of the file: `require."/pair"`.
    package static func key(_ names: some Sequence<String>) -> String {
        names.map { $0.wholeMatch(of: /[A-Za-z0-9_-]+/) == nil ? "\(RawValue.text($0))" : $0 }.joined(separator: ".")
    }

    /// The values in the order of their lines, those of one line in the order of their names.
    package let values: [Entry]
    private let path: String

    /// The files of a directory, `*.toml`, in the order of their names; none if it can't be read.
    package static func paths(in directory: String) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return names.filter { $0.hasSuffix(".toml") && !$0.hasPrefix(".") }.sorted().map { "\(directory)/\($0)" }
    }

    /// - Throws: ``SettingsError`` if the file can't be read or is not valid TOML.
    package init(path: String) throws(SettingsError) {
        // Non-blocking: a FIFO without a writer would block the start forever.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw SettingsError("\(path): \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw SettingsError("\(path): not a regular file")
        }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count >= 0 else { throw SettingsError("\(path): \(String(cString: strerror(errno)))") }
            if count == 0 { break }
            bytes += buffer[..<count]
            guard bytes.count <= 1 << 20 else { throw SettingsError("\(path): longer than 1 MiB") }
        }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw SettingsError("\(path): not UTF-8") }
        try self.init(text: text, path: path)
    }

    /// - Parameters:
    ///   - text: The file's content.
    ///   - path: Its name, for errors.
    package init(text: String, path: String) throws(SettingsError) {
        // TOMLKit reads up to the first NUL, and silently ignores the rest.
        guard !text.utf8.contains(0), !text.contains("\\u0000"), !text.contains("\\U00000000") else {
            throw SettingsError("\(path): it contains a NUL byte")
        }
        if let unused = Self.unusedSyntax(in: text) {
            throw SettingsError("\(path), line \(unused.line): \(unused.problem)")
        }
        let table: TOMLTable
        do {
            table = try TOMLTable(string: text)
        } catch let error as TOMLParseError {
            let advice =
                error.description.contains("table header: cannot redefine existing table '")
                ? ", which begins above: write all of its keys there" : ""
            throw SettingsError(
                "\(path), line \(error.source.begin.line), column \(error.source.begin.column): \(error.description)\(advice)"
            )
        } catch {
            throw SettingsError("\(path): \(error)")
        }
        let lines = Self.lines(of: text)
        self.path = path
        values = Self.leaves(of: table, prefix: []).map { names, value in
            // The members of an inline table are on its line.
            let line = (1...names.count).reversed().lazy.compactMap { lines[names.prefix($0).joined(separator: ".")] }
                .first
            return Entry(names: names, value: value, line: line)
        }.enumerated().sorted { ($0.element.line ?? 0, $0.offset) < ($1.element.line ?? 0, $1.offset) }.map(\.element)
    }

    /// The tables in a table, in their order, with their names.
    package func tables(in name: String) -> [(name: String, table: ConfigurationTable)] {
        var names: [String] = []
        var entries: [String: [Entry]] = [:]
        for entry in values where entry.names.first == name && entry.names.count > 1 {
            let table = entry.names[1]
            if entries[table] == nil { names.append(table) }
            let own = Entry(names: Array(entry.names.dropFirst(2)), value: entry.value, line: entry.line)
            entries[table, default: []] += own.names.isEmpty ? [] : [own]
        }
        return names.map {
            ($0, ConfigurationTable("\(name).\($0)", path: path, entries: entries[$0] ?? []))
        }
    }

    /// Finds syntax that no setting accepts: bare values but numbers and booleans, arrays of tables, unnamed tables, unmatched brackets.
    ///
    /// TOMLKit's parser (toml++ 3) aborts with an assertion on some of them, such as `a = 1979-05-27T:`, `[[;]` and `a = [1, }`.
    private static func unusedSyntax(in text: String) -> (problem: String, line: Int)? {
        var rest = Array(text.utf8)[...]
        var line = 1
        var isLineStart = true
        // Whether a bare word is a value, not a key.
        var isValue = false
        /// The brackets that are open.
        var brackets: [UInt8] = []
        while let byte = rest.first {
            switch byte {
            case UInt8(ascii: "\n"):
                line += 1
                isLineStart = true
                if brackets.isEmpty { isValue = false }
                rest.removeFirst()
                continue
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"):
                rest.removeFirst()
                continue
            case UInt8(ascii: "#"): rest = rest.drop { $0 != UInt8(ascii: "\n") }
            case UInt8(ascii: "\""), UInt8(ascii: "'"): line += skipString(&rest, quote: byte)
            case UInt8(ascii: "[") where isLineStart && brackets.isEmpty:
                if rest.starts(with: "[[".utf8) { return ("an array of tables, which has no meaning here", line) }
                brackets.append(byte)
                rest = rest.dropFirst().drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
                // A bare or quoted key (TOML 1.0, Keys).
                let first = rest.first.map { Character(UnicodeScalar($0)) }
                guard let first, first.isASCII, first.isLetter || first.isNumber || "_-\"'".contains(first) else {
                    return ("a table without a name", line)
                }
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                brackets.append(byte)
                isValue = byte == UInt8(ascii: "[")
                rest.removeFirst()
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                // In ASCII, the code of a closing bracket is that of the opening one plus two.
                guard brackets.popLast() == byte - 2 else { return ("a closing bracket without its opening one", line) }
                rest.removeFirst()
            case UInt8(ascii: "="), UInt8(ascii: ","):
                isValue = byte == UInt8(ascii: "=") || brackets.last == UInt8(ascii: "[")
                rest.removeFirst()
            default:
                let word = rest.prefix { !" \t\r\n#\"'[]{}=,".utf8.contains($0) }
                if isValue, !isBareValue(word) {
                    return ("a value that is not quoted, and neither a number nor true or false", line)
                }
                rest = rest.dropFirst(word.count)
            }
            isLineStart = false
        }
        return nil
    }

    /// Whether a word is a number, `true` or `false` (TOML 1.0, Integer, Float, Boolean).
    private static func isBareValue(_ word: ArraySlice<UInt8>) -> Bool {
        let text = String(decoding: word, as: UTF8.self)
        return ["true", "false"].contains(text)
            || text.wholeMatch(of: /[+-]?[0-9][0-9_]*(\.[0-9][0-9_]*)?([eE][+-]?[0-9]+)?|0[xob][0-9A-Fa-f_]+/) != nil
    }

    /// Drops the string at the start of `rest`, on one line or on several.
    /// - Returns: The number of line ends in it.
    private static func skipString(_ rest: inout ArraySlice<UInt8>, quote: UInt8) -> Int {
        let isMultiline = rest.starts(with: [quote, quote, quote])
        rest = rest.dropFirst(isMultiline ? 3 : 1)
        var lines = 0
        while let byte = rest.first {
            if byte == quote, !isMultiline || rest.starts(with: [quote, quote, quote]) {
                rest = rest.dropFirst(isMultiline ? 3 : 1)
                break
            }
            if byte == UInt8(ascii: "\n") {
                if !isMultiline { break }
                lines += 1
            }
            rest = rest.dropFirst(byte == UInt8(ascii: "\\") && quote == UInt8(ascii: "\"") ? 2 : 1)
        }
        return lines
    }

    private static func leaves(of table: TOMLTable, prefix: [String]) -> [([String], RawValue)] {
        table.keys.sorted().flatMap { key -> [([String], RawValue)] in
            guard let value = table[key] else { return [] }
            let names = prefix + [key]
            switch value.type {
            case .table:
                // An empty table sets nothing, but its name is checked too.
                guard let inner = value.table, !inner.isEmpty else { return [(names, .other("table"))] }
                return leaves(of: inner, prefix: names)
            case .string: return [(names, .text(value.string ?? ""))]
            case .bool: return [(names, value.bool.map { .flag($0) } ?? .other("boolean"))]
            case .int: return [(names, value.int.map { .integer($0) } ?? .other("integer"))]
            case .array:
                let elements = (value.array.map(Array.init) ?? []).map(\.string)
                let strings = elements.compactMap { $0 }
                return [
                    (names, strings.count == elements.count ? .list(strings) : .other("list of other than strings"))
                ]
            default: return [(names, .other(value.type.description))]
            }
        }
    }

    /// The lines on which keys are set, for error messages only: TOMLKit has line numbers only for syntax errors.
    private static func lines(of text: String) -> [String: Int] {
        var lines: [String: Int] = [:]
        var prefix = ""
        func plain(_ part: Substring) -> String { String(part.filter { !$0.isWhitespace && $0 != "\"" && $0 != "'" }) }
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let trimmed = line.drop(while: \.isWhitespace)
            if trimmed.first == "[", let end = trimmed.firstIndex(of: "]") {
                prefix = plain(trimmed[trimmed.index(after: trimmed.startIndex)..<end]) + "."
            } else if trimmed.first != "#", let equals = trimmed.firstIndex(of: "=") {
                lines[prefix + plain(trimmed[..<equals])] = index + 1
            }
        }
        return lines
    }
}
