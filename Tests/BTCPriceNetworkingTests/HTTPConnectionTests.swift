import BTCPriceCore
import Glibc
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import BTCPriceNetworking

/// Connections that never open, against a real server that does not respond, or resets the connection.
@Suite(.timeLimit(.minutes(3))) struct ConnectionTests {
    /// The behaviour of a server towards its clients.
    enum Manner: Sendable, Equatable {
        case silent
        case resetting
        /// Responds to each request, as far as a connection may have that many. The next request closes it without a byte.
        case responding(requestsOfConnection: Int)
        /// Responds to the requests once ``Server/respond()`` is called.
        case late
    }

    private final class Responder: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private var left: Int
        private let requests: Counter
        private let gate: EventLoopFuture<Void>

        init(_ left: Int, _ requests: Counter, after gate: EventLoopFuture<Void>) {
            (self.left, self.requests, self.gate) = (left, requests, gate)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            requests.add()
            left -= 1
            guard left >= 0 else { return context.close(promise: nil) }
            let response = ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
            gate.whenComplete { _ in bound.value.writeAndFlush(NIOAny(response), promise: nil) }
        }
    }

    final class Server: Sendable {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let port: Int
        private let opened: Counter
        private let closed: Counter
        private let requests = Counter()
        private let gate: EventLoopPromise<Void>

        init(_ manner: Manner) async throws {
            let (opened, closed, requests, gate) = (
                Counter(), Counter(), requests, group.next().makePromise(of: Void.self)
            )
            (self.opened, self.closed, self.gate) = (opened, closed, gate)
            let most: Int?
            switch manner {
            case .silent, .resetting: most = nil
            case .responding(let requests): most = requests
            case .late: most = .max
            }
            if manner != .late { gate.succeed() }
            let channel = try await ServerBootstrap(group: group)
                .childChannelInitializer { channel in
                    opened.add()
                    channel.closeFuture.whenComplete { _ in closed.add() }
                    if let most {
                        return channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.addHandler(
                                Responder(most, requests, after: gate.futureResult))
                        }
                    }
                    guard manner == .resetting, let options = channel as? any SocketOptionProvider else {
                        return channel.eventLoop.makeSucceededVoidFuture()
                    }
                    // With a linger time of zero, the end is a reset (socket(7)).
                    return options.setSoLinger(linger(l_onoff: 1, l_linger: 0)).flatMap { channel.close() }
                }
                .bind(host: "127.0.0.1", port: 0).get()
            port = channel.localAddress?.port ?? 0
        }

        var openedCount: Int { opened.count }
        var closedCount: Int { closed.count }
        var requestCount: Int { requests.count }

        func respond() { gate.succeed() }

        func stop() async throws { try await group.shutdownGracefully() }
    }

    private func transport(
        on group: MultiThreadedEventLoopGroup, proxy: HTTPTransportSettings.Proxy? = nil, connectTimeout: Duration
    ) throws -> HTTPTransport {
        try HTTPTransport(
            HTTPTransportSettings(userAgent: "test", proxy: proxy, connectTimeout: connectTimeout), names: NameLookup(),
            on: group.next())
    }

    private func outcome(_ transport: HTTPTransport, _ url: String) async throws -> String {
        let request = try #require(HTTPRequest(url))
        do throws(HTTPError) {
            return "\(try await transport.execute( request).status)"
        } catch {
            return "\(error)"
        }
    }

    /// Gives a request up once it is under way.
    private func giveUp(
        _ transport: HTTPTransport, _ url: String, during change: () -> Void = {}, once isUnderWay: () -> Bool
    ) async throws {
        let task = Task { try await outcome(transport, url) }
        while !isUnderWay() { await Task.yield() }
        change()
        task.cancel()
        #expect(try await task.value == "cancelled")
    }

    enum Way: String, CaseIterable {
        case tls, http, socks5
    }

    @Test(arguments: Way.allCases) func `a handshake that stalls ends without a cancellation`(way: Way)
        async throws
    {
        let server = try await Server(.silent)
        let (proxy, url): (HTTPTransportSettings.Proxy?, String) =
            switch way {
            case .tls: (nil, "https://127.0.0.1:\(server.port)/")
            case .http: (.http(host: "127.0.0.1", port: server.port), "http://exchange.test/")
            case .socks5: (.socks5(host: "127.0.0.1", port: server.port), "http://exchange.test/")
            }
        let transport = try transport(on: server.group, proxy: proxy, connectTimeout: .milliseconds(50))
        #expect(try await outcome(transport, url) == "connectTimedOut")
        while server.closedCount < 1 { await Task.yield() }
        await transport.close()
        try await server.stop()
    }

    @Test func `a replaced transport leaves no stalled connection behind`() async throws {
        let server = try await Server(.silent)
        // With this timeout, only the replacement can end the connection in time.
        let transport = try transport(on: server.group, connectTimeout: .seconds(3600))
        let url = "https://127.0.0.1:\(server.port)/"
        try await giveUp(transport, url, during: { transport.drain() }, once: { server.openedCount >= 1 })
        while server.closedCount < 1 { await Task.yield() }
        // A late request leaves none either.
        try await giveUp(transport, url) { server.openedCount >= 2 }
        while server.closedCount < 2 { await Task.yield() }
        try await server.stop()
    }

    @Test func `a replaced transport keeps no connection, whatever is dropped later`() async throws {
        let server = try await Server(.silent)
        let transport = try transport(on: server.group, connectTimeout: .seconds(3600))
        transport.drain()
        transport.dropConnections()
        let task = Task { try await outcome(transport, "https://127.0.0.1:\(server.port)/") }
        while server.openedCount < 1 { await Task.yield() }
        task.cancel()
        #expect(try await task.value == "cancelled")
        while server.closedCount < 1 { await Task.yield() }
        try await server.stop()
    }

    @Test(arguments: ["http", "https"]) func `a reset by the server is detected at once`(scheme: String)
        async throws
    {
        let server = try await Server(.resetting)
        // On a separate thread, so that the reset occurs at any stage.
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        for _ in 0..<30 {
            let transport = try transport(on: group, connectTimeout: .seconds(3600))
            let text = try await outcome(transport, "\(scheme)://127.0.0.1:\(server.port)/")
            let known = ["closedEarly", "lost(", "notConnected(", "other(TLS.TLSError.failed"]
            #expect(known.contains { text.hasPrefix($0) }, "\(text)")
            await transport.close()
        }
        try await group.shutdownGracefully()
        try await server.stop()
    }

    @Test func `a request is not sent again by itself if a kept connection is closed`() async throws {
        let server = try await Server(.responding(requestsOfConnection: 1))
        let transport = try transport(on: server.group, connectTimeout: .seconds(3600))
        var outcomes: [String] = []
        for _ in 0..<4 { outcomes.append(try await outcome(transport, "http://127.0.0.1:\(server.port)/")) }
        #expect(outcomes == ["200", "keptConnectionClosed", "200", "keptConnectionClosed"])
        #expect((server.openedCount, server.requestCount) == (2, 4))
        await transport.close()
        try await server.stop()
    }

    /// A new one would need the time that was too long again.
    @Test func `a connection whose response comes too late is kept, and free once it has come`() async throws {
        let server = try await Server(.late)
        let transport = try transport(on: server.group, connectTimeout: .seconds(3600))
        let url = "http://127.0.0.1:\(server.port)/"
        for count in 1...2 { try await giveUp(transport, url) { server.requestCount >= count } }
        #expect((server.openedCount, server.closedCount) == (2, 0), "one whose response is due is not free")
        server.respond()
        for _ in 0..<4 { #expect(try await outcome(transport, url) == "200") }
        #expect(server.openedCount <= 3 && server.closedCount == 0)
        await transport.close()
        try await server.stop()
    }

    @Test func `a connection that shakes hands when its request is given up is for the next one`() async throws {
        let server = try await Server(.silent)
        let transport = try transport(on: server.group, connectTimeout: .seconds(3600))
        let url = "https://127.0.0.1:\(server.port)/"
        try await giveUp(transport, url) { server.openedCount >= 1 }
        // Of two more requests, one has the first connection.
        let others = (0..<2).map { _ in Task { try await outcome(transport, url) } }
        while server.openedCount < 2 { await Task.yield() }
        #expect((server.openedCount, server.closedCount) == (2, 0))
        await transport.close()
        for other in others { #expect(try await other.value == "cancelled") }
        try await server.stop()
    }

    @Test func `a connection whose late response never comes is closed`() async throws {
        let server = try await Server(.late)
        let transport = try transport(on: server.group, connectTimeout: .milliseconds(50))
        try await giveUp(transport, "http://127.0.0.1:\(server.port)/") { server.requestCount >= 1 }
        while server.closedCount < 1 { await Task.yield() }
        server.respond()
        await transport.close()
        try await server.stop()
    }

    /// The server's name may have another address by then.
    @Test func `after a response that can't be used, the next request has a new connection`() async throws {
        let server = try await Server(.responding(requestsOfConnection: 99))
        let loop = TickLoop()
        let client = try ExchangeClient(HTTPTransportSettings(userAgent: "test"), on: loop)
        let request = try #require(HTTPRequest("http://127.0.0.1:\(server.port)/"))
        for _ in 0..<2 { #expect(try await client.get(request) { $0.status } == 200) }
        #expect(server.openedCount == 1)
        await #expect(throws: PriceLoadingError.invalidData("no price")) {
            try await client.get(request) { (_) throws(PriceLoadingError) -> Int in throw .invalidData("no price") }
        }
        #expect(try await client.get(request) { $0.status } == 200)
        #expect(server.openedCount == 2)
        client.dropConnections(of: request)
        #expect(try await client.get(request) { $0.status } == 200)
        #expect(server.openedCount == 3)
        await client.shutdown()
        await loop.shutDown()
        try await server.stop()
    }
}
