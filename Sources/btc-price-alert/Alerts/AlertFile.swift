import BTCPriceCore
import CommandLine
import Configuration
import Files
import Glibc

/// The file with the alerts, which people may edit: `[alert.NAME]` is one alert.
struct AlertFile: Sendable {
    /// What the file says.
    struct Content: Sendable {
        /// The alerts that are right, in the order of the file.
        var alerts: [Alert] = []
        /// The names of all, those with a mistake included.
        var names: [String] = []
        /// The mistakes, each with its file and line.
        var mistakes: [SettingsError] = []
    }

    /// An alert without a currency, in a file that people have written, is in this one.
    static let usualCurrency = Currency.usd.rawValue
    /// The key for when an alert was added: one that is removed and added again is new.
    static let added = "added"
    /// How long a change waits for another one, seconds.
    private static let patience = 10

    let path: String
    /// Whether only root may be able to write it: its commands run as another user than the one who could.
    let isRoots: Bool

    /// The directory that it is in.
    var folder: String { path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "." }

    /// - Throws: ``SettingsError`` if the file can't be read or is no TOML. Then nothing is known.
    func content() throws(SettingsError) -> Content { try content(of: try text()) }

    /// Changes with each write and with the permissions; `nil` if there is no file.
    var stamp: [Int]? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return [Int(status.st_ino), Int(status.st_size), status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
    }

    /// Appends an alert.
    /// - Parameter values: Its keys and their values.
    func add(_ name: String, _ values: [(key: String, value: RawValue)]) throws(SettingsError) {
        try change { text throws(SettingsError) in
            let known = try content(of: text).names
            guard !known.contains(name) else { throw SettingsError("\(path): there is an alert '\(name)' already") }
            let table =
                "[alert.\(name)]\n" + values.map { "\(ConfigurationFile.key([$0.key])) = \($0.value)\n" }.joined()
            let gap = text.isEmpty ? "" : text.utf8.last == UInt8(ascii: "\n") ? "\n" : "\n\n"
            return (text + gap + table, known + [name])
        }
    }

    /// Cuts the table of an alert. Every other byte stays.
    /// - Returns: How many alerts are left.
    func remove(_ name: String) throws(SettingsError) -> Int {
        var left = 0
        try change { text throws(SettingsError) in
            let known = try content(of: text).names
            guard known.contains(name) else { throw unknown(name, known) }
            left = known.count - 1
            return (try without(name, in: text), known.filter { $0 != name })
        }
        return left
    }

    func unknown(_ name: String, _ known: [String]) -> SettingsError {
        let meant = Suggestion.nearest(to: name, among: known).map { ". Did you mean '\($0)'?" }
        return SettingsError("\(path): there is no alert '\(name)'\(meant ?? "")")
    }

    /// - Parameter edit: Returns the new text, and the names of the alerts that it must have.
    private func change(_ edit: (String) throws(SettingsError) -> (String, names: [String])) throws(SettingsError) {
        // Two programs that change the file take turns.
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SettingsError("\(folder): \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        var tries = 0
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard tries < Self.patience * 20 else { throw SettingsError("\(path): another program keeps it locked") }
            tries += 1
            usleep(50_000)
        }
        var status = stat()
        if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK {
            throw SettingsError("\(path): a symbolic link, through which nothing is written: edit the file itself")
        }
        let (text, names) = try edit(try self.text())
        guard try content(of: text).names == names else {
            throw SettingsError("\(path): it can't be changed without another effect: use an editor")
        }
        do throws(PriceStoreError) {
            try FileSystem.replace(
                path, with: Array(text.utf8), sync: true, mode: isRoots ? 0o644 : 0o600, keepsOwner: true)
        } catch {
            throw SettingsError("\(error)")
        }
    }

    /// The text of the file; empty if there is none.
    private func text() throws(SettingsError) -> String {
        var status = stat()
        guard stat(path, &status) == 0 || errno != ENOENT else { return "" }
        guard !isRoots || status.st_uid == 0 && status.st_mode & 0o022 == 0 else {
            throw SettingsError("\(path): others than root can write it: 'chown root' and 'chmod 644' mend that")
        }
        let bytes: [UInt8]
        do throws(FileFailure) { bytes = try fileContent(path, atMost: 1) } catch { throw SettingsError("\(error)") }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw SettingsError("\(path): not UTF-8") }
        return text
    }

    private func content(of text: String) throws(SettingsError) -> Content {
        let file = try ConfigurationFile(text: text, path: path)
        var content = Content()
        for entry in file.values where entry.names.first != "alert" || entry.names.count == 1 {
            content.mistakes.append(
                SettingsError("\(path), line \(entry.line): \(entry.name): unknown key; an alert is [alert.NAME]"))
        }
        for (name, table) in file.tables(in: "alert") {
            content.names.append(name)
            do throws(SettingsError) {
                guard Alert.isName(name) else {
                    throw table.error(nil, Alert.nameRule)
                }
                try table.finish(known: AlertField.allCases.map(\.rawValue) + [Self.added])
                var alert = try Alert(name, table) { () throws(SettingsError) in Self.usualCurrency }
                alert.added = try table.text(Self.added)
                content.alerts.append(alert)
            } catch {
                content.mistakes.append(error)
            }
        }
        return content
    }

    /// The text without the lines from a table's header to the next one's, but with the comments and empty lines before that.
    private func without(_ name: String, in text: String) throws(SettingsError) -> String {
        // Of bytes: "\r\n" is one character.
        let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map(Substring.init)
        guard let first = lines.firstIndex(where: { header($0) == ["alert", name] }) else {
            throw SettingsError("\(path): '\(name)' has no header [alert.\(name)] of its own: use an editor")
        }
        var end = lines[(first + 1)...].firstIndex { header($0) != nil } ?? lines.endIndex
        let isEmpty = { (line: Substring) in line.allSatisfy(\.isWhitespace) }
        while end > first + 1, isEmpty(lines[end - 1]) || lines[end - 1].first(where: { !$0.isWhitespace }) == "#" {
            end -= 1
        }
        // Of the empty lines before and behind it, one goes.
        var start = first
        if start > 0, isEmpty(lines[start - 1]), end == lines.endIndex || isEmpty(lines[end]) { start -= 1 }
        return (lines[..<start] + lines[end...]).joined(separator: "\n")
    }

    /// The names in a line that is a table's header; `nil` for any other line.
    private func header(_ line: Substring) -> [String]? {
        guard line.first(where: { !$0.isWhitespace }) == "[" else { return nil }
        do throws(SettingsError) {
            return try ConfigurationFile(text: String(line), path: path).values.first?.names
        } catch {
            return nil
        }
    }
}

extension ConfigurationTable: AlertFields {
    func isSet(_ field: AlertField) throws(SettingsError) -> Bool {
        field.isFlag ? try flag(field.rawValue) ?? false : has(field.rawValue)
    }

    func value<Value>(
        _ field: AlertField, _ read: (String) throws(UsageError) -> Value
    ) throws(SettingsError) -> Value? {
        guard let word = try word(field.rawValue) else { return nil }
        do throws(UsageError) {
            return try read(word)
        } catch {
            throw failure(field, error.message)
        }
    }

    func command() throws(SettingsError) -> [String] { try list(AlertField.exec.rawValue) }

    func failure(_ field: AlertField?, _ problem: String) -> SettingsError { error(field?.rawValue, problem) }
}
