package import NIOCore
import NIOSSL

/// How servers are reached.
package struct HTTPTransportSettings: Sendable, Hashable {
    /// What a proxy speaks.
    package enum Proxy: Sendable, Hashable {
        /// An HTTP proxy that tunnels with CONNECT.
        case http(host: String, port: Int)
        /// A SOCKS5 proxy; names are resolved by it.
        case socks5(host: String, port: Int)

        var host: String {
            switch self {
            case .http(let host, _), .socks5(let host, _): host
            }
        }

        var port: Int {
            switch self {
            case .http(_, let port), .socks5(_, let port): port
            }
        }
    }

    /// The User-Agent field.
    package var userAgent: String
    /// A PEM file with trust anchors beside the system's.
    package var caFile: String?
    /// The proxy that every server is asked through.
    package var proxy: Proxy?
    /// How long it may take until a connection can be asked: its name, its address, its proxy, its TLS. A deadline is the caller's
    /// cancellation; this is for where nobody cancels.
    package var connectTimeout: Duration

    /// Settings of which every part is given.
    package init(
        userAgent: String, caFile: String? = nil, proxy: Proxy? = nil, connectTimeout: Duration = .seconds(2)
    ) {
        self.userAgent = userAgent
        self.caFile = caFile
        self.proxy = proxy
        self.connectTimeout = connectTimeout
    }
}

/// Asks servers by HTTP/1.1 on one event loop, and keeps the connections: one question at a time on each (RFC 9112).
///
/// It knows what a price needs and no more: GET without a body, no redirects, no cookies, no content codings. So it costs a small part of
/// what a client for everything does, which is most of what a tick costs. The wire below, TLS and SOCKS are SwiftNIO's.
package final class HTTPTransport: Sendable {
    private let eventLoop: any EventLoop
    private let pool: ConnectionPool

    /// - Parameters:
    ///   - settings: How servers are reached.
    ///   - names: Looks their names up.
    ///   - eventLoop: Where the connections live.
    /// - Throws: ``TrustAnchorsError``.
    package init(
        _ settings: HTTPTransportSettings, names: NameLookup, on eventLoop: any EventLoop
    ) throws(TrustAnchorsError) {
        self.eventLoop = eventLoop
        pool = ConnectionPool(try TransportContext(settings), names: names, on: eventLoop)
    }

    /// Whether the file with trust anchors can be used.
    /// - Throws: ``TrustAnchorsError``.
    package static func check(_ settings: HTTPTransportSettings) throws(TrustAnchorsError) {
        _ = try TransportContext(settings)
    }

    /// How servers are reached.
    package var settings: HTTPTransportSettings { pool.context.settings }

    /// Asks, and reads the whole answer. The caller's cancellation ends head and body alike. Without it there is no end to the wait once
    /// a connection is there.
    ///
    /// A kept connection that turns out to have been closed by its server meanwhile is no error: another one is asked (RFC 9112,
    /// section 9.3.1).
    /// - Throws: ``HTTPError``.
    package func execute(_ request: HTTPRequest) async throws(HTTPError) -> HTTPResponse {
        let pending = PendingRequest(request)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                onLoop { self.pool.ask(pending, continuation) }
            }
        } onCancel: {
            onLoop { self.pool.cancel(pending) }
        }
        return try outcome.get()
    }

    /// Has new connections made from now on. What is under way ends as it began.
    package func dropConnections() {
        onLoop { self.pool.drop(forGood: false) }
    }

    /// Keeps no connection any more: another transport takes its place. What is under way ends as it began.
    package func drain() {
        onLoop { self.pool.drop(forGood: true) }
    }

    /// Ends every connection at once; whoever waits is told ``HTTPError/cancelled``.
    package func close() async {
        await withCheckedContinuation { continuation in
            onLoop {
                self.pool.close()
                continuation.resume()
            }
        }
    }

    private func onLoop(_ body: @escaping @Sendable () -> Void) {
        if eventLoop.inEventLoop { body() } else { eventLoop.execute(body) }
    }
}

/// Settings, with what is read once.
struct TransportContext: Sendable {
    let settings: HTTPTransportSettings
    let tls: TLSConfiguration

    init(_ settings: HTTPTransportSettings) throws(TrustAnchorsError) {
        self.settings = settings
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        tls.applicationProtocols = ["http/1.1"]
        if let file = settings.caFile {
            do {
                tls.additionalTrustRoots = [.certificates(try NIOSSLCertificate.fromPEMFile(file))]
            } catch {
                throw TrustAnchorsError(file: file)
            }
        }
        self.tls = tls
    }
}

/// The file with trust anchors holds no certificates that can be read.
package struct TrustAnchorsError: Error, Sendable, Hashable {
    /// Its path.
    package let file: String
}
