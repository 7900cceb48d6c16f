import Glibc

/// The lock on the state directory: one daemon per directory.
///
/// The kernel releases it when the process ends, so it is never left behind.
package struct StateLock: ~Copyable, Sendable {
    /// Why the lock is not available.
    package enum Failure: Error, Sendable, Hashable {
        /// Another daemon holds it. `pid` is the process ID in the file; `nil` if it can't be read.
        case alreadyRunning(pid: Int32?)
        /// The file can't be opened or written: a full or read-only disk, another owner.
        case unusable(path: String, reason: String)
    }

    private let descriptor: Int32

    /// - Parameter directory: The state directory. Must exist.
    /// - Throws: ``Failure``.
    package init(directory: String) throws(Failure) {
        let path = "\(directory)/lock"
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else {
            throw .unusable(path: path, reason: FileSystem.systemError(errno))
        }
        guard FileSystem.isRegular(descriptor) else { throw .unusable(path: path, reason: "not a regular file") }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            var text = [UInt8](repeating: 0, count: 16)
            let count = Glibc.read(descriptor, &text, text.count)
            // The deinitialiser closes it.
            guard number == EWOULDBLOCK else {
                throw .unusable(path: path, reason: FileSystem.systemError(number))
            }
            let digits = text.prefix(max(0, count)).prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            throw .alreadyRunning(pid: Int32(String(decoding: digits, as: UTF8.self)))
        }
        // For a daemon that finds the lock taken. On a full disk the process ID is missing, but the lock is held.
        let text = Array("\(getpid())\n".utf8)
        _ = ftruncate(descriptor, 0)
        _ = Glibc.write(descriptor, text, text.count)
    }

    deinit {
        close(descriptor)
    }
}
