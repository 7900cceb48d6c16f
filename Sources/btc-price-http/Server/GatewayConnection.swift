import NIOCore
import NIOHTTP1

/// One connection of a client: one request after the other, with timeouts. Use only on the event loop.
final class GatewayConnection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    /// What all connections share.
    struct Environment {
        let limits: GatewayLimits
        let table: GatewayConnections
        let streams: EventStreams
        let executor: any TaskExecutor
        let clock: HTTPDate
        let respond: @Sendable (GatewayRequest) async -> GatewayResponse
    }

    private enum Phase {
        case idle
        /// The first bytes of a request have arrived.
        case reading
        case head(HTTPRequestHead)
        /// A request waits, because the client does not read the responses to its earlier ones.
        case held(HTTPRequestHead)
        case responding
        case streaming
        /// The last response is written. Further input is ignored.
        case closing
    }

    private let environment: Environment
    private let arrival: AccessPolicy.Arrival
    private var phase = Phase.idle
    private var context: ChannelHandlerContext?
    private var isEnding = false
    /// Whether the client sends no more.
    private var isInputClosed = false
    /// When the connection is closed if nothing happens; `nil` for never.
    private var deadline: NIODeadline?
    private var timer: (scheduled: Scheduled<Void>, deadline: NIODeadline)?
    /// The number of responses that are not completely sent yet, and the bytes of their bodies.
    private var unsent = 0
    private(set) var unsentBytes = 0
    /// Whether bytes of the next request arrived before the response to the current one was written.
    private var hasMoreBytes = false
    /// When the connection began to wait for the client, to send a request or to read a response; `nil` while a response is prepared.
    private(set) var idleSince: NIODeadline? = .now()
    /// Whether a response has been written to it.
    private(set) var isKept = false

    /// - Parameter arrival: How its requests arrive.
    init(_ environment: Environment, _ arrival: AccessPolicy.Arrival) {
        self.environment = environment
        self.arrival = arrival
    }

    // MARK: - The channel

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelActive(context: ChannelHandlerContext) {
        let address = arrival.isLocal ? nil : arrival.remoteAddress
        guard environment.table.enter(self, from: address) else { return close() }
        wait(environment.limits.requestTimeout)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        phase = .closing
        timer?.scheduled.cancel()
        environment.table.leave(self)
        environment.streams.leave(self)
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent {
            isInputClosed = true
            switch phase {
            // The client may still read the response. If it is gone, a write fails.
            case .responding, .streaming: break
            case .idle, .reading, .head, .held, .closing: end()
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// Called when bytes arrive, before they are decoded.
    func bytesArrived() {
        switch phase {
        case .idle:
            phase = .reading
            wait(environment.limits.requestTimeout)
        case .responding, .held: hasMoreBytes = true
        case .reading, .head, .streaming, .closing: break
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .closing = phase { return }
        switch unwrapInboundIn(data) {
        case .head(let head):
            if let problem = Self.problem(of: head) {
                return answer(head, closes: true) { problem.response }
            }
            phase = .head(head)
        case .body:
            // The head did not announce a body.
            if case .head = phase { close() }
        case .end:
            guard case .head(let head) = phase else { return }
            // Otherwise, a client that sends but does not read could queue any number of responses.
            if context.channel.isWritable { return answer(head) }
            phase = .held(head)
            wait(environment.limits.writeTimeout)
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        switch phase {
        case .streaming where context.channel.isWritable:
            deadline = nil
            environment.streams.isWritable(self)
        case .streaming: wait(environment.limits.writeTimeout)
        case .held(let head) where context.channel.isWritable: answer(head)
        default: break
        }
        context.fireChannelWritabilityChanged()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The pipeline's error handler has already responded to a request that can't be decoded.
        close()
    }

    // MARK: - Requests

    private static let malformed = Problem(.badRequest, "The request is malformed.")
    /// If a client reads fewer bytes per second than this, its connection may be closed before it has the whole response.
    private static let slowest = 8192

    /// Why a request is refused: it is ambiguous, has a body, or has a method that is not allowed. `nil` if it is not refused.
    private static func problem(of head: HTTPRequestHead) -> Problem? {
        let headers = head.headers
        let hasHost = headers["host"].count == 1 || head.version.minor == 0 && headers["host"].isEmpty
        guard hasHost, head.uri.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            return malformed
        }
        guard head.method == .GET || head.method == .HEAD || GatewayRequest.isPreflight(head) else {
            return Problem(.methodNotAllowed, "Only GET and HEAD are supported.", headers: ["allow": "GET, HEAD"])
        }
        guard !headers.contains(name: "transfer-encoding"), headers["content-length"].allSatisfy({ $0 == "0" }) else {
            return Problem(.badRequest, "Request bodies are not allowed.")
        }
        return nil
    }

    private func answer(_ head: HTTPRequestHead) {
        let respond = environment.respond
        guard let request = GatewayRequest(head, arrival) else {
            return answer(head, closes: true) { Self.malformed.response }
        }
        // After a request with an `Upgrade` header, the decoder reads nothing more.
        let closes = !head.isKeepAlive || head.headers.contains(name: "upgrade")
        answer(head, closes: closes) { await respond(request) }
    }

    /// Prepares a response and sends it.
    private func answer(
        _ head: HTTPRequestHead, closes: Bool, _ response: @escaping @Sendable () async -> GatewayResponse
    ) {
        guard let context else { return }
        phase = .responding
        idleSince = nil
        deadline = nil
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        Task(executorPreference: environment.executor) {
            let response = await response()
            if head.method != .HEAD, let subscription = response.stream {
                bound.value.stream(response, to: head, subscription, closes: closes)
            } else {
                bound.value.send(response, to: head, closes: closes)
            }
        }
    }

    private func send(_ response: GatewayResponse, to head: HTTPRequestHead, closes: Bool) {
        guard let context, case .responding = phase else { return }
        let closes = closes || isEnding || isInputClosed
        var responseHead = self.head(of: response, to: head)
        // A response without either has no body: that to HEAD of a stream, and 304.
        if response.stream == nil, response.status.mayHaveResponseBody {
            responseHead.headers.add(name: "content-length", value: "\(response.body.readableBytes)")
        }
        if closes {
            responseHead.headers.add(name: "connection", value: "close")
        } else if head.version.minor == 0 {
            responseHead.headers.add(name: "connection", value: "keep-alive")
        }
        context.write(wrapOutboundOut(.head(responseHead)), promise: nil)
        if head.method != .HEAD, response.body.readableBytes > 0 {
            context.write(wrapOutboundOut(.body(.byteBuffer(response.body))), promise: nil)
        }
        let bytes = head.method == .HEAD ? 0 : response.body.readableBytes
        unsent += 1
        unsentBytes += bytes
        // The first bytes of the next request may have arrived already.
        phase = closes ? .closing : hasMoreBytes ? .reading : .idle
        hasMoreBytes = false
        // A client that does not read is idle, too.
        idleSince = .now()
        isKept = true
        // A long response over a slow line takes longer.
        wait(environment.limits.writeTimeout + .seconds(Int64(bytes / Self.slowest)))
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in bound.value.sent(bytes) }
        environment.table.queue(bytes)
    }

    /// Called when a response is completely sent, or never will be.
    private func sent(_ bytes: Int) {
        unsent -= 1
        unsentBytes -= bytes
        environment.table.sent(bytes)
        guard unsent == 0 else { return }
        switch phase {
        case .closing: linger()
        case .idle, .reading:
            idleSince = .now()
            if isEnding { return close() }
            if case .idle = phase {
                wait(environment.limits.idleTimeout)
            } else {
                wait(environment.limits.requestTimeout)
            }
        case .head, .held, .responding, .streaming: break
        }
    }

    /// Closes the output, and the connection after the client has closed its side. If bytes are unread, closing both at once would reset
    /// the connection, and the client might not get the response (RFC 9112, section 9.6).
    private func linger() {
        guard let context else { return }
        wait(environment.limits.lingerTimeout)
        context.close(mode: .output, promise: nil)
        if isEnding || isInputClosed { close() }
    }

    private func head(of response: GatewayResponse, to request: HTTPRequestHead) -> HTTPResponseHead {
        var head = HTTPResponseHead(version: request.version, status: response.status, headers: response.headers)
        head.headers.add(name: "date", value: environment.clock.now)
        head.headers.add(name: "x-content-type-options", value: "nosniff")
        return head
    }

    // MARK: - Event streams

    private func stream(
        _ response: GatewayResponse, to head: HTTPRequestHead, _ subscription: EventSubscription, closes: Bool
    ) {
        guard let context, case .responding = phase else { return }
        if isEnding { return close() }
        // Other streams may have started since the route checked for room.
        guard environment.streams.hasRoom else {
            return send(EventStreams.full.response, to: head, closes: closes)
        }
        phase = .streaming
        deadline = nil
        var responseHead = self.head(of: response, to: head)
        // With HTTP/1.0, the end of the connection ends the stream.
        if head.version.minor > 0 { responseHead.headers.add(name: "transfer-encoding", value: "chunked") }
        keepNoOldEvents(in: context.channel)
        context.writeAndFlush(wrapOutboundOut(.head(responseHead)), promise: nil)
        environment.streams.enter(self, subscription)
    }

    /// Makes the kernel's buffer small, and stops writing while anything waits for it: what waits is old when it is read.
    private func keepNoOldEvents(in channel: any Channel) {
        guard let options = channel.syncOptions else { return }
        // If the buffer stays large, a slow client gets more old events.
        try? options.setOption(.socketOption(.so_sndbuf), value: environment.limits.streamBuffer)
        try? options.setOption(.writeBufferWaterMark, value: .init(low: 1, high: 1))
    }

    /// Sends a part of the event stream.
    /// - Returns: Whether it was written. A client that does not read gets the newest state later.
    func send(_ event: ByteBuffer) -> Bool {
        guard let context, case .streaming = phase, context.channel.isWritable else { return false }
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(event))), promise: nil)
        return true
    }

    /// Ends the event stream with a last event.
    func finish(_ event: ByteBuffer) {
        guard let context, case .streaming = phase else { return }
        phase = .closing
        wait(environment.limits.writeTimeout)
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.write(wrapOutboundOut(.body(.byteBuffer(event))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in bound.value.linger() }
    }

    // MARK: - The end

    /// Ends the connection after the responses that are being prepared and sent.
    func end() {
        isEnding = true
        if case .responding = phase { return }
        if unsent == 0 { close() }
    }

    func close() {
        phase = .closing
        timer?.scheduled.cancel()
        context?.close(promise: nil)
    }

    private func wait(_ longest: TimeAmount) {
        let deadline = NIODeadline.now() + longest
        self.deadline = deadline
        // A later deadline needs no new timer: when the timer fires, it checks the current deadline.
        guard let timer, timer.deadline <= deadline else { return startTimer(deadline) }
    }

    private func startTimer(_ deadline: NIODeadline) {
        timer?.scheduled.cancel()
        guard let context else { return }
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        timer = (context.eventLoop.scheduleTask(deadline: deadline) { bound.value.timerEnded() }, deadline)
    }

    private func timerEnded() {
        timer = nil
        guard let deadline else { return }
        if deadline <= .now() { close() } else { startTimer(deadline) }
    }
}

/// Notifies a connection of bytes before they are decoded. The decoder passes them on only when the head is complete.
final class ArrivalHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let connection: GatewayConnection

    init(_ connection: GatewayConnection) {
        self.connection = connection
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        connection.bytesArrived()
        context.fireChannelRead(data)
    }
}
