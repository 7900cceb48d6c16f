import NIOCore
import NIOHTTP1
import NIOWebSocket

/// How a WebSocket connection ended, or why there is none.
enum WebSocketEnd: Sendable {
    /// The server responded with a status other than 101.
    case refused(HTTPResponse)
    /// The response with status 101 is not that of a WebSocket server.
    case noWebSocket(String)
    /// The server closed the connection with a close frame. `code` is `nil` if the frame has none.
    case closed(code: Int?, reason: String)
    /// The server violated the protocol, so the connection was closed.
    case violated(String)
    /// The connection could not be opened, or it broke.
    case failed(HTTPError)
}

/// Callbacks of a connection. Called on the event loop.
protocol WebSocketDelegate: AnyObject {
    func opened(_ connection: WebSocketConnection)
    /// Frames that arrived together; none if only a part of one has arrived.
    /// - Parameters:
    ///   - texts: The text messages, from the oldest to the newest; there may be none.
    ///   - frames: The number of all frames, whatever they are.
    ///   - bytes: The bytes of all frames.
    func received(_ texts: [ByteBuffer], frames: Int, bytes: Int, on connection: WebSocketConnection)
    /// Called once, and nothing after it. Not called after ``WebSocketConnection/close(_:)``.
    func ended(_ end: WebSocketEnd, _ connection: WebSocketConnection)
}

/// A client's WebSocket connection (RFC 6455). It exchanges text messages and responds to pings.
///
/// NIOWebSocket checks the server's key and decodes the frames, and ``WebSocketReader`` checks these. No extension is offered. There is no
/// timeout for silence: the caller knows how long a server may be silent.
// Accessed on the event loop's thread only, except for its constants.
final class WebSocketConnection: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private enum Stage {
        case dialling(Dial)
        case upgrading(any Channel)
        case open(any Channel)
        case closing(any Channel)
        case over
    }

    /// The minimum time between two pongs. A pong counts as a message, and exchanges limit those.
    private static let pongInterval = TimeAmount.milliseconds(500)
    /// How long the server may take to close the connection.
    private static let closeTimeout = TimeAmount.seconds(1)

    private let request: HTTPRequest
    private let dialer: Dialer
    private weak var delegate: (any WebSocketDelegate)?
    private var stage = Stage.over
    private var reader = WebSocketReader()
    /// After a read of so many bytes, more may be waiting.
    private static let fullRead = 16 * 1024
    /// The frames since the last ``deliver()``, and their bytes.
    private var frames = (count: 0, bytes: 0)
    /// What arrived since the last ``channelReadComplete(context:)``.
    private var texts: [ByteBuffer] = []
    /// The newest ping, if its pong has not been sent yet.
    private var ping: ByteBuffer?
    private var lastPong = NIODeadline.uptimeNanoseconds(0)
    private var pongTimer: Scheduled<Void>?

    init(_ request: HTTPRequest, by dialer: Dialer, delegate: any WebSocketDelegate) {
        self.request = request
        self.dialer = dialer
        self.delegate = delegate
    }

    func open() {
        let dial = Dial(
            to: request.origin, by: dialer,
            // With these sizes, a burst of hundreds of messages needs few reads.
            receiveBuffer: AdaptiveRecvByteBufferAllocator(minimum: 2048, initial: 4096, maximum: 16 * 1024)
        ) { result in
            switch result {
            case .success(let channel): self.upgrade(channel)
            case .failure(let error): self.end(.failed(error))
            }
        }
        stage = .dialling(dial)
        dial.start()
    }

    fileprivate var isUpgrading: Bool {
        if case .upgrading = stage { true } else { false }
    }

    /// Reads what has come, or what comes next if there is nothing, and tells the delegate. Nothing more is read before the next call, apart
    /// from the rest of a burst.
    func read() {
        if case .open(let channel) = stage { channel.read() }
    }

    /// Sends a text message. Has no effect if the connection is not open.
    func send(_ text: String) {
        guard case .open(let channel) = stage else { return }
        write(.text, ByteBuffer(string: text), to: channel)
    }

    /// Closes the connection. The delegate is not called.
    func close(_ code: WebSocketErrorCode) {
        delegate = nil
        switch stage {
        case .dialling(let dial):
            stage = .over
            dial.cancel()
        case .upgrading(let channel):
            stage = .over
            channel.close(promise: nil)
        case .open(let channel): sendClose(code, to: channel)
        case .closing, .over: break
        }
    }

    // MARK: - Upgrading

    private func upgrade(_ channel: any Channel) {
        stage = .upgrading(channel)
        let key = NIOWebSocketClientUpgrader.randomRequestKey()
        let request = request.bytes(
            userAgent: dialer.context.settings.userAgent,
            more: [
                "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": key,
                "Sec-WebSocket-Version": "13",
            ])
        do {
            try channel.pipeline.syncOperations.addHandler(UpgradeHandler(self, key: key))
        } catch {
            return end(.failed(.other(error)))
        }
        channel.writeAndFlush(request, promise: nil)
    }

    /// The server changes to WebSocket.
    fileprivate func upgraded(_ channel: any Channel) {
        guard case .upgrading = stage else { return }
        stage = .open(channel)
        do {
            try channel.syncOptions?.setOption(.autoRead, value: false)
            try channel.pipeline.syncOperations.addHandlers(
                WebSocketFrameEncoder(),
                ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: WebSocketReader.longestMessage)), self)
        } catch {
            return end(.failed(.other(error)))
        }
        delegate?.opened(self)
    }

    // MARK: - Frames

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        frames.count += 1
        frames.bytes += frame.length
        do throws(WebSocketReader.Violation) {
            switch try reader.take(frame) {
            case .text(let text):
                // Messages that come while the connection is being closed are ignored.
                if case .open = stage { texts.append(text) }
            case .ping(let payload): ping = payload
            case .close(let code, let reason):
                let number = code.map { Int(UInt16(webSocketErrorCode: $0)) }
                finish(code ?? .normalClosure, .closed(code: number, reason: reason), context.channel)
            case .nothing: break
            }
        } catch {
            finish(error.code, .violated(error.description), context.channel)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        let isFull = frames.bytes >= Self.fullRead
        deliver()
        answerPing()
        // A connection that is being closed is read to its end.
        if isFull { context.read() } else if case .closing = stage { context.read() }
    }

    private func deliver() {
        let (count, bytes) = frames
        frames = (0, 0)
        guard case .open = stage else { return }
        delegate?.received(texts, frames: count, bytes: bytes, on: self)
        texts.removeAll(keepingCapacity: true)
    }

    private func answerPing() {
        guard ping != nil, pongTimer == nil, case .open(let channel) = stage else { return }
        let now = NIODeadline.now()
        guard now >= lastPong + Self.pongInterval else {
            pongTimer = channel.eventLoop.scheduleTask(deadline: lastPong + Self.pongInterval) {
                self.pongTimer = nil
                self.answerPing()
            }
            return
        }
        lastPong = now
        if let payload = ping.take() { write(.pong, payload, to: channel) }
    }

    private func write(_ opcode: WebSocketOpcode, _ payload: ByteBuffer, to channel: any Channel) {
        // Each frame of a client has a key of its own (section 5.3).
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: payload)
        channel.writeAndFlush(frame, promise: nil)
    }

    // MARK: - Closing

    /// Closes the connection with a close frame and says why. If it is being closed already, this is its end.
    private func finish(_ code: WebSocketErrorCode, _ end: WebSocketEnd, _ channel: any Channel) {
        deliver()
        guard case .open = stage else { return channel.close(promise: nil) }
        sendClose(code, to: channel)
        // The server closes the connection now. If it does not, the timeout of ``sendClose(_:to:)`` does.
        tell(end)
    }

    private func sendClose(_ code: WebSocketErrorCode, to channel: any Channel) {
        stage = .closing(channel)
        stopPongs()
        var payload = ByteBuffer()
        payload.write(webSocketErrorCode: code)
        write(.connectionClose, payload, to: channel)
        channel.read()
        let timeout = channel.eventLoop.scheduleTask(in: Self.closeTimeout) { channel.close(promise: nil) }
        channel.closeFuture.whenComplete { _ in timeout.cancel() }
    }

    private func stopPongs() {
        ping = nil
        pongTimer.take()?.cancel()
    }

    /// Ends the connection without a close frame.
    fileprivate func end(_ end: WebSocketEnd) {
        let stage = stage
        self.stage = .over
        stopPongs()
        // Closing the channel calls this again.
        tell(end)
        switch stage {
        case .dialling, .over: break
        case .upgrading(let channel), .open(let channel), .closing(let channel): channel.close(promise: nil)
        }
    }

    private func tell(_ end: WebSocketEnd) {
        let delegate = delegate
        self.delegate = nil
        delegate?.ended(end, self)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if case .open = stage { deliver() }
        end(.failed(.closedEarly))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? NIOWebSocketError else { return end(.failed(HTTPError(onConnection: error))) }
        switch error {
        case .invalidFrameLength: finish(.messageTooLarge, .violated("a frame that is too long"), context.channel)
        default: finish(.protocolError, .violated("a control frame that is not valid"), context.channel)
        }
    }
}

/// Reads the response to an upgrade request. It leaves the pipeline after the upgrade.
private final class UpgradeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let connection: WebSocketConnection
    private let key: String
    private var parser = HTTPResponseParser(to: .upgrade)

    /// - Parameter key: The key that was sent.
    init(_ connection: WebSocketConnection, key: String) {
        self.connection = connection
        self.key = key
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // One that is being closed may still bring what was read before.
        guard connection.isUpgrading else { return }
        let response: HTTPResponse?
        do throws(HTTPError) {
            response = try parser.take(unwrapInboundIn(data).readableBytesView)
        } catch {
            return connection.end(.failed(error))
        }
        guard let response else { return }
        guard response.status == 101 else { return connection.end(.refused(response)) }
        if let fault = fault(of: response) { return connection.end(.noWebSocket(fault)) }
        connection.upgraded(context.channel)
        // The first frames may have come together with the response.
        if !parser.rest.isEmpty { context.fireChannelRead(wrapInboundOut(ByteBuffer(bytes: parser.rest))) }
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    /// Why a response with status 101 is not that of a WebSocket server (RFC 6455, section 4.1).
    private func fault(of response: HTTPResponse) -> String? {
        // Neither was offered.
        if response.header("sec-websocket-extensions") != nil {
            return "Sec-WebSocket-Extensions, which was not requested"
        }
        if response.header("sec-websocket-protocol") != nil { return "Sec-WebSocket-Protocol, which was not requested" }
        guard parser.isUpgrade else { return "no Connection: Upgrade" }
        let upgrader = NIOWebSocketClientUpgrader(requestKey: key) { channel, _ in
            channel.eventLoop.makeSucceededVoidFuture()
        }
        let head = HTTPResponseHead(
            version: .http1_1, status: .switchingProtocols, headers: HTTPHeaders(response.fields.all))
        guard response.header("upgrade")?.lowercased() == upgrader.supportedProtocol,
            upgrader.shouldAllowUpgrade(upgradeResponse: head)
        else { return "a wrong Upgrade or Sec-WebSocket-Accept" }
        return nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        // A refusal may end with the connection.
        connection.end(parser.closed().map(WebSocketEnd.refused) ?? .failed(.closedEarly))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        connection.end(.failed(HTTPError(onConnection: error)))
    }
}
