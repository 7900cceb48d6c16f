import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// Real HTTP servers on loopback, shaped like the exchanges: one port a venue, and one to control them.
public final class Simulator: Sendable {
    /// A port can't be had.
    public struct Failure: Error, Sendable, CustomStringConvertible {
        /// Which one, and why.
        public let description: String
    }

    private let world: World
    private let group: MultiThreadedEventLoopGroup
    private let ports: Mutex<[VenueName: VenuePort]>
    private let control: any Channel

    /// Starts the simulator.
    /// - Parameters:
    ///   - feed: Its prices.
    ///   - script: Its faults.
    ///   - firstPort: The port of the first venue, the others behind it and the control port last; 0 for any that are free.
    /// - Throws: ``Failure`` if a port is taken.
    public static func start(
        feed: PriceFeed, script: FaultScript = .none, firstPort: Int = 0
    ) async throws(Failure) -> Simulator {
        let world = World(feed: feed, script: script)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        do {
            var ports: [VenueName: VenuePort] = [:]
            for (index, venue) in VenueName.allCases.enumerated() {
                ports[venue] = try await VenuePort.open(
                    venue, world: world, group: group, port: firstPort == 0 ? 0 : firstPort + index)
            }
            let control = try await listen(group, port: firstPort == 0 ? 0 : firstPort + VenueName.allCases.count) {
                ControlHandler(world: world)
            }
            return Simulator(world: world, group: group, ports: ports, control: control)
        } catch {
            do { try await group.shutdownGracefully() } catch {}
            throw Failure(description: "cannot listen on 127.0.0.1: \(error)")
        }
    }

    private init(
        world: World, group: MultiThreadedEventLoopGroup, ports: [VenueName: VenuePort], control: any Channel
    ) {
        self.world = world
        self.group = group
        self.ports = Mutex(ports)
        self.control = control
    }

    /// The base address of a venue: `http://127.0.0.1:40001`.
    public func url(of venue: VenueName) -> String {
        "http://127.0.0.1:\(ports.withLock { $0[venue]?.port ?? 0 })"
    }

    /// The base address of the control port.
    public var controlURL: String { "http://127.0.0.1:\(control.localAddress?.port ?? 0)" }

    /// Sets other faults; requests and time count anew.
    public func set(_ script: FaultScript) {
        world.set(script)
    }

    /// Requests that a venue has seen.
    public func requests(of venue: VenueName) -> Int {
        world.requests(of: venue)
    }

    /// Ends every connection and the servers.
    public func stop() async {
        // Throws only if it was stopped before.
        do { try await group.shutdownGracefully() } catch {}
    }
}

/// A server on loopback.
func listen(
    _ group: MultiThreadedEventLoopGroup, port: Int,
    opened: @escaping @Sendable (any Channel) -> Void = { _ in },
    handler: @escaping @Sendable () -> some ChannelInboundHandler
) async throws -> any Channel {
    try await ServerBootstrap(group: group)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .childChannelInitializer { channel in
            opened(channel)
            return channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                try channel.pipeline.syncOperations.addHandler(handler())
            }
        }
        .bind(host: "127.0.0.1", port: port).get()
}
