import CLinux
import Glibc
import Varlink

/// The socket can't be used.
package struct SocketError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong and what to do.
    package let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// A Unix-domain socket that listens, of our own or handed over by systemd.
package struct ListeningSocket: Sendable {
    let descriptor: Int32
    /// The file to remove at the end; `nil` where it is not ours.
    let path: String?
    /// Which file that was.
    private let file: [UInt64]?

    /// Takes over a socket that listens already. Its file is never removed.
    package init(inherited descriptor: Int32) {
        self.descriptor = descriptor
        path = nil
        file = nil
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    /// Listens at `path`, for every local user. A socket file that a dead daemon left there is replaced in one step, so
    /// that there is no moment in which a client finds none.
    ///
    /// The caller holds the state directory's lock: no other daemon of ours uses the path.
    /// - Throws: ``SocketError`` if the path is too long, holds something else, or can't be written.
    package init(path: String) throws(SocketError) {
        // By the process, so that two daemons that start at once don't take each other's.
        let temporary = "\(path).\(getpid())"
        guard let address = UnixSocketAddress(path: temporary), let final = UnixSocketAddress(path: path) else {
            let most = UnixSocketAddress.longestPath - (temporary.utf8.count - path.utf8.count)
            throw SocketError("the socket's path is too long (\(path.utf8.count) bytes, at most \(most)): \(path)")
        }
        var status = stat()
        if lstat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFSOCK else {
                throw SocketError("\(path) exists and is not a socket: move it away, or set socket.path")
            }
            guard !Self.somebodyAnswers(at: final) else {
                throw SocketError("another program listens at \(path): stop it, or set socket.path")
            }
        }
        unlink(temporary)
        let descriptor = clinux_unix_socket()
        guard descriptor >= 0 else { throw SocketError("cannot make a socket: \(systemError(errno))") }
        let isListening =
            address.withSocketAddress { bind(descriptor, $0, $1) } == 0
            && chmod(temporary, 0o666) == 0 && listen(descriptor, 4096) == 0 && rename(temporary, path) == 0
        guard isListening else {
            let reason = systemError(errno)
            close(descriptor)
            unlink(temporary)
            throw SocketError("cannot listen at \(path): \(reason)")
        }
        self.descriptor = descriptor
        self.path = path
        file = Self.identity(of: path)
    }

    /// Whether clients find it: its file is where it was put. Always, for one that was taken over.
    package var isInPlace: Bool { path == nil || file == Self.identity(of: path ?? "") }

    func shutDown() {
        // Not one that somebody else has put there since.
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
        // EAGAIN: its backlog is full, so it is alive.
        return address.withSocketAddress { connect(probe, $0, $1) } == 0 || errno == EAGAIN
    }
}

/// The system's word for an error number.
func systemError(_ number: Int32) -> String {
    String(cString: strerror(number))
}
