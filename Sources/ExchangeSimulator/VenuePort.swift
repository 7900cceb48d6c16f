import NIOCore
import NIOPosix

/// A venue's port: closed while the script says that nobody listens, open otherwise.
final class VenuePort: Sendable {
    /// How often the script is looked at for that.
    private static let period = TimeAmount.milliseconds(20)

    let port: Int
    private let venue: VenueName
    private let world: World
    private let group: MultiThreadedEventLoopGroup
    private let loop: any EventLoop
    private let state: NIOLoopBoundBox<State>

    private struct State {
        var listener: (any Channel)?
        var connections: [ObjectIdentifier: any Channel] = [:]
        var isChanging = false
    }

    static func open(
        _ venue: VenueName, world: World, group: MultiThreadedEventLoopGroup, port: Int
    ) async throws -> VenuePort {
        let loop = group.next()
        let state = NIOLoopBoundBox.makeBoxSendingValue(State(), eventLoop: loop)
        let listener = try await Self.listener(venue, world, group, port, state)
        let opened = VenuePort(
            venue: venue, world: world, group: group, loop: loop, port: listener.localAddress?.port ?? 0, state: state)
        try await loop.submit { state.value.listener = listener }.get()
        loop.scheduleRepeatedTask(initialDelay: .zero, delay: period) { [weak opened] task in
            guard let opened else { return task.cancel() }
            opened.follow()
        }
        return opened
    }

    private init(
        venue: VenueName, world: World, group: MultiThreadedEventLoopGroup, loop: any EventLoop, port: Int,
        state: NIOLoopBoundBox<State>
    ) {
        self.venue = venue
        self.world = world
        self.group = group
        self.loop = loop
        self.port = port
        self.state = state
    }

    private static func listener(
        _ venue: VenueName, _ world: World, _ group: MultiThreadedEventLoopGroup, _ port: Int,
        _ state: NIOLoopBoundBox<State>
    ) async throws -> any Channel {
        // One thread serves all, so a connection's loop is the box's.
        try await listen(
            group, port: port,
            opened: { channel in
                let id = ObjectIdentifier(channel)
                state.value.connections[id] = channel
                channel.closeFuture.whenComplete { _ in state.value.connections[id] = nil }
            }
        ) { ConnectionHandler(venue: venue, world: world) }
    }

    /// Closes or opens the port, as the script has it now.
    private func follow() {
        let refuses = world.refuses(venue)
        guard !state.value.isChanging, refuses == (state.value.listener != nil) else { return }
        if refuses {
            let open = [state.value.listener].compactMap { $0 } + Array(state.value.connections.values)
            state.value.listener = nil
            for channel in open { channel.close(promise: nil) }
            return
        }
        state.value.isChanging = true
        Task {
            let listener = try? await Self.listener(venue, world, group, port, state)
            // Where the port is taken for the moment, the next look tries again.
            loop.execute { [state] in
                state.value.listener = listener
                state.value.isChanging = false
            }
        }
    }
}
