import NIOCore
import NIOPosix
import NIOSOCKS
import TLS

/// Opens connections with one set of settings: name lookup, connect, proxy and TLS.
final class Dialer: Sendable {
    let context: TransportContext
    let names: NameLookup
    let eventLoop: any EventLoop

    init(_ context: TransportContext, names: NameLookup, on eventLoop: any EventLoop) {
        self.context = context
        self.names = names
        self.eventLoop = eventLoop
    }

    /// The name or address to connect to: the server's, or the proxy's.
    func host(to origin: HTTPRequest.Origin) -> String { proxy(to: origin)?.host ?? origin.host }

    /// The proxy for a server; `nil` for none.
    func proxy(to origin: HTTPRequest.Origin) -> HTTPTransportSettings.Proxy? {
        origin.isLoopback ? nil : context.settings.proxy
    }
}

/// One connection that is being opened. It is a handler in the channel's pipeline until the connection is open.
// Accessed on the event loop's thread only, except for its constants.
final class Dial: ChannelInboundHandler, RemovableChannelHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer
    /// Called once, with the open channel or the reason why there is none. The channel has no handler that reads what the server sends.
    typealias Completion = (Result<any Channel, HTTPError>) -> Void

    private enum Stage {
        case resolving
        case connecting
        /// Waits for the HTTP proxy's response to CONNECT.
        case tunnelling
        /// Runs the handshake of SOCKS5 or TLS.
        case shakingHands
        case over
    }

    private let origin: HTTPRequest.Origin
    private let dialer: Dialer
    private let receiveBuffer: any RecvByteBufferAllocator
    private var stage = Stage.resolving
    private var channel: (any Channel)?
    private var completion: Completion?
    /// The timeout for the whole opening.
    private var deadline: Scheduled<Void>?
    /// Reads the proxy's response to CONNECT.
    private var parser = HTTPResponseParser(to: .connect)

    /// - Parameters:
    ///   - receiveBuffer: Determines how much is read at once.
    ///   - completion: Called on the event loop's thread.
    init(
        to origin: HTTPRequest.Origin, by dialer: Dialer, receiveBuffer: any RecvByteBufferAllocator,
        _ completion: @escaping Completion
    ) {
        self.origin = origin
        self.dialer = dialer
        self.receiveBuffer = receiveBuffer
        self.completion = completion
    }

    var isResolving: Bool {
        if case .resolving = stage { true } else { false }
    }

    func start() {
        let settings = dialer.context.settings
        // Covers the proxy and TLS too: they may stall, and an abandoned connection has no other timeout.
        deadline = dialer.eventLoop.scheduleTask(in: TimeAmount(settings.connectTimeout)) {
            self.end(.failure(.connectTimedOut))
        }
        let host = dialer.host(to: origin)
        let port = dialer.proxy(to: origin)?.port ?? origin.port
        if let address = SocketAddress(literal: host, port: port) { return connect(host, port, [address]) }
        let eventLoop = dialer.eventLoop
        dialer.names.addresses(of: host) { outcome in
            eventLoop.execute {
                switch outcome {
                case .success(let addresses): self.connect(host, port, addresses)
                case .failure(let error): self.end(.failure(error))
                }
            }
        }
    }

    /// Cancels the opening. The completion is not called.
    func cancel() {
        completion = nil
        end(.failure(.cancelled))
    }

    private func end(_ result: Result<any Channel, HTTPError>) {
        guard stage != .over else { return }
        stage = .over
        deadline.take()?.cancel()
        let (channel, completion) = (channel.take(), completion.take())
        if case .failure = result { channel?.close(promise: nil) }
        completion?(result)
    }

    private func connect(_ host: String, _ port: Int, _ addresses: [SocketAddress]) {
        guard case .resolving = stage else { return }
        stage = .connecting
        ClientBootstrap(group: dialer.eventLoop)
            .resolver(KnownAddresses(addresses: addresses, eventLoop: dialer.eventLoop))
            .connectTimeout(TimeAmount(dialer.context.settings.connectTimeout))
            .channelOption(.recvAllocator, value: receiveBuffer)
            .connect(host: host, port: port)
            .whenComplete { result in
                switch result {
                case .success(let channel): self.connected(channel)
                case .failure(let error): self.end(.failure(HTTPError(connecting: error)))
                }
            }
    }

    private func connected(_ channel: any Channel) {
        guard case .connecting = stage else { return channel.close(promise: nil) }
        self.channel = channel
        do {
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(self)
            switch dialer.proxy(to: origin) {
            case .http:
                stage = .tunnelling
                let authority = origin.authority
                let request = ByteBuffer(string: "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
                channel.writeAndFlush(request, promise: nil)
            case .socks5:
                stage = .shakingHands
                let target = origin.address.map(SOCKSAddress.address) ?? .domain(origin.host, port: origin.port)
                try pipeline.addHandler(SOCKSClientHandler(targetAddress: target), position: .first)
            case nil: try secure(channel)
            }
        } catch {
            end(.failure(.other(error)))
        }
    }

    /// The path to the server is open: starts TLS if the origin uses it.
    private func secure(_ channel: any Channel) throws {
        guard origin.isSecure else { return opened(channel) }
        stage = .shakingHands
        // Not the address that is connected, which may be the proxy's.
        let server = origin.address?.ipAddress.map(TLSContext.Peer.address) ?? .name(origin.host)
        try channel.pipeline.syncOperations.addHandler(
            TLSHandler(dialer.context.tls, to: server), position: .before(self))
    }

    private func opened(_ channel: any Channel) {
        end(.success(channel))
        channel.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    // MARK: - Channel events

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .tunnelling = stage else { return }
        let response: HTTPResponse?
        do throws(HTTPError) {
            response = try parser.take(unwrapInboundIn(data).readableBytesView)
        } catch {
            guard case .malformed(let reason) = error else { return end(.failure(error)) }
            return end(.failure(.proxyRefused("its response is not valid: \(reason)")))
        }
        guard let response else { return }
        guard (200..<300).contains(response.status) else {
            return end(
                .failure(response.status == 407 ? .proxyWantsPassword : .proxyRefused("HTTP \(response.status)")))
        }
        // Nothing can have come from the server yet.
        guard parser.rest.isEmpty else {
            return end(.failure(.proxyRefused("it sends data before the server was connected")))
        }
        do { try secure(context.channel) } catch { end(.failure(.other(error))) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is SOCKSProxyEstablishedEvent:
            do { try secure(context.channel) } catch { end(.failure(.other(error))) }
        case is TLSHandler.Established: opened(context.channel)
        default: break
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(.failure(.closedEarly))
    }

    /// The last event of a channel, and the only one if it broke while it became active.
    func channelUnregistered(context: ChannelHandlerContext) {
        end(.failure(.closedEarly))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end(.failure(HTTPError(onConnection: error)))
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

    /// The error for a connection that was open, or that a proxy was to open.
    init(onConnection error: any Error) {
        switch error {
        case let error as IOError: self = .lost(errno: error.errnoCode)
        case TLSError.truncated: self = .closedEarly
        case let error as SOCKSError.ConnectionFailed: self = .proxyRefused(error.reply.text)
        // The proxy accepts no offered method. Only the one without a password is offered (RFC 1928, section 3).
        case is SOCKSError.InvalidAuthenticationSelection: self = .proxyWantsPassword
        case is SOCKSError.InvalidProtocolVersion, is SOCKSError.InvalidReservedByte, is SOCKSError.InvalidAddressType,
            is SOCKSError.UnexpectedRead, is SOCKSError.InvalidClientState:
            self = .proxyRefused("it does not speak SOCKS5")
        default: self = .other(error)
        }
    }
}

extension SOCKSServerReply {
    /// The meaning (RFC 1928, section 6).
    fileprivate var text: String {
        switch self {
        case .serverFailure: "general failure"
        case .notAllowed: "not allowed by its rules"
        case .networkUnreachable: "network unreachable"
        case .hostUnreachable: "host unreachable"
        case .refused: "connection refused"
        case .ttlExpired: "TTL expired"
        case .commandUnsupported: "command not supported"
        case .addressUnsupported: "type of address not supported"
        default: "reply \(value)"
        }
    }
}
