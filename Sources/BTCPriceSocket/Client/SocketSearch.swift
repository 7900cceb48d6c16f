import Glibc

/// Where a client looks for the daemon's socket.
package enum SocketSearch {
    /// The environment variable that names the socket.
    package static let variable = "BTC_PRICED_SOCKET"

    /// The paths to try, in order. A path that the user names is the only one: another daemon's price is not what was requested.
    /// - Parameter named: The path from the command line.
    package static func paths(named: String?, environment: (String) -> String?, uid: UInt32) -> [String] {
        if let named { return [named] }
        if let named = environment(variable), !named.isEmpty { return [named] }
        return [userSocket(environment: environment, uid: uid), Product.systemSocket].compactMap { $0 }
    }

    /// Returns a function that finds the socket, for long-running programs. It searches at every call, because the daemon may start later.
    /// The parameters are those of ``paths(named:environment:uid:)``.
    package static func finder(
        named: String?, environment: (String) -> String?, uid: UInt32
    ) -> @Sendable () -> String {
        let paths = paths(named: named, environment: environment, uid: uid)
        return { paths.first { access($0, F_OK) == 0 } ?? paths.last ?? Product.systemSocket }
    }

    /// The socket of the user's own daemon: in `XDG_RUNTIME_DIR`, otherwise in a folder in `/tmp` if the user owns it.
    private static func userSocket(environment: (String) -> String?, uid: UInt32) -> String? {
        if let folder = environment("XDG_RUNTIME_DIR"), folder.hasPrefix("/") {
            return "\(folder)/btc-priced/\(Product.socketName)"
        }
        let folder = "/tmp/btc-priced-\(uid)"
        var status = stat()
        let isOwn = lstat(folder, &status) == 0 && status.st_uid == uid && status.st_mode & S_IFMT == S_IFDIR
        return isOwn ? "\(folder)/\(Product.socketName)" : nil
    }
}
