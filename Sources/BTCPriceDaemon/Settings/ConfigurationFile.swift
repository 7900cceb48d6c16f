import Glibc
import TOMLKit

/// The configuration file, read: its values by the names of the settings, with the lines they stand on.
struct ConfigurationFile {
    /// The system daemon's file.
    static let systemPath = "/etc/btc-priced/config.toml"

    let values: [(name: String, value: RawValue, line: Int?)]

    /// - Throws: ``SettingsError`` if the file can't be read or is no TOML.
    init(path: String) throws(SettingsError) {
        // Not blocking: a FIFO that nobody writes to would hold the start up for ever.
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
    init(text: String, path: String) throws(SettingsError) {
        // TOMLKit reads up to the first one, and says nothing of the rest.
        guard !text.utf8.contains(0), !text.contains("\\u0000"), !text.contains("\\U00000000") else {
            throw SettingsError("\(path): a NUL in it, so it is no text")
        }
        let table: TOMLTable
        do {
            table = try TOMLTable(string: text)
        } catch let error as TOMLParseError {
            throw SettingsError(
                "\(path), line \(error.source.begin.line), column \(error.source.begin.column): \(error.description)")
        } catch {
            throw SettingsError("\(path): \(error)")
        }
        let lines = Self.lines(of: text)
        values = Self.leaves(of: table, prefix: "").map { name, value in (name, value, lines[name]) }
    }

    private static func leaves(of table: TOMLTable, prefix: String) -> [(String, RawValue)] {
        table.keys.sorted().flatMap { key -> [(String, RawValue)] in
            guard let value = table[key] else { return [] }
            let name = prefix + key
            switch value.type {
            case .table:
                // An empty one sets nothing, but its name has to be right too.
                guard let inner = value.table, !inner.isEmpty else { return [(name, .other("table"))] }
                return leaves(of: inner, prefix: name + ".")
            case .string: return [(name, .text(value.string ?? ""))]
            case .int: return [(name, value.int.map { .integer($0) } ?? .other("integer"))]
            case .array:
                let elements = (value.array.map(Array.init) ?? []).map(\.string)
                let strings = elements.compactMap { $0 }
                return [(name, strings.count == elements.count ? .list(strings) : .other("list of other than strings"))]
            default: return [(name, .other(value.type.description))]
            }
        }
    }

    /// The lines on which keys are set. TOMLKit tells lines only of what is no TOML, so this looks for the assignments; it
    /// serves error messages and nothing else.
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
