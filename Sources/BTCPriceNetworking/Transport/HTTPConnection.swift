import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSOCKS
import NIOSSL
import NIOTLS

/// One connection: opens, asks one question at a time, and is the last in its channel's pipeline.
// Touched on the event loop's thread only, apart from its constants.
final class HTTPConnection: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private enum Stage {
        /// The name is looked up.
        case resolving
        /// An address is connected to.
        case connecting
        /// The proxy is asked for its tunnel.
        case tunnelling
        /// The proxy or TLS shake hands.
        case shakingHands
        /// Can be asked, or is.
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
    /// Ends what takes too long to open.
    private var opening: Scheduled<Void>?
    /// Since when it could be asked, or its last answer came.
    private var since = NIODeadline.now()
    private var hasAnswered = false
    private var isDraining: Bool

    /// - Parameter isRetired: Whether it is for one question only.
    init(to origin: HTTPRequest.Origin, of pool: ConnectionPool, isDraining: Bool) {
        self.origin = origin
        self.pool = pool
        self.isDraining = isDraining
    }

    // MARK: - What the pool asks of it

    /// Whether a question would go out at once.
    var isReady: Bool {
        if case .ready = stage { isFree } else { false }
    }

    /// Whether nobody waits for it.
    var isFree: Bool { pending == nil && !isDraining }

    /// Whether it waits for a name server.
    var isResolving: Bool {
        if case .resolving = stage { true } else { false }
    }

    /// Whether it has rested too long.
    func isOverdue(at now: NIODeadline, longestRest: TimeAmount) -> Bool {
        isReady && now - since > longestRest
    }

    /// Takes a question: it is sent at once, or as soon as that can be.
    func ask(_ request: PendingRequest) {
        pending = request
        request.connection = self
        if case .ready = stage { send(request) }
    }

    /// Whoever waited has gone. What opens goes on opening, for the next; what was asked already can't be asked again before the answer.
    func abandon() {
        pending = nil
        if case .ready = stage { return close() }
        // There is no next one.
        if isDraining { close() }
    }

    /// It is asked no more: closed now, or with its answer.
    func drain() {
        isDraining = true
        if pending == nil { close() }
    }

    /// Closes it. Whoever waits is told why.
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

    /// - Parameter host: Whom to connect to: the server or the proxy.
    func open(_ host: String) {
        // Beyond the connection: a proxy and TLS may stall, too, and nobody else looks at one that is asked no more.
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
            // What an exchange answers fits into it.
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

    /// HTTP/1.1 in front of this handler.
    private func addCodec(_ pipeline: ChannelPipeline.SynchronousOperations) throws {
        try pipeline.addHandlers(
            [meter, HTTPRequestEncoder(), ByteToMessageHandler(HTTPResponseDecoder())], position: .before(self))
    }

    /// The tunnel is there: what is spoken in it begins anew.
    private func leaveProxy(_ channel: any Channel) {
        stage = .shakingHands
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

    /// The way to the server is free.
    private func secure(_ channel: any Channel) throws {
        guard origin.isSecure else { return try becomeReady(channel) }
        stage = .shakingHands
        let identity = ServerIdentity(origin)
        let handler = try NIOSSLClientHandler(
            context: try pool.tlsContext(for: identity), serverHostname: identity.isName ? origin.host : nil)
        try channel.pipeline.syncOperations.addHandler(handler, position: .before(self))
    }

    /// TLS is there: with whom?
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

    // MARK: - Asking

    private func send(_ pending: PendingRequest) {
        send(pending.request.head(userAgent: pool.context.settings.userAgent))
    }

    private func send(_ head: HTTPRequestHead) {
        meter.reset()
        collector = HTTPResponseCollector()
        channel?.write(HTTPClientRequestPart.head(head), promise: nil)
        channel?.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        do throws(HTTPError) {
            switch stage {
            case .ready:
                // Nothing was requested: the next response would be taken from the wrong place.
                guard pending != nil else { return close() }
                if let response = try collector.take(unwrapInboundIn(data)) { finish(response) }
            case .tunnelling:
                if case .head(let head) = unwrapInboundIn(data), head.status.code >= 300 {
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
        hasAnswered = true
        since = .now()
        if !collector.keepsConnection(meter) || isDraining { close() }
        pending?.finish(.success(response))
    }

    // MARK: - What else happens on a channel

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

    /// The last that is told of a channel, also of one that broke while it became active, which is told nothing else.
    func channelUnregistered(context: ChannelHandlerContext) {
        if case .closed = stage { return }
        fail(.closedEarly)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(HTTPError(onConnection: error))
    }

    /// Closes it for something that happened on the way.
    private func fail(_ error: HTTPError) {
        if case .closed = stage { return }
        // The server has closed while the question was under way: it has not read it, and another connection can be asked.
        if case .ready = stage, hasAnswered, meter.isEmpty, error.isLoss, let pending = pending.take() {
            close()
            return pool.ask(pending)
        }
        close(error)
    }
}

extension HTTPError {
    /// Why there is no connection.
    fileprivate init(connecting error: any Error) {
        switch error {
        case ChannelError.connectTimeout: self = .connectTimedOut
        case let error as NIOConnectionError:
            self = .notConnected(errno: (error.connectionErrors.first?.error as? IOError)?.errnoCode)
        case let error as IOError: self = .notConnected(errno: error.errnoCode)
        default: self = .other(error)
        }
    }

    /// Why a connection has gone.
    fileprivate init(onConnection error: any Error) {
        switch error {
        case let error as HTTPError: self = error
        case HTTPParserError.invalidEOFState: self = .closedEarly
        case HTTPParserError.headerOverflow: self = .malformed("more headers than are allowed")
        case let error as HTTPParserError: self = .malformed("\(error)")
        case let error as NIOHTTPDecoderError: self = .malformed("\(error)")
        case let error as IOError: self = .lost(errno: error.errnoCode)
        // The end without TLS's own: whether the answer was whole, its framing says.
        case NIOSSLError.uncleanShutdown: self = .closedEarly
        case let error as SOCKSError.ConnectionFailed: self = .proxyRefused("\(error.reply)")
        // It takes none of the methods that were offered, which is the one without a password (RFC 1928, section 3).
        case is SOCKSError.InvalidAuthenticationSelection: self = .proxyWantsPassword
        case is SOCKSError.InvalidProtocolVersion, is SOCKSError.InvalidReservedByte, is SOCKSError.InvalidAddressType,
            is SOCKSError.UnexpectedRead, is SOCKSError.InvalidClientState:
            self = .proxyRefused("it does not speak SOCKS5")
        default: self = .other(error)
        }
    }

    /// Whether it says that the connection went, and nothing else.
    fileprivate var isLoss: Bool {
        switch self {
        case .closedEarly, .lost: true
        default: false
        }
    }
}
