import COpenSSL
import Foundation
import NIOCore
import NIOEmbedded
import Testing

@testable import TLS

/// A client and a server, connected in memory.
@Suite struct TLSHandlerTests {
    /// One end of the connection.
    private final class End {
        let channel = EmbeddedChannel()
        let events = Events()

        let handler: TLSHandler
        let requests = ReadCounter()

        init(_ handler: TLSHandler) throws {
            self.handler = handler
            try channel.pipeline.syncOperations.addHandlers([requests, handler, events])
        }
    }

    /// What is asked of the network.
    private final class ReadCounter: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        var count = 0

        func read(context: ChannelHandlerContext) {
            count += 1
            context.read()
        }
    }

    /// What the handlers after TLS see.
    private final class Events: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        var isEstablished = false
        var received: [UInt8] = []
        var errors: [TLSError] = []

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            received += unwrapInboundIn(data).readableBytesView
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if event is TLSHandler.Established { isEstablished = true }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            if let error = error as? TLSError { errors.append(error) }
        }
    }

    private let client: End
    private let server: End

    /// - Parameter names: What the server's certificate is for, as OpenSSL's subjectAltName.
    private init(_ peer: TLSContext.Peer, certificateFor names: String) throws {
        let certificate = try Certificate.of(names)
        let trusting = try TLSContext.client(trusting: certificate.chain, protocols: ["http/1.1"])
        try self.init(client: trusting, peer, server: certificate.server())
    }

    private init(client: TLSContext, _ peer: TLSContext.Peer, server: TLSContext) throws {
        self.client = try End(TLSHandler(client, to: peer))
        self.server = try End(TLSHandler(server))
        try self.client.channel.connect(to: SocketAddress(unixDomainSocketPath: "/client")).wait()
        try self.server.channel.connect(to: SocketAddress(unixDomainSocketPath: "/server")).wait()
    }

    init() throws { try self.init(.name("exchange.test"), certificateFor: "DNS:exchange.test") }

    /// Passes on what both have sent, until neither sends anything.
    /// - Parameters:
    ///   - piece: The most bytes that arrive at once.
    ///   - change: Changes what the server has sent.
    private func exchange(piece: Int = .max, change: (inout ByteBuffer) -> Void = { _ in }) throws {
        var isBusy = true
        while isBusy {
            isBusy = false
            for (from, to) in [(client, server), (server, client)] {
                while var bytes = try from.channel.readOutbound(as: ByteBuffer.self) {
                    isBusy = true
                    if from === server { change(&bytes) }
                    while let slice = bytes.readSlice(length: min(piece, max(bytes.readableBytes, 1))) {
                        // The error is also an event.
                        do { try to.channel.writeInbound(slice) } catch {}
                    }
                }
            }
        }
    }

    private func send(_ text: String, from end: End) {
        end.channel.writeAndFlush(ByteBuffer(string: text), promise: nil)
    }

    @Test(arguments: [Int.max, 1000, 7, 1]) func `what one sends the other receives, however it arrives`(piece: Int)
        throws
    {
        try exchange(piece: piece)
        #expect(client.events.isEstablished && server.events.isEstablished)
        let long = String(repeating: "request ", count: 10_000)
        send(long, from: client)
        send("", from: client)
        send("response", from: server)
        try exchange(piece: piece)
        #expect(String(decoding: server.events.received, as: UTF8.self) == long)
        #expect(String(decoding: client.events.received, as: UTF8.self) == "response")
        #expect(client.events.errors.isEmpty && server.events.errors.isEmpty)
    }

    @Test func `the end of TLS closes the channel, and one without it is told`() throws {
        try exchange()
        send("last", from: server)
        server.channel.close(promise: nil)
        try exchange()
        #expect(String(decoding: client.events.received, as: UTF8.self) == "last")
        #expect(!client.channel.isActive && client.events.errors.isEmpty)

        let other = try TLSHandlerTests()
        try other.exchange()
        other.client.channel.pipeline.fireChannelInactive()
        #expect(other.client.events.errors == [.truncated])
    }

    @Test func `what is not TLS is an error, and nothing of it is received`() throws {
        do { try client.channel.writeInbound(ByteBuffer(string: "HTTP/1.1 400 Bad Request\r\n\r\n")) } catch {}
        #expect(client.events.errors == [.failed(reason: "wrong version number")])
        #expect(!client.events.isEstablished && client.events.received.isEmpty && !client.channel.isActive)
    }

    /// As many as `BTC_PRICED_HANDSHAKES` says.
    @Test func `of a connection whose bytes are changed, only what was sent is received`() throws {
        let count = ProcessInfo.processInfo.environment["BTC_PRICED_HANDSHAKES"].flatMap(Int.init) ?? 500
        let certificate = try Certificate.of("DNS:exchange.test")
        let (trusting, serving) = (
            try TLSContext.client(trusting: certificate.chain, protocols: ["http/1.1"]), try certificate.server()
        )
        var refused = 0
        for _ in 0..<count {
            let pair = try TLSHandlerTests(client: trusting, .name("exchange.test"), server: serving)
            // The handshake has some 1,000 bytes.
            var (place, left) = (Int.random(in: 0..<1500), Int.random(in: 1...3))
            func change(_ bytes: inout ByteBuffer) {
                guard left > 0 else { return }
                guard place < bytes.readableBytes else {
                    place -= bytes.readableBytes
                    return
                }
                left -= 1
                let start = bytes.readerIndex + place
                switch Int.random(in: 0..<3) {
                case 0: bytes.setInteger(UInt8.random(in: 0...255), at: start)
                case 1: bytes.moveWriterIndex(to: start)
                default:
                    bytes.writeImmutableBuffer(bytes.getSlice(at: start, length: bytes.writerIndex - start) ?? .init())
                }
            }
            try pair.exchange(piece: .random(in: 1...600), change: change)
            if pair.server.events.isEstablished { pair.send("response", from: pair.server) }
            try pair.exchange(change: change)
            #expect("response".utf8.starts(with: pair.client.events.received))
            if !pair.client.events.errors.isEmpty {
                refused += 1
                #expect(!pair.client.channel.isActive)
            }
        }
        #expect(refused > count / 3)
    }

    @Test func `what is written before the handshake is done fails, and is not sent`() throws {
        let promise = client.channel.eventLoop.makePromise(of: Void.self)
        client.channel.writeAndFlush(ByteBuffer(string: "too early"), promise: promise)
        #expect(throws: ChannelError.self) { try promise.futureResult.wait() }
        try exchange()
        #expect(server.events.isEstablished && server.events.received.isEmpty)
    }

    /// Names are compared as in RFC 9525.
    @Test(arguments: [
        ("api.exchange.test", "DNS:api.exchange.test", true),
        ("API.Exchange.test", "DNS:api.eXchange.TEST", true),
        ("api.exchange.test.", "DNS:api.exchange.test", true),
        ("api.exchange.test", "DNS:other.test,DNS:*.exchange.test", true),
        ("api.exchange.test", "DNS:*.EXCHANGE.test", true),
        ("exchange.test", "DNS:*.exchange.test", false),
        ("v3.api.exchange.test", "DNS:*.exchange.test", false),
        ("exchange.test", "DNS:*.test", false),
        ("api.exchange.test", "DNS:a*.exchange.test", false),
        ("api.exchange.test", "DNS:api.*.test", false),
        ("api.exchange.test", "DNS:*", false),
        ("api.exchange.test", "DNS:exchange.test", false),
        ("localhost", "DNS:localhost", true),
        ("localhost", "DNS:*.localhost", false),
        // A certificate for the connected address is not one for the name, and neither is one with the name as its subject.
        ("localhost", "IP:127.0.0.1", false),
    ])
    func `a certificate for a name, with an asterisk for one label`(name: String, presented: String, expected: Bool)
        throws
    {
        try expectIdentity(.name(name), presented, expected)
    }

    @Test(arguments: [
        ("192.0.2.7", "IP:192.0.2.7", true), ("192.0.2.7", "IP:192.0.2.8", false),
        ("192.0.2.7", "DNS:192.0.2.7", false), ("2001:db8::7", "IP:2001:db8::7", true),
        ("2001:db8:0::7", "IP:2001:db8::7", true), ("2001:db8::7", "IP:2001:db8::8", false),
    ])
    func `a certificate for an address`(address: String, presented: String, expected: Bool) throws {
        try expectIdentity(.address(address), presented, expected)
    }

    private func expectIdentity(_ peer: TLSContext.Peer, _ presented: String, _ expected: Bool) throws {
        let pair = try TLSHandlerTests(peer, certificateFor: presented)
        try pair.exchange()
        #expect(pair.client.events.isEstablished == expected)
        #expect(pair.client.events.errors == (expected ? [] : [.otherHost]))
        // The server learns that it was refused.
        #expect(pair.server.events.errors.isEmpty == expected)
    }

    @Test func `a certificate from an authority that is not trusted is refused`() throws {
        let certificate = try Certificate.of("DNS:exchange.test")
        let pair = try TLSHandlerTests(
            client: .client(trusting: nil, protocols: ["http/1.1"]), .name("exchange.test"),
            server: certificate.server())
        try pair.exchange()
        #expect(pair.client.events.errors == [.untrusted(reason: "self-signed certificate")])
        #expect(!pair.client.events.isEstablished)
    }

    @Test func `a name that can't be checked is an error, not a connection without a check`() throws {
        let context = try TLSContext.client(trusting: nil, protocols: ["http/1.1"])
        for peer in [TLSContext.Peer.name(""), .name("."), .address("exchange.test"), .address("")] {
            #expect(throws: TLSError.self) { try TLSHandler(context, to: peer) }
        }
    }

    @Test func `a session is resumed by the next connection to the same server alone`() throws {
        let certificate = try Certificate.of("DNS:exchange.test,DNS:other.test")
        let (trusting, serving) = (
            try TLSContext.client(trusting: certificate.chain, protocols: ["http/1.1"]), try certificate.server()
        )
        func handshakeSize(_ name: String, by client: TLSContext? = nil) throws -> Int {
            let pair = try TLSHandlerTests(client: client ?? trusting, .name(name), server: serving)
            // The first message of the client, and all that the server says to it.
            while let bytes = try pair.client.channel.readOutbound(as: ByteBuffer.self) {
                try pair.server.channel.writeInbound(bytes)
            }
            var size = 0
            while let bytes = try pair.server.channel.readOutbound(as: ByteBuffer.self) {
                size += bytes.readableBytes
                try pair.client.channel.writeInbound(bytes)
            }
            try pair.exchange()
            #expect(pair.client.events.isEstablished)
            return size
        }
        let full = try handshakeSize("exchange.test")
        // Without the certificate.
        #expect(try handshakeSize("exchange.test") < full - 300)
        #expect(try handshakeSize("other.test") > full - 100)
        // One that follows a resumed session checks the certificate again.
        #expect(try handshakeSize("exchange.test") > full - 100)
        #expect(try handshakeSize("exchange.test") < full - 300)
        _ = try handshakeSize("exchange.test")
        trusting.forgetSessions()
        #expect(try handshakeSize("exchange.test") > full - 100)
        let anonymous = try TLSContext.client(trusting: certificate.chain, protocols: [], resumes: false)
        for _ in 0..<2 { #expect(try handshakeSize("exchange.test", by: anonymous) > full - 100) }
    }

    @Test func `a read goes on until data has come`() throws {
        try exchange()
        send("response", from: server)
        var record = try #require(try server.channel.readOutbound(as: ByteBuffer.self))
        client.channel.read()
        let count = client.requests.count
        let part = record.readSlice(length: 7)
        try client.channel.writeInbound(part)
        // What came was no data, so the next is asked for.
        #expect(client.requests.count == count + 1)
        try client.channel.writeInbound(record)
        #expect(client.events.received == Array("response".utf8))
        #expect(client.requests.count == count + 1)
    }

    @Test func `a server that sends messages of TLS for ever is left`() throws {
        try exchange()
        for _ in 0..<10_000 where client.channel.isActive {
            SSL_key_update(server.handler.connection, SSL_KEY_UPDATE_NOT_REQUESTED)
            SSL_do_handshake(server.handler.connection)
            // The handler sends what OpenSSL has written.
            server.channel.pipeline.fireChannelRead(ByteBuffer())
            try exchange()
        }
        #expect(client.events.errors == [.failed(reason: "too many messages without data")])
        #expect(!client.channel.isActive)
    }

    @Test func `files that are not certificates are refused with a reason`() throws {
        let file = "\(NSTemporaryDirectory())/not-a-certificate-\(UUID().uuidString)"
        try "text".write(toFile: file, atomically: true, encoding: .utf8)
        defer { unlink(file) }
        #expect(throws: TLSError.self) { try TLSContext.client(trusting: file, protocols: []) }
        #expect(throws: TLSError.self) { try TLSContext.server(certificates: file, key: file) }
    }
}

/// A certificate that is its own authority, and its key, made by openssl(1).
private final class Certificate {
    let (chain, key): (String, String)

    /// - Parameter base: The path of the files, without their endings.
    private init(_ base: String) { (chain, key) = ("\(base).pem", "\(base).key") }

    deinit {
        unlink(chain)
        unlink(key)
    }

    func server() throws -> TLSContext { try .server(certificates: chain, key: key) }

    /// - Parameter names: OpenSSL's subjectAltName.
    static func of(_ names: String) throws -> Certificate {
        let base = FileManager.default.temporaryDirectory.appending(path: "btc-priced-\(UUID().uuidString)").path
        let openssl = Process()
        openssl.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        openssl.arguments =
            [
                "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-days", "2", "-subj",
                "/CN=localhost",
            ]
            + ["-addext", "subjectAltName=\(names)", "-keyout", "\(base).key", "-out", "\(base).pem"]
        openssl.standardError = FileHandle.nullDevice
        try openssl.run()
        openssl.waitUntilExit()
        try #require(openssl.terminationStatus == 0)
        return Certificate(base)
    }
}
