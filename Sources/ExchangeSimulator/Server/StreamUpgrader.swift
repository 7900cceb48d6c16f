import NIOCore
import NIOHTTP1
import NIOWebSocket

/// Turns a connection to a venue into a stream. If ``World`` refuses the upgrade, ``ConnectionHandler`` handles the request.
final class StreamUpgrader: HTTPServerProtocolUpgrader {
    /// The upgrade is refused, and the connection stays one for requests.
    struct Refused: Error {}

    let supportedProtocol = "websocket"
    let requiredUpgradeHeaders: [String] = []

    private let venue: VenueName
    private let world: World
    private let connection: ConnectionHandler
    private let hold: HoldHandler
    private var stream: World.Stream?
    /// Computes the response.
    private let handshake = NIOWebSocketServerUpgrader(
        shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture([:]) },
        upgradePipelineHandler: { channel, _ in channel.eventLoop.makeSucceededVoidFuture() })

    init(venue: VenueName, world: World, connection: ConnectionHandler, hold: HoldHandler) {
        self.venue = venue
        self.world = world
        self.connection = connection
        self.hold = hold
    }

    func buildUpgradeResponse(
        channel: any Channel, upgradeRequest: HTTPRequestHead, initialResponseHeaders: HTTPHeaders
    ) -> EventLoopFuture<HTTPHeaders> {
        let headers = upgradeRequest.headers
        guard headers["Sec-WebSocket-Version"] == ["13"], headers["Sec-WebSocket-Key"].count == 1 else {
            return channel.eventLoop.makeFailedFuture(Refused())
        }
        switch world.open(upgradeRequest.uri, of: venue) {
        case .unknown: return channel.eventLoop.makeFailedFuture(Refused())
        case .refused(let verdict):
            connection.refusal = verdict
            return channel.eventLoop.makeFailedFuture(Refused())
        case .open(let stream, let fault):
            self.stream = stream
            channel.closeFuture.whenComplete { [world] _ in world.close(stream) }
            if fault == .with101 { hold.hold() }
            let response = handshake.buildUpgradeResponse(
                channel: channel, upgradeRequest: upgradeRequest, initialResponseHeaders: initialResponseHeaders)
            if fault != .badAccept { return response }
            return response.map { headers in
                var headers = headers
                headers.replaceOrAdd(name: "Sec-WebSocket-Accept", value: "AAAAAAAAAAAAAAAAAAAAAAAAAAA=")
                return headers
            }
        }
    }

    func upgrade(context: ChannelHandlerContext, upgradeRequest: HTTPRequestHead) -> EventLoopFuture<Void> {
        context.eventLoop.makeCompletedFuture {
            guard let stream else { throw Refused() }
            let pipeline = context.pipeline.syncOperations
            pipeline.removeHandler(connection, promise: nil)
            try pipeline.addHandler(ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: 1 << 16)))
            try pipeline.addHandler(StreamHandler(stream, uri: upgradeRequest.uri, world: world))
            hold.release()
        }
    }
}
