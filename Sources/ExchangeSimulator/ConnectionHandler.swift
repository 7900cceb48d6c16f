import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix

/// One connection to a venue: reads requests, does what the world says.
final class ConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let venue: VenueName
    private let world: World
    private var head: HTTPRequestHead?
    private var isDark = false

    init(venue: VenueName, world: World) {
        self.venue = venue
        self.world = world
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): self.head = head
        case .body: break
        case .end:
            guard let head, !isDark else { return }
            self.head = nil
            perform(
                world.judge(
                    VenueShape.Request(
                        uri: head.uri, userAgent: head.headers.first(name: "User-Agent"),
                        authorization: head.headers.first(name: "Authorization")),
                    to: venue),
                context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func perform(_ verdict: World.Verdict, _ context: ChannelHandlerContext) {
        switch verdict {
        case .answer(let answer, 0): write(answer, of: answer.body.count, context)
        case .answer(let answer, let delay):
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            context.eventLoop.scheduleTask(in: .milliseconds(delay)) {
                let (handler, context) = bound.value
                handler.write(answer, of: answer.body.count, context)
            }
        case .stallBody(let answer): write(answer, of: answer.body.count / 2, context)
        case .dark: isDark = true
        case .reset:
            // With a linger time of zero close(2) sends RST instead of FIN (socket(7)).
            guard let socket = context.channel as? any SocketOptionProvider else { return context.close(promise: nil) }
            let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
            socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in
                bound.value.close(promise: nil)
            }
        }
    }

    /// Writes the head and so many bytes of the body; the answer ends only where that is all of it.
    private func write(_ answer: VenueShape.Answer, of count: Int, _ context: ChannelHandlerContext) {
        var headers = HTTPHeaders([("Content-Length", "\(answer.body.count)")])
        headers.add(
            name: "Content-Type", value: answer.body.first == UInt8(ascii: "<") ? "text/html" : "application/json")
        if let seconds = answer.retryAfter { headers.add(name: "Retry-After", value: "\(seconds)") }
        let head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status), headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(
            wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: answer.body.prefix(count))))), promise: nil)
        if count == answer.body.count {
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        } else {
            context.flush()
        }
    }
}
