import Files

/// The parsed configuration file: the names of the settings, with their values and line numbers.
package struct ConfigurationFile {
    /// The system daemon's file.
    package static let systemPath = "/etc/btc-priced/config.toml"

    /// A value, with the names that lead to it.
    package struct Entry: Sendable {
        package let names: [String]
        package let value: RawValue
        /// The line of its key.
        package let line: Int

        /// `tick.interval-ms`
        package var name: String { names.joined(separator: ".") }
    }

    /// A key of several names in the syntax of the file: `require."/pair"`.
    package static func key(_ names: some Sequence<String>) -> String {
        names.map { !$0.isEmpty && $0.utf8.allSatisfy(\.isInBareKey) ? $0 : "\(RawValue.text($0))" }
            .joined(separator: ".")
    }

    /// The values in the order of their lines, those of one line in the order of their names.
    package let values: [Entry]
    private let path: String

    /// The files of a directory, `*.toml`, in the order of their names; none if it can't be read.
    package static func paths(in directory: String) -> [String] {
        FileSystem.names(in: directory).filter { $0.hasSuffix(".toml") && !$0.hasPrefix(".") }.sorted().map {
            "\(directory)/\($0)"
        }
    }

    /// A path that stands for no file.
    private static let none = "/dev/null"

    /// - Throws: ``SettingsError`` if the file can't be read or is not valid TOML.
    package init(path: String) throws(SettingsError) {
        let bytes: [UInt8]
        do throws(FileFailure) {
            bytes = path == Self.none ? [] : try fileContent(path, atMost: 1)
        } catch {
            throw SettingsError("\(error)")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw SettingsError("\(path): not UTF-8") }
        try self.init(text: text, path: path)
    }

    /// - Parameters:
    ///   - text: The file's content.
    ///   - path: Its name, for errors.
    package init(text: String, path: String) throws(SettingsError) {
        self.path = path
        do {
            values = try TOMLReader.leaves(of: text)
        } catch {
            throw SettingsError("\(path), line \(error.line), column \(error.column): \(error.problem)")
        }
        if let array = values.first(where: { $0.value == .other("array of tables") }) {
            let origin = Origin.file(path: path, line: array.line)
            throw SettingsError("\(origin): an array of tables, which has no meaning here")
        }
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
}
