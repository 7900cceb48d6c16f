import Glibc

/// A file that a user named can't be read.
package struct FileFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The path, and the reason.
    package let description: String
}

/// The content of a regular file that a user named.
/// - Parameters:
///   - mebibytes: The longest content.
///   - mayBePipe: Whether it may also be a pipe, such as `/dev/stdin`, which is waited for.
package func fileContent(
    _ path: String, atMost mebibytes: Int, mayBePipe: Bool = false
) throws(FileFailure) -> [UInt8] {
    // Non-blocking: a FIFO without a writer would block the start forever.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | (mayBePipe ? 0 : O_NONBLOCK))
    guard descriptor >= 0 else { throw FileFailure(description: "\(path): \(String(cString: strerror(errno)))") }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, mayBePipe || status.st_mode & S_IFMT == S_IFREG else {
        throw FileFailure(description: "\(path): not a regular file")
    }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
        let count = read(descriptor, &buffer, buffer.count)
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { throw FileFailure(description: "\(path): \(String(cString: strerror(errno)))") }
        if count == 0 { return bytes }
        bytes += buffer[..<count]
        guard bytes.count <= mebibytes << 20 else {
            throw FileFailure(description: "\(path): longer than \(mebibytes) MiB")
        }
    }
}
