import CLinux
import Glibc

/// The socket can't be used.
package struct SocketError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong and what to do.
    package let description: String
}

/// A listening Unix-domain socket, created here or passed by systemd.
package struct ListeningSocket: Sendable {
    let descriptor: Int32
    /// The file to remove at the end; `nil` if the socket was inherited.
    let path: String?
    /// The file's device and inode.
    private let file: [UInt64]?

    /// Takes over a socket that is already listening. Its file is never removed.
    package init(inherited descriptor: Int32) {
        self.descriptor = descriptor
        path = nil
        file = nil
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    /// Listens at `path`, for every local user. A dead daemon's socket file is replaced atomically, so that clients always find one.
    ///
    /// The caller holds the state directory's lock: no other btc-priced uses the path.
    /// - Throws: ``SocketError`` if the path is too long, is already in use, or can't be written.
    package init(path: String) throws(SocketError) {
        // The name contains the process ID, so that two daemons that start at the same time use different files.
        let temporary = "\(path).\(getpid())"
        guard let address = UnixSocketAddress(path: temporary), let final = UnixSocketAddress(path: path) else {
            let most = UnixSocketAddress.longestPath - (temporary.utf8.count - path.utf8.count)
            throw SocketError(
                description: "the socket's path is too long (\(path.utf8.count) bytes, at most \(most)): \(path)")
        }
        var status = stat()
        if lstat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFSOCK else {
                throw SocketError(description: "\(path) exists and is not a socket: move it away, or set socket.path")
            }
            guard !Self.somebodyAnswers(at: final) else {
                throw SocketError(description: "another program listens at \(path): stop it, or set socket.path")
            }
        }
        unlink(temporary)
        let descriptor = clinux_unix_socket()
        guard descriptor >= 0 else { throw SocketError(description: "cannot make a socket: \(systemError(errno))") }
        let isListening =
            address.withSocketAddress { bind(descriptor, $0, $1) } == 0
            && chmod(temporary, 0o666) == 0 && listen(descriptor, 4096) == 0 && rename(temporary, path) == 0
        guard isListening else {
            let reason = systemError(errno)
            close(descriptor)
            unlink(temporary)
            throw SocketError(description: "cannot listen at \(path): \(reason)")
        }
        self.descriptor = descriptor
        self.path = path
        file = Self.identity(of: path)
    }

    /// Whether clients can find it: its file is unchanged. Always true for an inherited socket.
    package var isInPlace: Bool { path == nil || file == Self.identity(of: path ?? "") }

    func shutDown() {
        // Do not remove a file that another program has put there.
        if let path, file == Self.identity(of: path) { unlink(path) }
        close(descriptor)
    }

    private static func identity(of path: String) -> [UInt64]? {
        var status = stat()
        return lstat(path, &status) == 0 ? [UInt64(status.st_dev), UInt64(status.st_ino)] : nil
    }

    private static func somebodyAnswers(at address: UnixSocketAddress) -> Bool {
        let probe = clinux_unix_socket()
        guard probe >= 0 else { return false }
        defer { close(probe) }
        // EAGAIN: the backlog is full, so a program is listening.
        return address.withSocketAddress { connect(probe, $0, $1) } == 0 || errno == EAGAIN
    }
}

func systemError(_ number: Int32) -> String {
    String(cString: strerror(number))
}
