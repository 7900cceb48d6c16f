import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix

/// One connection to a venue: reads requests and performs the verdict of ``World``.
final class ConnectionHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let venue: VenueName
    private let world: World
    private var head: HTTPRequestHead?
    private var isDark = false
    /// The verdict on the next request, if that request is a refused upgrade.
    var refusal: World.Verdict?

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
            if let refusal {
                self.refusal = nil
                return perform(refusal, context)
            }
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
        if error is StreamUpgrader.Refused { return }
        context.close(promise: nil)
    }

    private func perform(_ verdict: World.Verdict, _ context: ChannelHandlerContext) {
        switch verdict {
        case .reply(let answer, let fault): reply(answer, fault, context)
        case .dark: isDark = true
        case .close: context.close(promise: nil)
        case .reset:
            // With a linger time of zero, close(2) sends RST instead of FIN (socket(7)).
            guard let socket = context.channel as? any SocketOptionProvider else { return context.close(promise: nil) }
            let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
            socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in
                bound.value.channel.close(promise: nil)
            }
        }
    }

    private func reply(_ answer: VenueShape.Answer, _ fault: FaultScript.Fault?, _ context: ChannelHandlerContext) {
        let body = answer.body
        switch fault {
        case .delay(let milliseconds):
            later(milliseconds, context) { handler, context in
                handler.write(answer, nil, context)
                handler.end(context)
            }
        case .stallBody: write(answer, body.prefix(body.count / 2), context)
        case .halfBody:
            write(answer, body.prefix(body.count / 2), context)
            context.close(promise: nil)
        case .wrongLength(let difference):
            write(answer, nil, length: body.count + difference, context)
            end(context)
        case .drip(let milliseconds):
            write(answer, [], context)
            for (index, byte) in body.enumerated() {
                later(milliseconds * Int64(index + 1), context) { handler, context in
                    handler.writeBody([byte], context)
                    if index + 1 == body.count { handler.end(context) }
                }
            }
        default:
            write(answer, nil, context)
            end(context)
        }
    }

    private func later(
        _ milliseconds: Int64, _ context: ChannelHandlerContext,
        _ action: @escaping @Sendable (ConnectionHandler, ChannelHandlerContext) -> Void
    ) {
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: .milliseconds(milliseconds)) {
            let (handler, context) = bound.value
            if context.channel.isActive { action(handler, context) }
        }
    }

    /// Writes the head and `part` of the body, or the whole body if `part` is `nil`.
    private func write(
        _ answer: VenueShape.Answer, _ part: ArraySlice<UInt8>?, length: Int? = nil,
        _ context: ChannelHandlerContext
    ) {
        var headers = HTTPHeaders([
            ("Date", VenueShape.httpDate(secondsFromNow: 0)), ("Content-Length", "\(length ?? answer.body.count)"),
        ])
        for (name, value) in answer.headers { headers.add(name: name, value: value) }
        if !headers.contains(name: "Content-Type") {
            headers.add(
                name: "Content-Type",
                value: answer.body.first == UInt8(ascii: "<") ? "text/html" : "application/json")
        }
        for (name, value) in VenueShape.headers(of: venue) where !headers.contains(name: name) {
            headers.add(name: name, value: value)
        }
        let head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status), headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        writeBody(part ?? answer.body[...], context)
    }

    private func writeBody(_ bytes: ArraySlice<UInt8>, _ context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: bytes)))), promise: nil)
    }

    private func end(_ context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}
