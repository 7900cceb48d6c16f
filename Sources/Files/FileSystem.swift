package import BTCPriceCore
import Glibc

/// The file operations of a program that keeps something. Each succeeds as a whole or has no effect.
package enum FileSystem {
    /// The largest file that is read, MiB.
    ///
    /// In `last-quote.json`, the largest file, a currency has about 600 bytes, and 200 more for each of its sources. A cooldown has at
    /// most 1,000. All 155 currencies have 0.2 MB with four sources each, and 1.4 MB with 40.
    package static let largestFile = 4

    /// The whole file; `nil` if it does not exist.
    package static func read(_ path: String) throws(PriceStoreError) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        if descriptor < 0 {
            let number = errno
            if number == ENOENT { return nil }
            throw .unreadable(path: path, reason: systemError(number))
        }
        defer { close(descriptor) }
        guard isRegular(descriptor) else { throw .unreadable(path: path, reason: "not a regular file") }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            if count < 0 { throw .unreadable(path: path, reason: systemError(errno)) }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            guard bytes.count <= largestFile << 20 else {
                throw .unreadable(path: path, reason: "longer than \(largestFile) MiB")
            }
        }
    }

    /// Replaces the file atomically: a reader finds the complete old or the complete new content, even after a kill.
    /// - Parameters:
    ///   - sync: Whether the content must also outlive a power cut, which needs a write to the disk.
    ///   - mode: The permissions of a new file.
    ///   - keepsOwner: Whether a file that is there keeps its permissions, and its owner if this user may set that.
    package static func replace(
        _ path: String, with bytes: [UInt8], sync: Bool, mode: UInt32 = 0o600, keepsOwner: Bool = false
    ) throws(PriceStoreError) {
        var before = stat()
        let isKept = keepsOwner && lstat(path, &before) == 0
        let temporary = path + ".new"
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
        var descriptor = open(temporary, flags, 0o600)
        if descriptor < 0, errno == EEXIST, unlink(temporary) == 0 {
            // Left by a kill, or created by another process: a FIFO would block forever.
            descriptor = open(temporary, flags, 0o600)
        }
        guard descriptor >= 0 else { throw .unwritable(path: path, reason: systemError(errno)) }
        var failure: Int32 = write(bytes, to: descriptor)
        if isKept { _ = fchown(descriptor, before.st_uid, before.st_gid) }
        if isKept || mode != 0o600 { _ = fchmod(descriptor, isKept ? before.st_mode & 0o777 : mode) }
        if failure == 0, sync, fsync(descriptor) != 0 { failure = errno }
        if close(descriptor) != 0, failure == 0 { failure = errno }
        if failure == 0, rename(temporary, path) != 0 { failure = errno }
        guard failure == 0 else {
            unlink(temporary)
            throw .unwritable(path: path, reason: systemError(failure))
        }
        if sync { syncFolder(of: path) }
    }

    /// Moves a damaged file out of the way, replacing the previous one of the same date.
    /// - Parameter date: Part of the new name, unless it is empty.
    /// - Returns: Its new path; `nil` if it could not be moved.
    package static func setAside(_ path: String, as date: String = "") -> String? {
        let aside = path + ".corrupt" + (date.isEmpty ? "" : "-\(date)")
        return rename(path, aside) == 0 ? aside : nil
    }

    /// The paths of the damaged files that have been moved out of the way, from the first to the last.
    package static func damagedFiles(of path: String) -> [String] {
        let (folder, start) = (String(path.dropLast(name(of: path).count)), name(of: path) + ".corrupt")
        let names = names(in: folder).filter { $0 == start || $0.hasPrefix(start + "-") && $0.hasSuffix("Z") }
        // A file's status changes when it is renamed (rename(2), stat(2)); the dates may be those of a wrong clock.
        let moved = { (path: String) -> (Int, Int) in
            var status = stat()
            return stat(path, &status) == 0 ? (status.st_ctim.tv_sec, status.st_ctim.tv_nsec) : (0, 0)
        }
        return names.map { (path: folder + $0, moved: moved(folder + $0)) }.sorted { $0.moved < $1.moved }.map(\.path)
    }

    /// Makes a directory, and those that it is in, unless they exist.
    /// - Returns: The path and the reason if that fails; `nil` if it exists now.
    package static func makeDirectory(_ path: String, mode: UInt32) -> String? {
        if mkdir(path, mode) == 0 || errno == EEXIST { return nil }
        if errno == ENOENT, let parent = path.lastIndex(of: "/"), parent != path.startIndex {
            if let reason = makeDirectory(String(path[..<parent]), mode: mode) { return reason }
            if mkdir(path, mode) == 0 || errno == EEXIST { return nil }
        }
        return "\(path): \(systemError(errno))"
    }

    /// The names in a folder, in no order; none if it can't be read.
    package static func names(in folder: String) -> [String] {
        guard let entries = opendir(folder) else { return [] }
        defer { closedir(entries) }
        var names: [String] = []
        while let entry = readdir(entries) {
            names.append(
                withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
        }
        return names
    }

    /// The last component of a path.
    package static func name(of path: String) -> String { path.split(separator: "/").last.map(String.init) ?? "" }

    /// Bytes; 0 if the file can't be read.
    package static func size(of path: String) -> Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : 0
    }

    /// The bytes that are free in the file system of a file.
    package static func room(for path: String) -> Int64 { FreeSpace(path).map { Int64(clamping: $0.bytes) } ?? 0 }

    /// Moves a file and replaces the one at the other path. If it can't be moved, that one is removed.
    package static func move(_ path: String, to other: String) {
        if rename(path, other) != 0 { unlink(other) }
    }

    package static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    package static func remove(_ path: String) {
        unlink(path)
    }

    /// Whether a reboot empties a folder. If so, its files were written during this boot.
    ///
    /// Determined by the type of the file system (proc_pid_mountinfo(5)); `false` if that is not available.
    package static func isVolatile(_ folder: String) -> Bool {
        var status = stat()
        guard stat(folder, &status) == 0, let mounts = try? read("/proc/self/mountinfo") else {
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

    package static func isRegular(_ descriptor: Int32) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    package static func systemError(_ number: Int32) -> String {
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

    /// Syncs the folder too, because it contains the new name (fsync(2)).
    private static func syncFolder(of path: String) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let descriptor = open(folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}

/// What other users than root may still write to the file system of a file or directory.
package struct FreeSpace: Sendable {
    package let bytes: UInt64
    /// How many more files can be made; `nil` if the file system has no such limit.
    package let files: UInt64?
    /// Whether it is mounted so that it can only be read.
    package let isReadOnly: Bool

    /// - Returns: `nil` if the path can't be seen; errno(3) has the reason.
    package init?(_ path: String) {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        // Some file systems state an absurd number for "without a limit".
        let (bytes, isAbove) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        self.bytes = isAbove ? .max : bytes
        files = status.f_files > 0 ? UInt64(status.f_favail) : nil
        isReadOnly = status.f_flag & UInt(ST_RDONLY) != 0
    }
}
