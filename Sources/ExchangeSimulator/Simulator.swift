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
    private let transport: Transport

    /// Starts the simulator.
    /// - Parameters:
    ///   - feed: Its prices.
    ///   - script: Its faults.
    ///   - firstPort: The port of the first venue, the others behind it and the control port last; 0 for any that are free.
    ///   - host: The address to listen on.
    ///   - isSecure: Whether the venues speak HTTPS, with certificates by an authority of the simulator's own.
    ///   - roundTrip: How far away the venues are; zero for next door.
    /// - Throws: ``Failure`` if a port is taken.
    public static func start(
        feed: PriceFeed, script: FaultScript = .none, firstPort: Int = 0, host: String = "127.0.0.1",
        isSecure: Bool = false, roundTrip: Duration = .zero
    ) async throws(Failure) -> Simulator {
        let world = World(feed: feed, script: script)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        do {
            let transport = try Transport(
                host: host, authority: isSecure ? Authority() : nil,
                roundTrip: roundTrip > .zero ? TimeAmount(roundTrip) : nil)
            var ports: [VenueName: VenuePort] = [:]
            for (index, venue) in VenueName.allCases.enumerated() {
                ports[venue] = try await VenuePort.open(
                    venue, world: world, transport: transport, group: group,
                    port: firstPort == 0 ? 0 : firstPort + index)
            }
            let controlPort = firstPort == 0 ? 0 : firstPort + VenueName.allCases.count
            let control = try await listen(group, host: "127.0.0.1", port: controlPort) { channel in
                try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                try channel.pipeline.syncOperations.addHandler(ControlHandler(world: world))
            }
            return Simulator(world: world, group: group, ports: ports, control: control, transport: transport)
        } catch {
            do { try await group.shutdownGracefully() } catch {}
            throw Failure(description: "cannot listen on \(host): \(error)")
        }
    }

    private init(
        world: World, group: MultiThreadedEventLoopGroup, ports: [VenueName: VenuePort], control: any Channel,
        transport: Transport
    ) {
        self.world = world
        self.group = group
        self.ports = Mutex(ports)
        self.control = control
        self.transport = transport
    }

    /// The base address of a venue: `http://127.0.0.1:40001`.
    public func url(of venue: VenueName) -> String {
        let host = transport.host.contains(":") ? "[\(transport.host)]" : transport.host
        return "\(transport.authority == nil ? "http" : "https")://\(host):\(ports.withLock { $0[venue]?.port ?? 0 })"
    }

    /// The certificate of its authority, PEM; `nil` without TLS.
    public var authority: String? {
        get throws { try transport.authority?.pem }
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
