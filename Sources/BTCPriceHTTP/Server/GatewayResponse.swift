import NIOCore
import NIOHTTP1

/// What a request is answered with.
struct GatewayResponse: Sendable {
    var status = HTTPResponseStatus.ok
    var headers = HTTPHeaders()
    var body = ByteBuffer()
    /// What an event stream sends. With it, the response has no end.
    var stream: EventStreams.Subscription?
}
