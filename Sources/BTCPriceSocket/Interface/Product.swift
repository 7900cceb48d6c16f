/// The product's names, version and socket.
package enum Product {
    /// The group whose members may change the daemon.
    package static let group = "btc-priced"
    package static let name = "btc-priced"
    package static let vendor = "The btc-priced project"
    /// The version of daemon and client, which is that of the Debian packages.
    package static let version = "1.0.0"
    /// The version with the commit, for `--version`. git-archive(1) writes the commit into the sources of a tarball (.gitattributes);
    /// in a checkout it is unknown.
    package static var fullVersion: String { commit.hasPrefix("$") ? version : "\(version) (\(commit.prefix(12)))" }
    private static let commit = "$Format:%H$"
    /// Where to find the documentation.
    package static let url = "man:btc-priced(8)"
    /// The socket's file name, in the runtime directory.
    package static let socketName = PriceInterface.name
    /// The directories of the system's daemon.
    package static let (systemState, systemRuntime) = ("/var/lib/btc-priced", "/run/btc-priced")
    package static let systemSocket = "\(systemRuntime)/\(socketName)"
}
