import BTCPriceCore
import BTCPriceSocket
import CommandLine
import EventLoopTasks
import Glibc
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Systemd
import UnixSignals

/// The gateway as a program: it creates the parts, runs them, and ends them in order.
struct HTTPGateway {
    private let command: GatewayCommand
    private let logger: Logger

    static func main() async -> Never {
        let command = GatewayCommand.program.readOrExit(Array(Swift.CommandLine.arguments.dropFirst())) {
            line throws(UsageError) in try GatewayCommand(line)
        }
        // If a client is gone, the write must fail with an error, not end the process.
        ServerLimits.raiseDescriptors()
        signal(SIGPIPE, SIG_IGN)
        let logger = Logger(label: "btc-price-http") {
            JournalLogHandler.orStandardError(identifier: $0, environment: processEnvironment())
        }
        do {
            try await HTTPGateway(command: command, logger: logger).run()
            exit(0)
        } catch {
            logger.error("\(error)")
            exit(1)
        }
    }

    private func run() async throws {
        let eventLoop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
        let executor = EventLoopExecutor(eventLoop)
        try await withTaskExecutorPreference(executor) { try await run(on: eventLoop, executor) }
    }

    private func run(on eventLoop: any EventLoop, _ executor: EventLoopExecutor) async throws {
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let environment = processEnvironment()
        let socket = SocketSearch.finder(named: command.socket, environment: { environment[$0] }, uid: getuid())
        let limits = self.limits
        let policy = AccessPolicy(hosts: Set(command.hosts), origins: Set(command.origins))
        let daemon = DaemonClient(maxAge: command.maxAge, socket: socket)
        let kept = { @Sendable in try? await daemon.kept() }
        let streams = NIOLoopBound(
            EventStreams(atMost: limits.streams, socket: socket, kept: kept, on: eventLoop), eventLoop: eventLoop)
        let routes = GatewayRoutes(
            daemon: daemon, policy: policy, maxAge: command.maxAge, requirements: command.requirements,
            hasRoomForStream: { streams.value.hasRoom })
        let shared = NIOLoopBound(
            GatewayConnection.Environment(
                limits: limits, table: GatewayConnections(limits: limits), streams: streams.value, executor: executor,
                clock: HTTPDate(), respond: { await routes.response(to: $0) }), eventLoop: eventLoop)
        let channels = try await listen(bootstrap(shared, on: eventLoop), on: eventLoop)
        let manager = ServiceManager()
        let addresses = channels.compactMap { $0.localAddress?.listing }.joined(separator: ", ")
        manager.ready(status: "Serving at \(addresses)")
        logger.info("Ready: serving the price of \(socket()) at \(addresses).")
        for channel in channels where channel.localAddress?.isLocal == false {
            logger.warning(
                "\(channel.localAddress?.listing ?? "") can be reached from other machines, without encryption. Prefer a reverse proxy with TLS."
            )
        }
        for await _ in signals { break }
        manager.stopping()
        for channel in channels { try? await channel.close() }
        shared.value.table.endAll()
        // Wait up to 2 s for responses that are being prepared.
        for _ in 0..<40 where !shared.value.table.isEmpty { try? await Task.sleep(for: .milliseconds(50)) }
        logger.info("Stopped.")
    }

    private var limits: GatewayLimits {
        var files = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
        // Reserve descriptors for the listeners, the daemon and the runtime.
        return GatewayLimits(connections: min(command.connections, max(8, Int(clamping: files.rlim_cur) - 64)))
    }

    // MARK: - Listening

    private func bootstrap(
        _ shared: NIOLoopBound<GatewayConnection.Environment>, on eventLoop: any EventLoop
    ) -> ServerBootstrap {
        ServerBootstrap(group: eventLoop)
            .serverChannelOption(.backlog, value: 1024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(
                .writeBufferWaterMark, value: .init(low: 1, high: shared.value.limits.queuedBytes)
            )
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 2048))
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let limits = shared.value.limits
                    let arrival = Self.arrival(at: channel.localAddress, from: channel.remoteAddress)
                    if arrival.localAddress != nil {
                        try channel.syncOptions?.setOption(.tcpOption(.tcp_nodelay), value: 1)
                    }
                    let connection = GatewayConnection(shared.value, arrival)
                    var decoding = NIOHTTPDecoderLimitConfiguration()
                    decoding.maxHeaderFieldSize = limits.headerBytes
                    decoding.maxHeaderListSize = limits.headerBytes
                    decoding.maxHeaderFieldCount = limits.headerCount
                    // The connection frames the responses, because the encoder does not know which ones are to HEAD.
                    var encoding = HTTPResponseEncoder.Configuration()
                    encoding.automaticallySetFramingHeaders = false
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(ArrivalHandler(connection))
                    try pipeline.configureHTTPServerPipeline(
                        withOutboundHeaderValidation: false, withEncoderConfiguration: encoding,
                        withDecoderLimitConfiguration: decoding)
                    try pipeline.addHandler(connection)
                }
            }
    }

    private static func arrival(at local: SocketAddress?, from remote: SocketAddress?) -> AccessPolicy.Arrival {
        if case .unixDomainSocket? = local { return AccessPolicy.Arrival(localAddress: nil) }
        // An empty address does not match any host name.
        return AccessPolicy.Arrival(
            localAddress: local?.plainAddress ?? "", remoteAddress: remote?.plainAddress,
            isLocal: remote?.isLocal != false)
    }

    private func listen(_ bootstrap: ServerBootstrap, on eventLoop: any EventLoop) async throws -> [any Channel] {
        var channels: [any Channel] = []
        let passed = try PassedSockets.listeningStreams()
        for descriptor in passed { channels.append(try await bootstrap.withBoundSocket(descriptor).get()) }
        guard passed.isEmpty else { return channels }
        let standard = ListenAddress(ListenAddress.standard).map { [$0] } ?? []
        for address in command.listen.isEmpty ? standard : command.listen {
            do {
                switch address.kind {
                case .tcp(let host, let port): channels.append(try await bootstrap.bind(host: host, port: port).get())
                case .unix(let path):
                    if await Self.isInUse(path, on: eventLoop) { throw IOError(errnoCode: EADDRINUSE, reason: "bind") }
                    channels.append(
                        try await bootstrap.bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get())
                    // As with the daemon's socket, every local user may connect.
                    chmod(path, 0o666)
                }
            } catch {
                let reason = (error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(error)"
                throw ListenFailure(
                    description: (["cannot listen at \(address): \(reason)"]
                        + [PassedSockets.notOurs].compactMap(\.self))
                        .joined(separator: "; "))
            }
        }
        return channels
    }
}

extension HTTPGateway {
    /// Whether a process listens at a socket's file. A file that was left behind is replaced.
    private static func isInUse(_ path: String, on eventLoop: any EventLoop) async -> Bool {
        let client = ClientBootstrap(group: eventLoop)
        guard let channel = try? await client.connect(unixDomainSocketPath: path).get() else { return false }
        try? await channel.close()
        return true
    }
}

private struct ListenFailure: Error, CustomStringConvertible {
    let description: String
}

extension SocketAddress {
    /// `127.0.0.1:8340`, or the path of a Unix socket.
    fileprivate var listing: String {
        guard let address = plainAddress else { return pathname ?? "" }
        return "\(address.bracketedHost):\(port ?? 0)"
    }
}
