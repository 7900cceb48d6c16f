/// Cuts a stream of bytes into messages at their NULs.
public struct MessageBuffer: Sendable {
    private var bytes: [UInt8] = []
    private var start = 0
    private var scanned = 0
    private let limit: Int

    /// The most room that is kept while there is nothing in it, bytes.
    private static let longestKept = 1024

    /// - Parameter limit: The longest message, in bytes without its NUL.
    public init(limit: Int) {
        self.limit = limit
    }

    /// What ``next()`` throws for a message that is longer than the limit.
    public var tooLong: MessageError { MessageError("a message longer than \(limit) bytes") }

    /// Bytes received and not yet handed out.
    public var count: Int { bytes.count - start }

    /// Takes in what was received.
    public mutating func append(_ received: some Collection<UInt8>) {
        if start == bytes.count {
            bytes.removeAll(keepingCapacity: true)
            (start, scanned) = (0, 0)
        } else if start > 4096, start > bytes.count / 2 {
            bytes.removeFirst(start)
            scanned -= start
            start = 0
        }
        bytes.append(contentsOf: received)
    }

    /// The next whole message, without its NUL.
    /// - Throws: ``MessageError`` once a message is longer than the limit; the stream can't be used after that.
    public mutating func next() throws(MessageError) -> ArraySlice<UInt8>? {
        guard let end = bytes[scanned...].firstIndex(of: 0) else {
            // A client that waits holds no room for what it once sent.
            if start == bytes.count, bytes.capacity > Self.longestKept { (bytes, start) = ([], 0) }
            scanned = bytes.count
            guard count <= limit else { throw tooLong }
            return nil
        }
        guard end - start <= limit else { throw tooLong }
        defer {
            start = end + 1
            scanned = start
        }
        return bytes[start..<end]
    }
}
