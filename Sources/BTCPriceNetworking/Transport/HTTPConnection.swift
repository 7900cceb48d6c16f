import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSOCKS
import NIOSSL
import NIOTLS

/// One connection: opens, sends one request at a time, and is the last handler in its channel's pipeline.
// Touched on the event loop's thread only, except for its constants.
final class HTTPConnection: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private enum Stage {
        /// Looks up the name.
        case resolving
        /// Connects to an address.
        case connecting
        /// Waits for the HTTP proxy's response to CONNECT.
        case tunnelling
        /// Runs the handshake of SOCKS5 or TLS.
        case shakingHands
        /// Ready for a request, or waiting for its response.
        case ready
        case closed
    }

    let origin: HTTPRequest.Origin
    private let pool: ConnectionPool
    private var stage = Stage.resolving
    private var pending: PendingRequest?
    private var channel: (any Channel)?
    private let meter = ResponseMeter()
    private var collector = HTTPResponseCollector()
    /// The timeout for opening.
    private var opening: Scheduled<Void>?
    /// When it became ready, or its last response was complete.
    private var since = NIODeadline.now()
    /// Whether the pending request was given to it when it was open already.
    private var isReused = false
    private var isDraining: Bool

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

    /// Whether it can take a request.
    var isFree: Bool { pending == nil && !isDraining }

    /// Whether its name is being looked up.
    var isResolving: Bool {
        if case .resolving = stage { true } else { false }
    }

    /// Whether it has been idle for too long.
    func isOverdue(at now: NIODeadline, idleTimeout: TimeAmount) -> Bool {
        isReady && now - since > idleTimeout
    }

    /// Takes a request, and sends it at once or as soon as the connection is ready.
    func start(_ request: PendingRequest) {
        pending = request
        request.connection = self
        if case .ready = stage { isReused = true } else { isReused = false }
        if isReused { send(request) }
    }

    /// The pending request was cancelled. A ready connection is closed, since a response is due; one that is opening stays.
    func abandon() {
        pending = nil
        if case .ready = stage { return close() }
        // There is no next request.
        if isDraining { close() }
    }

    /// Takes no more requests: closes now, or after the pending response.
    func drain() {
        isDraining = true
        if pending == nil { close() }
    }

    /// Closes it. A pending request fails with `reason`.
    func close(_ reason: HTTPError = .closedEarly) {
        let (pending, channel) = (pending, channel)
        (self.pending, self.channel) = (nil, nil)
        stage = .closed
        opening.take()?.cancel()
        pool.remove(self)
        channel?.close(promise: nil)
        pending?.finish(.failure(reason))
    }

    // MARK: - Opening

    /// - Parameter host: The server or the proxy.
    func open(_ host: String) {
        // Covers the proxy and TLS too: they may stall, and an abandoned connection has no other timeout.
        opening = pool.eventLoop.scheduleTask(in: TimeAmount(pool.context.settings.connectTimeout)) {
            self.close(.connectTimedOut)
        }
        let port = pool.context.settings.proxy?.port ?? origin.port
        if let address = SocketAddress(literal: host, port: port) { return connect(host, port, [address]) }
        let eventLoop = pool.eventLoop
        pool.names.addresses(of: host) { outcome in
            eventLoop.execute {
                switch outcome {
                case .success(let addresses): self.connect(host, port, addresses)
                case .failure(let error): self.close(error)
                }
            }
        }
    }

    private func connect(_ host: String, _ port: Int, _ addresses: [SocketAddress]) {
        guard case .resolving = stage else { return }
        stage = .connecting
        ClientBootstrap(group: pool.eventLoop)
            .resolver(KnownAddresses(addresses: addresses, eventLoop: pool.eventLoop))
            .connectTimeout(TimeAmount(pool.context.settings.connectTimeout))
            // An exchange's response fits into it.
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 8192))
            .connect(host: host, port: port)
            .whenComplete { result in
                switch result {
                case .success(let channel): self.connected(channel)
                case .failure(let error): self.close(HTTPError(connecting: error))
                }
            }
    }

    private func connected(_ channel: any Channel) {
        guard case .connecting = stage else { return channel.close(promise: nil) }
        self.channel = channel
        do {
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(self)
            switch pool.context.settings.proxy {
            case .http:
                stage = .tunnelling
                try addCodec(pipeline)
                let authority = origin.authority
                send(HTTPRequestHead(version: .http1_1, method: .CONNECT, uri: authority, headers: ["Host": authority]))
            case .socks5:
                stage = .shakingHands
                let target = origin.address.map(SOCKSAddress.address) ?? .domain(origin.host, port: origin.port)
                try pipeline.addHandler(SOCKSClientHandler(targetAddress: target), position: .first)
            case nil: try secure(channel)
            }
        } catch {
            close(.other(error))
        }
    }

    /// Adds the HTTP/1.1 handlers in front of this one.
    private func addCodec(_ pipeline: ChannelPipeline.SynchronousOperations) throws {
        try pipeline.addHandlers(
            [meter, HTTPRequestEncoder(), ByteToMessageHandler(HTTPResponseDecoder())], position: .before(self))
    }

    /// The tunnel is open: removes the HTTP handlers used for the proxy.
    private func leaveProxy(_ channel: any Channel) {
        stage = .shakingHands
        meter.complete()
        let pipeline = channel.pipeline.syncOperations
        do {
            let removals = [
                pipeline.removeHandler(meter),
                pipeline.removeHandler(try pipeline.handler(type: HTTPRequestEncoder.self)),
                pipeline.removeHandler(
                    try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)),
            ]
            EventLoopFuture.andAllSucceed(removals, on: channel.eventLoop).whenComplete { result in
                guard case .shakingHands = self.stage else { return }
                do {
                    try result.get()
                    try self.secure(channel)
                } catch {
                    self.close(.other(error))
                }
            }
        } catch {
            close(.other(error))
        }
    }

    /// The path to the server is open: starts TLS if the origin uses it.
    private func secure(_ channel: any Channel) throws {
        guard origin.isSecure else { return try becomeReady(channel) }
        stage = .shakingHands
        let identity = ServerIdentity(origin)
        let handler = try NIOSSLClientHandler(
            context: try pool.tlsContext(for: identity), serverHostname: identity.isName ? origin.host : nil)
        try channel.pipeline.syncOperations.addHandler(handler, position: .before(self))
    }

    /// TLS is established: checks the server's identity.
    private func secured(_ channel: any Channel) {
        do {
            guard let certificate = try channel.pipeline.syncOperations.nioSSL_peerCertificate(),
                ServerIdentity(origin).isShown(by: certificate)
            else { throw NIOSSLExtraError.failedToValidateHostname }
            try becomeReady(channel)
        } catch {
            close(.other(error))
        }
    }

    private func becomeReady(_ channel: any Channel) throws {
        try addCodec(channel.pipeline.syncOperations)
        stage = .ready
        since = .now()
        opening.take()?.cancel()
        if let pending {
            send(pending)
        } else if isDraining {
            close()
        }
    }

    // MARK: - Requests

    private func send(_ pending: PendingRequest) {
        send(
            pending.request.head(userAgent: pool.context.settings.userAgent), longestBody: pending.request.longestBody)
    }

    private func send(_ head: HTTPRequestHead, longestBody: Int = HTTPRequest.usualBody) {
        meter.reset(longestBody: longestBody)
        collector = HTTPResponseCollector(longestBody: longestBody)
        channel?.write(HTTPClientRequestPart.head(head), promise: nil)
        channel?.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        do throws(HTTPError) {
            switch stage {
            case .ready:
                // No request is pending: these bytes would be taken for the next response.
                guard pending != nil else { return close() }
                if let response = try collector.take(unwrapInboundIn(data)) { finish(response) }
            case .tunnelling:
                if case .head(let head) = unwrapInboundIn(data), !(200..<300).contains(head.status.code) {
                    throw head.status == .proxyAuthenticationRequired
                        ? .proxyWantsPassword : .proxyRefused("HTTP \(head.status.code)")
                }
                guard case .end = unwrapInboundIn(data) else { return }
                guard meter.body == 0 else { throw .proxyRefused("it sends data before the server was connected") }
                leaveProxy(context.channel)
            case .resolving, .connecting, .shakingHands, .closed: close()
            }
        } catch {
            close(error)
        }
    }

    private func finish(_ response: HTTPResponse) {
        let pending = pending.take()
        meter.complete()
        since = .now()
        if !collector.keepsConnection(meter) || isDraining { close() }
        pending?.finish(.success(response))
    }

    // MARK: - Other channel events

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is SOCKSProxyEstablishedEvent:
            do { try secure(context.channel) } catch { close(.other(error)) }
        case TLSUserEvent.handshakeCompleted: secured(context.channel)
        default: break
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(.closedEarly)
    }

    /// The last event of a channel, and the only one if it broke while it became active.
    func channelUnregistered(context: ChannelHandlerContext) {
        fail(.closedEarly)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(HTTPError(onConnection: error))
    }

    /// Closes it after an error, or retries the pending request on another connection.
    private func fail(_ error: HTTPError) {
        if case .closed = stage { return }
        // The server closed a kept connection and sent no byte of a response: the request is sent on another one.
        if case .ready = stage, isReused, meter.isEmpty, error.isLoss, let pending = pending.take() {
            close()
            return pool.start(pending)
        }
        close(error)
    }
}

extension HTTPError {
    /// The error for a failed connect.
    fileprivate init(connecting error: any Error) {
        switch error {
        case ChannelError.connectTimeout: self = .connectTimedOut
        case let error as NIOConnectionError:
            self = .notConnected(errno: (error.connectionErrors.first?.error as? IOError)?.errnoCode)
        case let error as IOError: self = .notConnected(errno: error.errnoCode)
        default: self = .other(error)
        }
    }

    /// The error for a connection that was open.
    fileprivate init(onConnection error: any Error) {
        switch error {
        case let error as HTTPError: self = error
        case HTTPParserError.invalidEOFState: self = .closedEarly
        case HTTPParserError.headerOverflow: self = .malformed("more headers than are allowed")
        case let error as HTTPParserError: self = .malformed("\(error)")
        case let error as NIOHTTPDecoderError: self = .malformed("\(error)")
        case let error as IOError: self = .lost(errno: error.errnoCode)
        // Closed without TLS's close_notify: the framing shows whether the response was complete.
        case NIOSSLError.uncleanShutdown: self = .closedEarly
        case let error as SOCKSError.ConnectionFailed: self = .proxyRefused("\(error.reply)")
        // It accepts no offered method; only the one without a password is offered (RFC 1928, section 3).
        case is SOCKSError.InvalidAuthenticationSelection: self = .proxyWantsPassword
        case is SOCKSError.InvalidProtocolVersion, is SOCKSError.InvalidReservedByte, is SOCKSError.InvalidAddressType,
            is SOCKSError.UnexpectedRead, is SOCKSError.InvalidClientState:
            self = .proxyRefused("it does not speak SOCKS5")
        default: self = .other(error)
        }
    }

    /// Whether it means only that the connection was lost.
    fileprivate var isLoss: Bool {
        switch self {
        case .closedEarly, .lost: true
        default: false
        }
    }
}
