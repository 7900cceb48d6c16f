import NIOCore

/// One connection, which sends one request at a time. It is the last handler in its channel's pipeline.
// Accessed on the event loop's thread only, except for its constants.
final class HTTPConnection: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Stage {
        case opening(Dial)
        /// Ready for a request, or waiting for its response.
        case ready(any Channel)
        case closed
    }

    let origin: HTTPRequest.Origin
    private let pool: ConnectionPool
    private var stage = Stage.closed
    private var pending: PendingRequest?
    private var parser = HTTPResponseParser()
    /// When it became ready, or its last response was complete.
    private var since = NIODeadline.now()
    private var opened = NIODeadline.now()
    /// Whether the connection was already open when it got the pending request.
    private var isReused = false
    private var isDraining: Bool
    /// The timeout for a response that nobody waits for any more; `nil` if none is due.
    private var unwanted: Scheduled<Void>?

    /// - Parameter isDraining: Whether it is for one request only.
    init(to origin: HTTPRequest.Origin, of pool: ConnectionPool, isDraining: Bool) {
        self.origin = origin
        self.pool = pool
        self.isDraining = isDraining
    }

    // MARK: - For the pool

    /// Whether a request would be sent at once.
    var isReady: Bool {
        if case .ready = stage { isFree } else { false }
    }

    var isFree: Bool { pending == nil && unwanted == nil && !isDraining }

    var isResolving: Bool {
        if case .opening(let dial) = stage { dial.isResolving } else { false }
    }

    /// Whether it has been idle or open for too long.
    func isOverdue(at now: NIODeadline, idleTimeout: TimeAmount, longestAge: TimeAmount) -> Bool {
        isReady && (now - since > idleTimeout || now - opened > longestAge)
    }

    /// Takes a request, and sends it at once or as soon as the connection is ready.
    func start(_ request: PendingRequest) {
        pending = request
        request.connection = self
        isReused = false
        if case .ready(let channel) = stage {
            isReused = true
            send(request, on: channel)
        }
    }

    /// The pending request was cancelled. The connection stays, for the next one would have to wait for a new one as long again: one that is
    /// open is free once the response has come, which is ignored.
    func abandon() {
        pending = nil
        // A draining connection gets no other request.
        if isDraining { return close() }
        guard case .ready = stage else { return }
        unwanted = pool.dialer.eventLoop.scheduleTask(in: TimeAmount(pool.dialer.context.settings.connectTimeout)) {
            self.close()
        }
    }

    /// Takes no more requests: closes now, or after the pending response.
    func drain() {
        isDraining = true
        if pending == nil { close() }
    }

    /// Closes it. A pending request fails with `reason`.
    func close(_ reason: HTTPError = .closedEarly) {
        let (pending, stage) = (pending.take(), stage)
        self.stage = .closed
        unwanted.take()?.cancel()
        pool.remove(self)
        switch stage {
        case .opening(let dial): dial.cancel()
        case .ready(let channel): channel.close(promise: nil)
        case .closed: break
        }
        pending?.finish(.failure(reason))
    }

    func open() {
        let dial = Dial(
            to: origin, by: pool.dialer,
            // The response of an exchange fits into this buffer.
            receiveBuffer: FixedSizeRecvByteBufferAllocator(capacity: 8192)
        ) { result in
            switch result {
            case .success(let channel): self.opened(channel)
            case .failure(let error): self.close(error)
            }
        }
        stage = .opening(dial)
        dial.start()
    }

    private func opened(_ channel: any Channel) {
        stage = .ready(channel)
        since = .now()
        opened = since
        do {
            try channel.pipeline.syncOperations.addHandler(self)
        } catch {
            return close(.other(error))
        }
        if let pending {
            send(pending, on: channel)
        } else if isDraining {
            close()
        }
    }

    // MARK: - Requests

    private func send(_ pending: PendingRequest, on channel: any Channel) {
        parser = HTTPResponseParser(longestBody: pending.request.longestBody)
        let bytes = pending.request.bytes(userAgent: pool.dialer.context.settings.userAgent)
        channel.writeAndFlush(bytes, promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // If no response is due, these bytes would be taken for the next one.
        guard pending != nil || unwanted != nil else { return close() }
        do throws(HTTPError) {
            if let response = try parser.take(unwrapInboundIn(data).readableBytesView) { finish(response) }
        } catch {
            close(error)
        }
    }

    private func finish(_ response: HTTPResponse) {
        let pending = pending.take()
        unwanted.take()?.cancel()
        since = .now()
        if !parser.keepsConnection || isDraining { close() }
        pending?.finish(.success(response))
    }

    // MARK: - Other channel events

    func channelInactive(context: ChannelHandlerContext) {
        if pending != nil || unwanted != nil, let response = parser.closed() { return finish(response) }
        fail(.closedEarly)
    }

    /// The last event of a channel, and the only one if it broke while it became active.
    func channelUnregistered(context: ChannelHandlerContext) {
        fail(.closedEarly)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(HTTPError(onConnection: error))
    }

    private func fail(_ error: HTTPError) {
        guard case .ready = stage else { return }
        guard isReused, parser.isEmpty, error.isLoss, pending != nil else { return close(error) }
        // The server closed a kept connection and sent no byte of a response. The others are as old.
        close(.keptConnectionClosed)
        pool.drop(to: origin)
    }
}

extension HTTPError {
    /// Whether it means only that the connection was lost.
    fileprivate var isLoss: Bool {
        switch self {
        case .closedEarly, .lost: true
        default: false
        }
    }
}
