import Glibc

/// Where a client looks for the daemon's socket.
package enum SocketSearch {
    /// The environment variable that names the socket.
    package static let variable = "BTC_PRICED_SOCKET"

    /// The paths to try, in order, and why another one is not tried.
    package struct Paths: Sendable, Hashable {
        package var paths: [String]
        /// `/run/user/1000 belongs to user 1000`; `nil` if none is left out.
        package var skipped: String?
    }

    /// A path that the user names is the only one: another daemon's price is not what was requested.
    /// - Parameter named: The path from the command line.
    package static func paths(named: String?, environment: (String) -> String?, uid: UInt32) -> Paths {
        if let named { return Paths(paths: [named]) }
        if let named = environment(variable), !named.isEmpty { return Paths(paths: [named]) }
        let own = UserDirectory.candidates(environment: environment, uid: uid)
        let usable = own.filter { $0.owner == nil || $0.owner == uid }
        let skipped = own.first { $0.owner != nil && $0.owner != uid }
        return Paths(
            paths: usable.map { "\($0.directory)/\(Product.socketName)" } + [Product.systemSocket],
            skipped: skipped.map { "\($0.checked) belongs to user \($0.owner ?? 0), and is not used" })
    }

    /// Returns a function that finds the socket, for long-running programs. It searches at every call, because the daemon may start later.
    /// The parameters are those of ``paths(named:environment:uid:)``.
    package static func finder(
        named: String?, environment: @escaping @Sendable (String) -> String?, uid: UInt32
    ) -> @Sendable () -> String {
        return {
            let paths = paths(named: named, environment: environment, uid: uid).paths
            // An error other than absence is that of the daemon that was looked for.
            return paths.first { access($0, F_OK) == 0 || ![ENOENT, ENOTDIR].contains(errno) } ?? paths.last
                ?? Product.systemSocket
        }
    }
}
