import CLinux
import Glibc

/// The lines printed to standard output, and whether its reader is behind. A pipe holds 64 KiB: without a limit, a slow reader would get
/// hundreds of old prices before the newest.
struct PrintedLines {
    /// The most lines of one currency that may be unread before the next one waits.
    static let mostUnread = 10
    /// The least that the kernel adds to each write to a Unix-domain socket, in bytes.
    private static let overhead = 576

    private let most: Int
    /// What standard output is: S_IFSOCK, S_IFIFO or another kind of file, where nobody is behind.
    private let kind: mode_t
    /// The sizes of the last lines, the oldest first.
    private var sizes: [Int] = []

    init(currencies: Int) {
        most = Self.mostUnread * currencies
        var status = stat()
        kind = fstat(STDOUT_FILENO, &status) == 0 ? status.st_mode & S_IFMT : 0
    }

    mutating func put(_ line: String) {
        Output.line(line)
        sizes.append(line.utf8.count + 1 + (kind == S_IFSOCK ? Self.overhead : 0))
        if sizes.count > most { sizes.removeFirst() }
    }

    /// Whether ``mostUnread`` lines of each currency wait in a pipe or a socket.
    var isReaderBehind: Bool {
        (kind == S_IFSOCK || kind == S_IFIFO) && sizes.count == most
            && Int(clinux_unread(STDOUT_FILENO)) >= sizes.reduce(0, +)
    }
}
