import Glibc

/// The address of a Unix-domain socket in the file system (unix(7)).
package struct UnixSocketAddress: Sendable {
    /// The longest path, bytes: `sun_path` holds 108 with its NUL.
    package static let longestPath = 107

    private let path: String

    /// - Parameter path: The socket's file. The result is `nil` if it is empty, longer than ``longestPath`` or contains a NUL.
    package init?(path: String) {
        guard !path.isEmpty, path.utf8.count <= Self.longestPath, !path.utf8.contains(0) else { return nil }
        self.path = path
    }

    /// Calls `body` with the address as bind(2) and connect(2) take it.
    func withSocketAddress(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
