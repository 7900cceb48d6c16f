import NIOCore

/// Counts the bytes of a response before they are decoded. NIOHTTP1 bounds headers, and neither a reason phrase nor a body; and it does not say
/// where a response ends, so bytes behind it would be taken for the start of the next one.
final class ResponseMeter: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The longest head, bytes.
    static let longestHead = 16 * 1024

    /// Bytes up to the end of the head, the empty line included.
    private var head = 0
    /// Bytes behind the head.
    private(set) var body = 0
    private var hasHead = false
    /// The last four bytes.
    private var last: UInt32 = 0

    /// Whether nothing came yet.
    var isEmpty: Bool { head == 0 }

    /// Whether the last bytes are the end of a head or of a chunked body.
    var endsWithEmptyLine: Bool { last == Self.emptyLine }

    /// CR LF CR LF.
    private static let emptyLine: UInt32 = 0x0D0A_0D0A

    /// Counts a new response from now on.
    func reset() {
        (head, body, hasHead, last) = (0, 0, false, 0)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data).readableBytesView
        for byte in bytes {
            last = last << 8 | UInt32(byte)
            if hasHead { body += 1 } else { head += 1 }
            if last == Self.emptyLine { hasHead = true }
        }
        if head > Self.longestHead {
            context.fireErrorCaught(HTTPError.malformed("a head of more than \(Self.longestHead) bytes"))
        } else if body > HTTPResponseCollector.longestBody + Self.longestHead {
            // Room for the framing of chunks.
            context.fireErrorCaught(HTTPError.tooLong(limit: HTTPResponseCollector.longestBody))
        } else {
            context.fireChannelRead(data)
        }
    }
}
