import CSystemd
import Glibc
package import Logging

/// Writes log entries to the journal in its native format (sd_journal_sendv(3)): priority, message, and each metadata value as its
/// own field, so that `journalctl BTC_SOURCE=binance` works.
package struct JournalLogHandler: LogHandler {
    package var logLevel: Logger.Level = .info
    package var metadata: Logger.Metadata = [:]

    private let identifier: String

    /// - Parameter identifier: `SYSLOG_IDENTIFIER`.
    package init(identifier: String) {
        self.identifier = identifier
    }

    /// The handler for a service: for the journal if standard error is the journal, otherwise for standard error.
    /// - Parameter identifier: `SYSLOG_IDENTIFIER`, or the prefix of every line.
    package static func orStandardError(identifier: String, environment: [String: String]) -> any LogHandler {
        isConnected(environment: environment)
            ? JournalLogHandler(identifier: identifier) : StandardErrorLogHandler(identifier: identifier)
    }

    /// Whether standard error is the journal and not redirected: `$JOURNAL_STREAM` holds its device and inode (systemd.exec(5)).
    package static func isConnected(environment: [String: String]) -> Bool {
        guard let stream = environment["JOURNAL_STREAM"] else { return false }
        var status = stat()
        guard fstat(STDERR_FILENO, &status) == 0 else { return false }
        return stream == "\(status.st_dev):\(status.st_ino)"
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Writes one entry, without waiting for it.
    package func log(event: LogEvent) {
        var fields = ["PRIORITY=\(event.level.journalPriority)", "SYSLOG_IDENTIFIER=\(identifier)"]
        for (key, value) in metadata.merging(event.metadata ?? [:], uniquingKeysWith: { $1 }) {
            fields.append("\(Self.fieldName(key))=\(value)")
        }
        let (message, others) = ("MESSAGE=\(event.message)", fields)
        Outbox.log.send { dropped in
            var bytes = ([message + Self.note(dropped)] + others).map { Array($0.utf8) }
            Self.withVectors(&bytes[...], []) { vectors in
                // If the journal is full or missing, the error can't be reported anywhere.
                _ = sd_journal_sendv(vectors, Int32(vectors.count))
            }
        }
    }

    /// The note in an entry about dropped entries before it; empty if there are none.
    static func note(_ dropped: Int) -> String {
        dropped == 0 ? "" : " (\(dropped) earlier messages were lost because the log was not read in time)"
    }

    /// Field names are upper-case letters, digits and underscores: `BTC_…`, or the journal's `MESSAGE_ID` (systemd.journal-fields(7)).
    private static func fieldName(_ key: String) -> String {
        if key == "MESSAGE_ID" { return key }
        return "BTC_" + String(key.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
    }

    private static func withVectors(
        _ fields: inout ArraySlice<[UInt8]>, _ vectors: [iovec], _ body: ([iovec]) -> Void
    ) {
        guard var field = fields.popFirst() else { return body(vectors) }
        field.withUnsafeMutableBytes { buffer in
            withVectors(&fields, vectors + [iovec(iov_base: buffer.baseAddress, iov_len: buffer.count)], body)
        }
    }
}

extension Logger.Level {
    /// The syslog(3) priority. The journal has no finer level than debug.
    var journalPriority: Int {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}
