import Glibc

/// Cuts a stream of bytes into messages at their NULs.
package struct MessageBuffer: Sendable {
    private var bytes: ArraySlice<UInt8> = []
    /// How many of the bytes are known to hold no NUL.
    private var scanned = 0
    /// Whether the bytes are the caller's.
    private var isShared = false
    private let limit: Int

    /// - Parameter limit: The longest message, in bytes without its NUL.
    package init(limit: Int) {
        self.limit = limit
    }

    /// What ``next()`` throws for a message that is longer than the limit.
    package var tooLong: MessageError { MessageError("a message longer than \(limit) bytes") }

    /// Bytes received and not yet handed out.
    package var count: Int { bytes.count }

    /// Takes in what was received. Nothing is copied while whole messages come; see ``detach()``.
    package mutating func append(_ received: ArraySlice<UInt8>) {
        if bytes.isEmpty {
            (bytes, isShared) = (received, true)
        } else {
            bytes.append(contentsOf: received)
        }
    }

    /// The next whole message, without its NUL.
    /// - Throws: ``MessageError`` once a message is longer than the limit; the stream can't be used after that.
    package mutating func next() throws(MessageError) -> ArraySlice<UInt8>? {
        let start = bytes.startIndex
        guard let end = firstNUL() else {
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

    /// Copies what is left of the received bytes, so that the caller can use their memory again.
    package mutating func detach() {
        if isShared || bytes.isEmpty { (bytes, isShared) = (bytes.isEmpty ? [] : Array(bytes)[...], false) }
    }
}
