import BTCPriceCore
import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TLS

/// How connections to a venue are set up.
struct Transport: Sendable {
    let host: String
    /// The certificates for TLS; `nil` for plain HTTP.
    let certificates: CertificateFolder?
    /// The TLS context with the valid certificate; `nil` for plain HTTP.
    let context: TLSContext?
    /// The simulated round-trip time; `nil` for no delay.
    let roundTrip: TimeAmount?

    init(host: String, certificates: CertificateFolder?, roundTrip: TimeAmount?) throws {
        self.host = host
        self.certificates = certificates
        self.roundTrip = roundTrip
        context = try certificates?.context(nil)
    }

    /// `http://127.0.0.1`
    var base: String { "\(context == nil ? "http" : "https")://\(host.bracketedHost)" }

    /// Adds the handlers to a new connection, with the script's current fault.
    func configure(_ channel: any Channel, _ venue: VenueName, _ world: World) throws {
        let pipeline = channel.pipeline.syncOperations
        if let roundTrip { try pipeline.addHandler(DistanceHandler(roundTrip: roundTrip)) }
        if let context {
            switch world.connectionFault(of: venue) {
            case .tlsAlert: return try pipeline.addHandler(AlertHandler())
            case .certificate(let wrong):
                try pipeline.addHandler(TLSHandler(certificates?.context(wrong) ?? context))
            default: try pipeline.addHandler(TLSHandler(context))
            }
        }
        let hold = HoldHandler()
        let connection = ConnectionHandler(venue: venue, world: world)
        let upgrader = StreamUpgrader(venue: venue, world: world, connection: connection, hold: hold)
        try pipeline.addHandler(hold)
        try pipeline.configureHTTPServerPipeline(withServerUpgrade: ([upgrader], { _ in }))
        try pipeline.addHandler(connection)
    }
}

/// A venue's port. It is closed while the script refuses connections, and open otherwise.
final class VenuePort: Sendable {
    /// How often the script is checked.
    private static let period = TimeAmount.milliseconds(20)

    private let reserved: ReservedPort
    private let venue: VenueName
    private let world: World
    private let transport: Transport
    private let group: MultiThreadedEventLoopGroup
    private let loop: any EventLoop
    private let state: NIOLoopBoundBox<State>

    private struct State {
        var listener: (any Channel)?
        var connections: [ObjectIdentifier: any Channel] = [:]
        /// Opens the port again; `nil` while nothing does.
        var opening: Task<Void, Never>?
        var isStopped = false
    }

    private let isStopping = Atomic<Bool>(false)

    static func open(
        _ venue: VenueName, world: World, transport: Transport, group: MultiThreadedEventLoopGroup, port: Int
    ) async throws -> VenuePort {
        let opened = try VenuePort(venue, world, transport, group, port: port)
        let listener = try await opened.listener()
        try await opened.loop.submit { [state = opened.state] in state.value.listener = listener }.get()
        opened.loop.scheduleRepeatedTask(initialDelay: .zero, delay: period) { [weak opened] task in
            guard let opened else { return task.cancel() }
            opened.follow()
        }
        return opened
    }

    private init(
        _ venue: VenueName, _ world: World, _ transport: Transport, _ group: MultiThreadedEventLoopGroup, port: Int
    ) throws {
        (self.venue, self.world, self.transport, self.group) = (venue, world, transport, group)
        loop = group.next()
        state = .makeBoxSendingValue(State(), eventLoop: loop)
        reserved = try ReservedPort(host: transport.host, port: port)
    }

    private func listener() async throws -> any Channel {
        // One thread serves all connections, so their loop is the box's loop.
        try await listen(group, host: transport.host, port: port, isReserved: true) {
            [state, transport, venue, world] channel in
            let id = ObjectIdentifier(channel)
            state.value.connections[id] = channel
            channel.closeFuture.whenComplete { _ in state.value.connections[id] = nil }
            try transport.configure(channel, venue, world)
        }
    }

    var port: Int { reserved.port }

    /// Closes or opens the port according to the script.
    private func follow() {
        let refuses = world.connectionFault(of: venue) == .refuse
        guard state.value.opening == nil, !state.value.isStopped, refuses == (state.value.listener != nil) else {
            return
        }
        if refuses {
            let open = [state.value.listener].compactMap { $0 } + Array(state.value.connections.values)
            state.value.listener = nil
            for channel in open { channel.close(promise: nil) }
            return
        }
        state.value.opening = Task {
            let listener = try? await listener()
            // If the port is in use, the next check tries again.
            loop.execute { [state] in
                state.value.listener = listener
                state.value.opening = nil
            }
        }
    }

    /// Waits for a port that is being opened, and opens none again: the loop may end then.
    func stop() async {
        guard !isStopping.exchange(true, ordering: .relaxed) else { return }
        let opening = try? await loop.submit { [state] in
            state.value.isStopped = true
            return state.value.opening
        }.get()
        await opening?.value
    }
}

/// Opens a server port and configures each connection.
/// - Parameter isReserved: Whether a ``ReservedPort`` keeps the port.
func listen(
    _ group: MultiThreadedEventLoopGroup, host: String, port: Int, isReserved: Bool = false,
    configure: @escaping @Sendable (any Channel) throws -> Void
) async throws -> any Channel {
    try await ServerBootstrap(group: group)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .serverChannelOption(
            .socketOption(NIOBSDSocket.Option(rawValue: SO_REUSEPORT)), value: isReserved ? 1 : 0
        )
        .childChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture { try configure(channel) }
        }
        .bind(host: host, port: port).get()
}
