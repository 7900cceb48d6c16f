import BTCPriceNetworking
import BTCPriceSocket
import Configuration
import Files
import Glibc

/// The directories for the daemon's files.
struct Directories: Sendable, Hashable {
    /// Survives a reboot.
    let state: String
    /// Deleted by a reboot: holds the socket and the newest quote.
    let runtime: String

    /// The default directories: those made by systemd, else the system's for root, else the user's own (XDG Base Directory
    /// Specification, ``UserDirectory``).
    static func standard(environment: [String: String], uid: UInt32) -> (state: String?, runtime: String) {
        func made(_ name: String) -> String? {
            // systemd lists several if the unit names several; the first one is used.
            environment[name]?.split(separator: ":").first.map(String.init)
        }
        if uid == 0 {
            return (made("STATE_DIRECTORY") ?? Product.systemState, made("RUNTIME_DIRECTORY") ?? Product.systemRuntime)
        }
        let state = UserDirectory.folder("XDG_STATE_HOME", ".local/state", environment)
        let runtime = UserDirectory.standard(environment: { environment[$0] }, uid: uid)
        return (made("STATE_DIRECTORY") ?? state, made("RUNTIME_DIRECTORY") ?? runtime)
    }

    /// The default path of the configuration file.
    static func configurationPath(environment: [String: String], uid: UInt32) -> String? {
        // A systemd service uses the system's file, whichever user it runs as.
        if uid == 0 || environment["STATE_DIRECTORY"] != nil { return ConfigurationFile.systemPath }
        return UserDirectory.folder("XDG_CONFIG_HOME", ".config", environment).map { "\($0)/config.toml" }
    }

    /// Whether there is a file. A file that can't be seen is an error and not absence: its settings would be forgotten without a word.
    /// - Throws: ``SettingsError``, also for a link to nothing.
    static func exists(_ path: String) throws(SettingsError) -> Bool {
        var status = stat()
        if stat(path, &status) == 0 { return true }
        let number = errno
        // A file in the place of a directory, such as HOME=/dev/null, has none in it.
        if number == ENOTDIR { return false }
        guard number == ENOENT else { throw SettingsError("\(path): \(String(cString: strerror(number)))") }
        if lstat(path, &status) == 0 { throw SettingsError("\(path): it is a link to a file that does not exist") }
        guard errno == ENOENT else { throw SettingsError("\(path): \(String(cString: strerror(errno)))") }
        return false
    }

    /// Creates both. The runtime directory is required; the state directory only keeps the price over a reboot.
    /// - Returns: The error of the state directory, if any.
    /// - Throws: ``StartFailure`` if the runtime directory can't be used, or is the state directory too.
    func make() throws(StartFailure) -> String? {
        try Self.make(runtime)
        if runtime == UserDirectory.shared(uid: getuid()) { try Self.takeForOneself(runtime) }
        do throws(StartFailure) {
            try Self.make(state)
        } catch {
            return error.description
        }
        guard !Self.isSame(state, runtime) else {
            throw StartFailure(
                description:
                    "state.directory (\(state)) and runtime.directory (\(runtime)) are the same folder: each keeps a copy of the last price, so set two different directories"
            )
        }
        return nil
    }

    /// Whether two paths lead to the same directory, with links resolved.
    private static func isSame(_ first: String, _ second: String) -> Bool {
        var (one, other) = (stat(), stat())
        guard stat(first, &one) == 0, stat(second, &other) == 0 else { return false }
        return one.st_dev == other.st_dev && one.st_ino == other.st_ino
    }

    private static func make(_ path: String) throws(StartFailure) {
        if let reason = FileSystem.makeDirectory(path, mode: 0o755) {
            throw StartFailure(description: "cannot make \(reason)")
        }
    }

    /// Checks the owner of a directory in a shared place, where another user may have created the name or a link.
    private static func takeForOneself(_ path: String) throws(StartFailure) {
        var status = stat()
        let isOurs = lstat(path, &status) == 0 && status.st_uid == getuid() && status.st_mode & S_IFMT == S_IFDIR
        guard isOurs, chmod(path, 0o700) == 0 else {
            throw StartFailure(
                description:
                    "\(path) belongs to somebody else: set XDG_RUNTIME_DIR, or runtime.directory, to a place of your own"
            )
        }
    }
}

struct StartFailure: Error, CustomStringConvertible {
    /// What is wrong and what to do.
    let description: String
    /// Whether another start with the same configuration would fail the same way.
    var isConfiguration = false
}
