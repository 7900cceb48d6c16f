import Glibc
package import Logging

/// Writes log entries to standard error, one line each: for a terminal, and for a daemon that runs without systemd.
package struct StandardErrorLogHandler: LogHandler {
    package var logLevel: Logger.Level = .info
    /// Not shown: lines are for people, and the message is complete without it.
    package var metadata: Logger.Metadata = [:]

    private let identifier: String

    /// - Parameter identifier: The prefix of every line.
    package init(identifier: String) {
        self.identifier = identifier
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Writes one line, without waiting for it.
    package func log(event: LogEvent) {
        let word = event.level >= .warning ? "\(event.level): " : ""
        let text = "\(identifier): \(word)\(event.message)"
        Outbox.log.send { dropped in
            let line = Array("\(text)\(JournalLogHandler.note(dropped))\n".utf8)
            // If standard error is closed, the error can't be reported anywhere.
            _ = write(STDERR_FILENO, line, line.count)
        }
    }
}
