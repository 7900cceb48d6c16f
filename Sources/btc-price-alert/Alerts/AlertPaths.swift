import BTCPriceCore
import Glibc

/// Where the alerts and their state are: a user's own, or the system's.
struct AlertPaths: Sendable {
    static let unit = "btc-price-alert.service"

    let file: AlertFile
    /// The directory of the state.
    let state: String
    let isSystem: Bool

    /// - Parameter environment: `XDG_CONFIG_HOME` and `XDG_STATE_HOME` count if they are absolute (XDG Base Directory Specification).
    init(isSystem: Bool, environment: [String: String]) {
        self.isSystem = isSystem
        if isSystem {
            file = AlertFile(path: "/etc/btc-priced/alerts.toml", isRoots: true)
            state = "/var/lib/btc-price-alert"
            return
        }
        let home = environment["HOME"] ?? getpwuid(getuid()).map { String(cString: $0.pointee.pw_dir) } ?? "/"
        func base(_ variable: String, _ usual: String) -> String {
            environment[variable].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "\(home)/\(usual)"
        }
        file = AlertFile(path: "\(base("XDG_CONFIG_HOME", ".config"))/btc-priced/alerts.toml", isRoots: false)
        state = "\(base("XDG_STATE_HOME", ".local/state"))/btc-priced/alerts"
    }

    var records: String { "\(state)/state.json" }
    /// A file in this directory has the name of an alert that is paused. The system's is root's: the service can't lead root elsewhere.
    var paused: String { isSystem ? "/etc/btc-priced/alerts.paused" : "\(state)/paused" }
    /// The permissions of what the service keeps.
    var modes: (directory: UInt32, file: UInt32) { isSystem ? (0o755, 0o644) : (0o700, 0o600) }

    /// `--user`, or nothing.
    var manager: [String] { isSystem ? [] : ["--user"] }
    /// How to see the service's messages.
    var journal: String { "journalctl \(isSystem ? "-u" : "--user -u") \(Self.unit)" }

    /// Makes a directory, and those that it is in.
    /// - Returns: Why there is none; `nil` if there is.
    static func make(_ directory: String, mode: mode_t) -> String? {
        if mkdir(directory, mode) == 0 || errno == EEXIST { return nil }
        if errno == ENOENT, let end = directory.lastIndex(of: "/"), end > directory.startIndex {
            if let reason = make(String(directory[..<end]), mode: mode) { return reason }
            if mkdir(directory, mode) == 0 || errno == EEXIST { return nil }
        }
        return "\(directory): \(String(cString: strerror(errno)))"
    }

    /// Whether the service runs: it holds the lock. `nil` if this user can't see it.
    var isServed: Bool? {
        let descriptor = open("\(state)/lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return errno == EACCES ? nil : false }
        defer { close(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0
    }
}
