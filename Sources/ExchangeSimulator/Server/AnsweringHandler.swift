import NIOCore
import NIOHTTP1

/// Answers each request of a connection when it is complete.
final class AnsweringHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart
    typealias Response = (status: HTTPResponseStatus, headers: HTTPHeaders, body: ByteBuffer)

    private let answer: @Sendable (HTTPRequestHead, ByteBuffer) -> Response
    private var head: HTTPRequestHead?
    private var body = ByteBuffer()

    init(_ answer: @escaping @Sendable (HTTPRequestHead, ByteBuffer) -> Response) {
        self.answer = answer
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            body.clear()
        case .body(var part): body.writeBuffer(&part)
        case .end:
            guard let head else { return }
            let (status, headers, body) = answer(head, body)
            context.write(
                wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: status, headers: headers))),
                promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
