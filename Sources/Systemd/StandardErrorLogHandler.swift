import Glibc
package import Logging

/// Writes log entries to standard error, one line each: for a terminal, for a daemon that runs without systemd, and for a process that
/// ends at once. If standard error is the journal, each line begins with its priority (sd-daemon(3)); the stream itself names the unit.
/// A native entry names its process, and the journal may not find the unit of one that has ended.
package struct StandardErrorLogHandler: LogHandler {
    package var logLevel: Logger.Level = .info
    /// Not shown: lines are for people, and the message is complete without it.
    package var metadata: Logger.Metadata = [:]

    private let identifier: String
    private let isJournal: Bool

    /// - Parameter identifier: The prefix of every line that does not go to the journal.
    package init(identifier: String, environment: [String: String] = [:]) {
        self.identifier = identifier
        isJournal = JournalLogHandler.isConnected(environment: environment)
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Writes one line, without waiting for it.
    package func log(event: LogEvent) {
        let word = event.level >= .warning ? "\(event.level): " : ""
        let prefix = isJournal ? "<\(event.level.journalPriority)>" : "\(identifier): \(word)"
        let text = "\(prefix)\(event.message)"
        Outbox.log.send { dropped in
            let line = Array("\(text)\(JournalLogHandler.note(dropped))\n".utf8)
            // If standard error is closed, the error can't be reported anywhere.
            _ = write(STDERR_FILENO, line, line.count)
        }
    }
}
