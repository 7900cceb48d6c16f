import BTCPriceCore
import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
import TLS

/// Real HTTP and WebSocket servers on loopback that behave like the exchanges: one port per venue, and a control port.
package struct Simulator: Sendable {
    /// A port can't be opened.
    package struct Failure: Error, Sendable, CustomStringConvertible {
        /// The address and the reason.
        package let description: String
    }

    private let world: World
    private let groups: [MultiThreadedEventLoopGroup]
    private let ports: [VenueName: VenuePort]
    private let control: any Channel
    private let transport: Transport
    private let described: (exchanges: DescribedExchanges, port: Int)?

    /// Starts the simulator.
    /// - Parameters:
    ///   - firstPort: The port of the first venue. The other venues, the described exchanges, which share one, and then the control
    ///     port follow; 0 for any free ports.
    ///   - host: The address to listen on.
    ///   - trades: The number of trades per second while a stream listens.
    ///   - descriptions: A file or a directory with descriptions of more exchanges; `nil` for none.
    ///   - certificates: The folder with the certificates for HTTPS, see ``CertificateFolder``; `nil` for plain HTTP.
    /// - Throws: ``Failure`` if a port is in use or a certificate can't be read.
    package static func start(
        feed: PriceSeries, script: FaultScript = .none, firstPort: Int = 0, host: String = "127.0.0.1",
        roundTrip: Duration = .zero, trades: Double = 5, descriptions: String? = nil, certificates: String? = nil
    ) async throws(Failure) -> Simulator {
        let world = World(feed: feed, script: script, tradesPerSecond: trades)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        // The control port has its own thread: streams that keep the other one busy do not delay a fault.
        let controlGroup = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        do {
            let transport = try Transport(
                host: host, certificates: certificates.map(CertificateFolder.init),
                roundTrip: roundTrip > .zero ? TimeAmount(roundTrip) : nil)
            var ports: [VenueName: VenuePort] = [:]
            for (index, venue) in VenueName.allCases.enumerated() {
                ports[venue] = try await VenuePort.open(
                    venue, world: world, transport: transport, group: group,
                    port: firstPort == 0 ? 0 : firstPort + index)
            }
            var described: (exchanges: DescribedExchanges, port: Int)?
            if let descriptions {
                let exchanges = try DescribedExchanges(path: descriptions, world: world)
                let port = firstPort == 0 ? 0 : firstPort + VenueName.allCases.count
                let channel = try await listen(group, host: host, port: port) { channel in
                    let pipeline = channel.pipeline.syncOperations
                    if let context = transport.context {
                        try pipeline.addHandler(TLSHandler(context))
                    }
                    try pipeline.configureHTTPServerPipeline()
                    try pipeline.addHandler(AnsweringHandler { head, _ in exchanges.response(to: head.uri) })
                }
                described = (exchanges, channel.localAddress?.port ?? 0)
            }
            let before = VenueName.allCases.count + (described == nil ? 0 : 1)
            let controlPort = firstPort == 0 ? 0 : firstPort + before
            let answers = ControlPort(world: world, described: described?.exchanges)
            let control = try await listen(controlGroup, host: "127.0.0.1", port: controlPort) { channel in
                try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                try channel.pipeline.syncOperations.addHandler(AnsweringHandler { answers.answer($0, $1) })
            }
            return Simulator(
                world: world, groups: [group, controlGroup], ports: ports, control: control, transport: transport,
                described: described)
        } catch {
            await end([group, controlGroup])
            let reason = (error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(error)"
            throw Failure(description: "cannot start on \(host): \(reason)")
        }
    }

    /// The base address of a venue: `http://127.0.0.1:40001`.
    package func url(of venue: VenueName) -> String {
        "\(transport.base):\(ports[venue]?.port ?? 0)"
    }

    /// The names and base addresses of the described exchanges.
    var describedURLs: [(name: String, url: String)] {
        guard let described else { return [] }
        return described.exchanges.names.map { ($0, "\(transport.base):\(described.port)/\($0)") }
    }

    var controlURL: String { "http://127.0.0.1:\(control.localAddress?.port ?? 0)" }

    /// Replaces the faults. The counts of requests and the time start again.
    package func set(_ script: FaultScript) {
        world.set(script)
    }

    package func requests(of venue: VenueName) -> Int {
        world.requests(of: venue)
    }

    package func streams(of venue: VenueName) -> StreamCounter {
        world.streams(of: venue)
    }

    /// Returns after ``stop()``.
    func untilStopped() async {
        do { try await control.closeFuture.get() } catch {}
    }

    /// Ends every connection and the servers.
    package func stop() async {
        for port in ports.values { await port.stop() }
        await Self.end(groups)
    }

    private static func end(_ groups: [MultiThreadedEventLoopGroup]) async {
        // Throws only if it was ended before.
        for group in groups { do { try await group.shutdownGracefully() } catch {} }
    }
}

/// The control port: `POST /faults` sets a new fault script, `GET /requests` returns the number of requests to each venue,
/// `GET /limits` the peak number of requests in the time span of each limit, and `GET /streams` the counts of the streams.
/// `POST /price/NAME` multiplies the price of a described exchange by the factor in the body.
struct ControlPort: Sendable {
    let world: World
    let described: DescribedExchanges?

    func answer(_ head: HTTPRequestHead, _ body: ByteBuffer) -> AnsweringHandler.Response {
        let (status, text) = text(head, body)
        return (status, HTTPHeaders([("Content-Length", "\(text.utf8.count)")]), ByteBuffer(string: text))
    }

    private func text(_ head: HTTPRequestHead, _ body: ByteBuffer) -> (HTTPResponseStatus, String) {
        switch (head.method, head.uri) {
        case (.POST, "/faults"):
            do {
                world.set(try FaultScript(String(buffer: body)))
                return (.ok, "")
            } catch {
                return (.badRequest, "\(error)\n")
            }
        case (.GET, "/requests"):
            return (.ok, VenueName.allCases.map { "\($0.rawValue) \(world.requests(of: $0))\n" }.joined())
        case (.GET, "/limits"): return (.ok, world.limits)
        case (.GET, "/streams"):
            return (.ok, VenueName.allCases.map { "\($0.rawValue) \(world.streams(of: $0).text)\n" }.joined())
        case (.POST, let uri) where uri.hasPrefix("/price/"):
            let factor = Price(String(buffer: body))
            let isKnown = factor.map { described?.multiply(String(uri.dropFirst("/price/".count)), by: $0) == true }
            return isKnown == true ? (.ok, "") : (.badRequest, "POST /price/NAME with a factor, such as 1.05\n")
        default: return (.notFound, "POST /faults, GET /requests, GET /limits or GET /streams\n")
        }
    }
}
