import BTCPriceCore
import Glibc

/// The few file operations that a store needs, each whole or not at all.
enum FileSystem {
    /// The largest file that is read, bytes. Ours has less than two thousand.
    static let largestFile = 64 * 1024

    /// The whole file; `nil` where there is none.
    static func read(_ path: String, atMost limit: Int = largestFile) throws(PriceStoreError) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        if descriptor < 0 {
            let number = errno
            if number == ENOENT { return nil }
            throw .unreadable(path: path, reason: systemError(number))
        }
        defer { close(descriptor) }
        guard isRegular(descriptor) else { throw .unreadable(path: path, reason: "not a regular file") }
        var bytes = [UInt8](repeating: 0, count: limit)
        var filled = 0
        while filled < bytes.count {
            let count = bytes.withUnsafeMutableBytes { buffer in
                Glibc.read(descriptor, buffer.baseAddress?.advanced(by: filled), buffer.count - filled)
            }
            if count < 0, errno == EINTR { continue }
            if count < 0 { throw .unreadable(path: path, reason: systemError(errno)) }
            if count == 0 { break }
            filled += count
        }
        return Array(bytes[..<filled])
    }

    /// Replaces the file in one step: whoever reads it, after a kill too, finds the old content or the new one, whole.
    /// - Parameter sync: Whether it also has to outlive a power cut, which costs a write to the disk.
    static func replace(_ path: String, with bytes: [UInt8], sync: Bool) throws(PriceStoreError) {
        let temporary = path + ".new"
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
        var descriptor = open(temporary, flags, 0o600)
        if descriptor < 0, errno == EEXIST, unlink(temporary) == 0 {
            // What a kill left there, or what somebody put there: a FIFO would block us for ever.
            descriptor = open(temporary, flags, 0o600)
        }
        guard descriptor >= 0 else { throw .unwritable(path: path, reason: systemError(errno)) }
        var failure: Int32 = write(bytes, to: descriptor)
        if failure == 0, sync, fsync(descriptor) != 0 { failure = errno }
        if close(descriptor) != 0, failure == 0 { failure = errno }
        if failure == 0, rename(temporary, path) != 0 { failure = errno }
        guard failure == 0 else {
            unlink(temporary)
            throw .unwritable(path: path, reason: systemError(failure))
        }
        if sync { syncFolder(of: path) }
    }

    /// Moves a damaged file out of the way, over the one before it.
    /// - Returns: Where it is now; `nil` where it could not be moved.
    static func setAside(_ path: String) -> String? {
        let aside = path + ".corrupt"
        return rename(path, aside) == 0 ? aside : nil
    }

    /// Whether a folder's content is gone after a boot: then what lies in it was written by this boot.
    ///
    /// Told by the type of the file system it lies on (proc_pid_mountinfo(5)); where that can't be had the answer is no.
    static func isVolatile(_ folder: String) -> Bool {
        var status = stat()
        guard stat(folder, &status) == 0, let mounts = try? read("/proc/self/mountinfo", atMost: 1 << 20) else {
            return false
        }
        // How glibc packs the two numbers into one (gnu_dev_major, makedev(3)).
        let (packed, low, high) = (UInt64(status.st_dev), UInt64(0xFF), UInt64(0xFFF))
        let device = "\((packed >> 8) & high | (packed >> 32) & ~high):\(packed & low | (packed >> 12) & ~low)"
        for line in String(decoding: mounts, as: UTF8.self).split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count > 2, fields[2] == device, let dash = fields.firstIndex(of: "-") else { continue }
            return fields.count > dash + 1 && ["tmpfs", "ramfs"].contains(fields[dash + 1])
        }
        return false
    }

    static func isRegular(_ descriptor: Int32) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    static func systemError(_ number: Int32) -> String {
        String(cString: strerror(number))
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.write(descriptor, buffer.baseAddress?.advanced(by: written), buffer.count - written)
            }
            if count < 0, errno == EINTR { continue }
            if count < 0 { return errno }
            written += count
        }
        return 0
    }

    /// The new name lies in the folder, so the folder has to reach the disk too (fsync(2)).
    private static func syncFolder(of path: String) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let descriptor = open(folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}
