import Hummingbird
import Logging
import NIOCore
import Synchronization

/// What a route knows of a request beside the request itself.
struct GatewayContext: RequestContext {
    struct Source: RequestContextSource {
        let logger: Logger
        let arrival: AccessPolicy.Arrival
        let stream: StreamTicket
    }

    var coreContext: CoreRequestContextStorage
    let arrival: AccessPolicy.Arrival
    /// Takes the wish for an event stream.
    let stream: StreamTicket

    init(source: Source) {
        coreContext = CoreRequestContextStorage(source: source)
        arrival = source.arrival
        stream = source.stream
    }
}

/// A route sets it if its response has no end but goes on as a stream of events.
final class StreamTicket: Sendable {
    private let wish = Mutex<EventStreams.Wish?>(nil)

    var value: EventStreams.Wish? {
        get { wish.withLock { $0 } }
        set { wish.withLock { $0 = newValue } }
    }
}
