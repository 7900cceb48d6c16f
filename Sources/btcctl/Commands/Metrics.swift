import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import Glibc

enum Metrics {
    static let verb = Verb(
        command: Command(
            "metrics", "Print the metrics for Prometheus, or write them to a file.",
            details: """
                Examples:
                  btcctl metrics
                  btcctl metrics --write /var/lib/prometheus/node-exporter/btc-priced.prom

                The file is replaced as a whole, so that its reader never finds a part of it.

                Exit status: 0 with a response, 64 for a wrong command line, 69 if the daemon can't be reached, 74 if standard \
                output or the file can't be written.
                """, options: Option.daemon + [openMetrics, write]), run: run)

    private static let openMetrics = Option(
        "--openmetrics", "Print OpenMetrics 1.0 instead of the Prometheus text format.")
    private static let write = Option(
        "--write", value: "file", "Write to this file, which everybody can read, and print nothing.",
        completion: .files)

    private static func run(_ line: ParsedLine) throws(UsageError) -> Int32 {
        let daemon = try line.daemon()
        return Output.status { () throws(Complaint) in
            let families = try Connecting.withDaemon(daemon) { connection throws(ClientError) in
                try connection.getMetrics()
            }
            let text = MetricsText.text(families, as: line.has(openMetrics) ? .openMetrics : .prometheus)
            let file = line.text(write).flatMap { ["-", "/dev/stdout"].contains($0) ? nil : $0 }
            if let file {
                try replace(file, with: text)
            } else {
                Output.write(text, to: STDOUT_FILENO)
            }
            return ExitStatus.success
        }
    }

    /// Replaces a regular file atomically; of a link, the one that it names. The file keeps its mode; a new one is readable by all, since
    /// node_exporter runs as another user.
    private static func replace(_ named: String, with text: String) throws(Complaint) {
        var (path, mode, present) = (named, mode_t(0o644), stat())
        if let found = realpath(named, nil) {
            defer { free(found) }
            path = String(cString: found)
            guard stat(path, &present) == 0 else { throw .unwritable(path, String(cString: strerror(errno))) }
            // Otherwise a device would become a file.
            guard present.st_mode & S_IFMT == S_IFREG else { throw .unwritable(path, "it is not a regular file") }
            mode = present.st_mode & 0o777
        } else if lstat(named, &present) == 0 {
            // A link to a file that does not exist, or to a pipe (proc_pid_fd(5)): it must stay a link.
            throw .unwritable(named, "it is not a regular file, nor a link to one")
        }
        let temporary = "\(path).\(getpid())"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .unwritable(path, String(cString: strerror(errno))) }
        var error = fchmod(descriptor, mode) == 0 ? 0 : errno
        var bytes = Array(text.utf8)[...]
        while error == 0, !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 { bytes = bytes.dropFirst(count) } else if errno != EINTR { error = errno }
        }
        if error == 0, fsync(descriptor) != 0 { error = errno }
        close(descriptor)
        if error == 0, rename(temporary, path) != 0 { error = errno }
        guard error != 0 else { return }
        unlink(temporary)
        throw .unwritable(path, String(cString: strerror(error)))
    }
}
