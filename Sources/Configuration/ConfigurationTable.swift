/// The values of one table of a configuration file, with the places where they were set.
package struct ConfigurationTable: Sendable {
    /// The table's name: `exchange.bitso`.
    private let name: String
    private let path: String
    private let entries: [ConfigurationFile.Entry]

    /// - Parameters:
    ///   - path: The file's path, for errors.
    ///   - entries: The values, with their names within the table.
    init(_ name: String, path: String, entries: [ConfigurationFile.Entry]) {
        (self.name, self.path, self.entries) = (name, path, entries)
    }

    /// An error about a value, with its file and line.
    /// - Parameter key: Its name within the table, or the beginning of it; `nil` for the table itself.
    package func error(_ key: String?, _ problem: String) -> SettingsError {
        let entry = entries.first { key == $0.name || $0.name.hasPrefix("\(key ?? "").") }
        let line = (entry ?? entries.first)?.line
        let shown = key.map { "\(name).\($0)" } ?? name
        let value = entry.flatMap { key == $0.name ? " = \($0.value)" : nil } ?? ""
        return SettingsError("\(Origin.file(path: path, line: line)): \(shown)\(value): \(problem)")
    }

    private func value(_ key: String) -> RawValue? {
        entries.first { $0.name == key }?.value
    }

    /// Whether a key is set.
    package func has(_ key: String) -> Bool { value(key) != nil }

    package func text(_ key: String) throws(SettingsError) -> String? {
        guard let value = value(key) else { return nil }
        guard case .text(let text) = value else { throw error(key, "must be a text in quotation marks") }
        return text
    }

    /// A text, or a whole number as a text.
    package func word(_ key: String) throws(SettingsError) -> String? {
        switch value(key) {
        case nil: return nil
        case .text(let text): return text
        case .integer(let number): return "\(number)"
        default: throw error(key, "must be a text in quotation marks, or a whole number")
        }
    }

    package func flag(_ key: String) throws(SettingsError) -> Bool? {
        guard let value = value(key) else { return nil }
        guard case .flag(let isOn) = value else { throw error(key, "must be true or false") }
        return isOn
    }

    package func required(_ key: String, example: String) throws(SettingsError) -> String {
        guard let text = try text(key) else { throw error(nil, "it has no \(key): write \(key) = \(example)") }
        return text
    }

    package func choice<Choice: RawRepresentable & CaseIterable>(
        _ key: String, _ type: Choice.Type
    ) throws(SettingsError) -> Choice? where Choice.RawValue == String {
        guard let text = try text(key) else { return nil }
        guard let choice = Choice(rawValue: text) else {
            throw error(key, "must be one of \(Choice.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", "))")
        }
        return choice
    }

    package func integer(_ key: String, _ range: ClosedRange<Int>) throws(SettingsError) -> Int? {
        guard let value = value(key) else { return nil }
        guard case .integer(let number) = value, range.contains(number) else {
            throw error(key, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// The texts of a list; a single text is a list of one. Empty if it is not set.
    package func list(_ key: String) throws(SettingsError) -> [String] {
        switch value(key) {
        case nil: return []
        case .text(let text): return [text]
        case .list(let texts): return texts
        default: throw error(key, "must be a text in quotation marks, or a list of such texts")
        }
    }

    /// The values of a table within it, in the order of their names. `name` is the last name, `/data/pair`; `key` is the name within
    /// this table, `require./data/pair`.
    package func members(_ key: String) throws(SettingsError) -> [(name: String, key: String, value: RawValue)] {
        entries.filter { $0.names.first == key && $0.names.count == 2 }.map { ($0.names[1], $0.name, $0.value) }
    }

    /// The names of the tables within a table in it, each with its key.
    package func tables(in key: String) -> [(name: String, key: String)] {
        var known: Set<String> = []
        return entries.compactMap { entry in
            guard entry.names.first == key, entry.names.count > 1, known.insert(entry.names[1]).inserted else {
                return nil
            }
            return (entry.names[1], "\(key).\(entry.names[1])")
        }
    }

    package func finish(known: [String]) throws(SettingsError) {
        for entry in entries {
            guard let first = entry.names.first, !known.contains(first) else { continue }
            throw error(entry.name, "unknown key; there are \(known.joined(separator: ", "))")
        }
    }
}
