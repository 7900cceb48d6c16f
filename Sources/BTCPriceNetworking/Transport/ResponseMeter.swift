import NIOCore

/// Counts the bytes of a response before they are decoded. NIOHTTP1 limits the headers, but not the reason phrase or the body. It
/// does not report where a response ends, so bytes after it would be taken for the start of the next one.
final class ResponseMeter: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The longest head, bytes.
    static let longestHead = 16 * 1024

    /// Bytes up to the end of the head, including the empty line.
    private var head = 0
    /// Bytes after the head.
    private(set) var body = 0
    private var hasHead = false
    /// The longest body of the response, bytes.
    private var longestBody = HTTPRequest.usualBody
    /// Whether a response is due. Bytes at any other time are an error.
    private var isExpecting = false
    /// The last four bytes.
    private var last: UInt32 = 0

    var isEmpty: Bool { head == 0 }

    /// Whether the last bytes are the end of a head or of a chunked body.
    var endsWithEmptyLine: Bool { last == Self.emptyLine }

    /// CR LF CR LF.
    private static let emptyLine: UInt32 = 0x0D0A_0D0A

    /// Starts counting a new response.
    /// - Parameter longestBody: Bytes.
    func reset(longestBody: Int = HTTPRequest.usualBody) {
        self.longestBody = longestBody
        (head, body, hasHead, last, isExpecting) = (0, 0, false, 0, true)
    }

    /// The response is complete, and none is due until ``reset()``.
    func complete() {
        isExpecting = false
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard isExpecting else { return context.fireErrorCaught(HTTPError.malformed("bytes without a request")) }
        let bytes = unwrapInboundIn(data).readableBytesView
        for byte in bytes {
            last = last << 8 | UInt32(byte)
            if hasHead { body += 1 } else { head += 1 }
            if last == Self.emptyLine { hasHead = true }
        }
        if head > Self.longestHead {
            context.fireErrorCaught(HTTPError.malformed("a head of more than \(Self.longestHead) bytes"))
        } else if body > longestBody + Self.longestHead {
            // The second term is room for the framing of chunks.
            context.fireErrorCaught(HTTPError.tooLong(limit: longestBody))
        } else {
            context.fireChannelRead(data)
        }
    }
}
