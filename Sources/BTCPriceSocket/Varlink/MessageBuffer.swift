import Glibc

/// Splits a stream of bytes into messages at the NULs.
package struct MessageBuffer: Sendable {
    private var bytes: ArraySlice<UInt8> = []
    /// How many leading bytes are known to hold no NUL.
    private var scanned = 0
    /// Whether ``bytes`` is still the caller's memory.
    private var isShared = false
    private let limit: Int

    /// - Parameter limit: The longest message, in bytes without its NUL.
    package init(limit: Int) {
        self.limit = limit
    }

    /// The error that ``next()`` throws for a message longer than the limit.
    package var tooLong: MessageError { MessageError(reason: "a message longer than \(limit) bytes") }

    /// Bytes received and not yet returned.
    package var count: Int { bytes.count }

    /// The memory that the buffer takes, at most twice the bytes in it after ``detach()``.
    package var heldBytes: Int { isShared ? bytes.count : bytes.endIndex }

    /// Appends received bytes. Whole messages are not copied; see ``detach()``.
    package mutating func append(_ received: ArraySlice<UInt8>) {
        if bytes.isEmpty {
            (bytes, isShared) = (received, true)
        } else {
            bytes.append(contentsOf: received)
        }
    }

    /// The next complete message, without its NUL; `nil` if there is none.
    /// - Throws: ``MessageError`` if a message is longer than the limit. The stream can't be used after that.
    package mutating func next() throws(MessageError) -> ArraySlice<UInt8>? {
        let start = bytes.startIndex
        guard let end = firstNUL() else {
            // Not even an empty slice of the received bytes is kept.
            if bytes.isEmpty { (bytes, isShared) = ([], false) }
            scanned = bytes.count
            guard count <= limit else { throw tooLong }
            return nil
        }
        guard end - start <= limit else { throw tooLong }
        let message = bytes[..<end]
        bytes = bytes[(end + 1)...]
        scanned = 0
        return message
    }

    private func firstNUL() -> Int? {
        bytes.withUnsafeBytes { buffer in
            guard let base = buffer.baseAddress else { return nil }
            return memchr(base + scanned, 0, buffer.count - scanned).map {
                bytes.startIndex + ($0 - UnsafeMutableRawPointer(mutating: base))
            }
        }
    }

    /// Copies the remaining bytes if they are in the caller's memory, so that it can reuse that, or if most of those before them were
    /// returned.
    package mutating func detach() {
        if isShared || bytes.startIndex >= bytes.count {
            (bytes, isShared) = (bytes.isEmpty ? [] : Array(bytes)[...], false)
        }
    }
}
