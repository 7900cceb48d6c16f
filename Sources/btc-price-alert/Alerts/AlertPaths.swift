import BTCPriceSocket
import Glibc

/// Where the alerts and their state are: a user's own, or the system's.
struct AlertPaths: Sendable {
    static let unit = "btc-price-alert.service"

    let file: AlertFile
    /// The directory of the state.
    let state: String
    let isSystem: Bool

    init(isSystem: Bool, environment: [String: String]) {
        self.isSystem = isSystem
        if isSystem {
            file = AlertFile(path: "/etc/btc-priced/alerts.toml", isRoots: true)
            state = "/var/lib/btc-price-alert"
            return
        }
        var environment = environment
        if environment["HOME"] == nil, let user = getpwuid(getuid()) {
            environment["HOME"] = String(cString: user.pointee.pw_dir)
        }
        // Without a home, each use of them says what is wrong.
        let folder = { UserDirectory.folder($0, $1, environment) ?? "/dev/null" }
        file = AlertFile(path: "\(folder("XDG_CONFIG_HOME", ".config"))/alerts.toml", isRoots: false)
        state = "\(folder("XDG_STATE_HOME", ".local/state"))/alerts"
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

    /// Whether the service runs: it holds the lock. `nil` if this user can't see it.
    var isServed: Bool? {
        let descriptor = open("\(state)/lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return errno == EACCES ? nil : false }
        defer { close(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0
    }
}
