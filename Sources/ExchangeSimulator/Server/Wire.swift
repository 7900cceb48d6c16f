import NIOCore

/// Delays a connection like a long distance: every byte by half a round trip, the first by one more for the TCP handshake.
final class DistanceHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let half: TimeAmount
    private let connected: NIODeadline
    private var lastInbound = NIODeadline.uptimeNanoseconds(0)

    init(roundTrip: TimeAmount) {
        half = .nanoseconds(roundTrip.nanoseconds / 2)
        connected = .now() + roundTrip
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Keeps the order of the bytes.
        lastInbound = max(.now() + half, connected + half, lastInbound)
        let bound = NIOLoopBound((context, unwrapInboundIn(data)), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(deadline: lastInbound) {
            let (context, buffer) = bound.value
            context.fireChannelRead(Self.wrapInboundOut(buffer))
            context.fireChannelReadComplete()
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {}

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let bound = NIOLoopBound((context, unwrapOutboundIn(data)), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: half) {
            let (context, buffer) = bound.value
            context.writeAndFlush(Self.wrapOutboundOut(buffer), promise: promise)
        }
    }

    func flush(context: ChannelHandlerContext) {}

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: half) { bound.value.close(mode: mode, promise: promise) }
    }
}

/// Replies to any data with a fatal alert, like a server whose handshakes fail.
final class AlertHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // A record of type alert: fatal, internal_error (RFC 8446, sections 5.1 and 6).
        let alert = ByteBuffer(bytes: [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 80])
        context.writeAndFlush(wrapOutboundOut(alert), promise: nil)
        context.close(promise: nil)
    }
}

/// Holds back writes, so that several become one.
final class HoldHandler: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var held: ByteBuffer?
    private var context: ChannelHandlerContext?

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    /// Holds back all writes from now on.
    func hold() {
        held = ByteBuffer()
    }

    /// Writes what was held back.
    func release() {
        guard let held else { return }
        self.held = nil
        context?.writeAndFlush(wrapOutboundOut(held), promise: nil)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard held != nil else { return context.write(data, promise: promise) }
        held?.writeImmutableBuffer(unwrapOutboundIn(data))
        promise?.succeed()
    }
}
