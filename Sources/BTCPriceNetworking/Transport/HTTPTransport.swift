import Glibc
package import NIOCore
import TLS

package struct HTTPTransportSettings: Sendable, Hashable {
    /// A proxy and its protocol.
    package enum Proxy: Sendable, Hashable {
        /// An HTTP proxy that tunnels with CONNECT.
        case http(host: String, port: Int)
        /// A SOCKS5 proxy, which resolves the names.
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

    package var userAgent: String
    /// A PEM file with trust anchors in addition to the system's.
    package var caFile: String?
    package var proxy: Proxy?
    /// The timeout for opening a connection: name lookup, connect, proxy and TLS. A request has none; its caller cancels it.
    package var connectTimeout: Duration

    package init(
        userAgent: String, caFile: String? = nil, proxy: Proxy? = nil, connectTimeout: Duration = .seconds(2)
    ) {
        self.userAgent = userAgent
        self.caFile = caFile
        self.proxy = proxy
        self.connectTimeout = connectTimeout
    }
}

/// An HTTP/1.1 client on one event loop that keeps its connections, with one request at a time on each (RFC 9112).
///
/// It supports what a price needs: GET without a body, no redirects, no cookies, no content codings. The cost of a general client
/// would be most of the cost of a tick; this one costs a small part of that. SwiftNIO does I/O and SOCKS.
package final class HTTPTransport: Sendable {
    private let eventLoop: any EventLoop
    private let pool: ConnectionPool

    /// - Parameter settings: Timeout, proxy, trust anchors and User-Agent.
    /// - Throws: ``TrustAnchorsError``.
    package init(
        _ settings: HTTPTransportSettings, names: NameLookup, on eventLoop: any EventLoop
    ) throws(TrustAnchorsError) {
        self.eventLoop = eventLoop
        pool = ConnectionPool(Dialer(try TransportContext(settings), names: names, on: eventLoop))
    }

    package var settings: HTTPTransportSettings { pool.dialer.context.settings }

    /// Sends a request and returns the complete response. Cancelling the task ends it. An open connection has no other timeout.
    /// - Throws: ``HTTPError``.
    package func execute(_ request: HTTPRequest) async throws(HTTPError) -> HTTPResponse {
        let pending = PendingRequest(request)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                onLoop { self.pool.start(pending, continuation) }
            }
        } onCancel: {
            onLoop { self.pool.cancel(pending) }
        }
        return try outcome.get()
    }

    /// Opens a connection as a request would, and closes it: nothing is sent to the server.
    /// - Throws: ``HTTPError``, at the latest after the timeout for opening a connection.
    func tryConnection(for request: HTTPRequest) async throws(HTTPError) {
        let outcome = await withCheckedContinuation { continuation in
            onLoop {
                let dial = Dial(
                    to: request.origin, by: self.pool.dialer,
                    receiveBuffer: FixedSizeRecvByteBufferAllocator(capacity: 4096)
                ) { result in continuation.resume(returning: result.map { $0.close(promise: nil) }) }
                dial.start()
            }
        }
        try outcome.get()
    }

    /// Makes a WebSocket connection, which is not opened yet. Called on the event loop's thread.
    func webSocket(_ request: HTTPRequest, delegate: any WebSocketDelegate) -> WebSocketConnection {
        WebSocketConnection(request, by: pool.dialer, delegate: delegate)
    }

    /// Uses new connections to a request's server from now on. Pending requests finish on their connections.
    func dropConnections(of request: HTTPRequest) {
        onLoop { self.pool.drop(to: request.origin) }
    }

    /// Uses new connections from now on, which no exchange can link to the old ones. Pending requests finish on their connections.
    package func dropConnections() {
        onLoop {
            self.pool.drop(forGood: false)
            self.pool.dialer.context.tls.forgetSessions()
        }
    }

    /// Keeps no connections from now on, since another transport replaces this one. Pending requests finish on their connections.
    package func drain() {
        onLoop { self.pool.drop(forGood: true) }
    }

    /// Closes every connection at once. Pending requests fail with ``HTTPError/cancelled``.
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

/// The settings, and the TLS context made from them.
struct TransportContext: Sendable {
    let settings: HTTPTransportSettings
    let tls: TLSContext

    init(_ settings: HTTPTransportSettings) throws(TrustAnchorsError) {
        self.settings = settings
        do throws(TLSError) {
            // A proxy such as Tor may hide the address, which a session would betray.
            tls = try .client(trusting: nil, protocols: ["http/1.1"], resumes: settings.proxy == nil)
        } catch {
            throw TrustAnchorsError(description: tlsReason(error))
        }
        guard let file = settings.caFile else { return }
        // A FIFO would block.
        var status = stat()
        if stat(file, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
            throw TrustAnchorsError(description: "tls.ca-file: \(file) is not a regular file")
        }
        do throws(TLSError) {
            try tls.trust(file)
        } catch {
            let problem =
                access(file, R_OK) == 0
                ? " holds no certificates that can be read" : ": \(String(cString: strerror(errno)))"
            throw TrustAnchorsError(description: "tls.ca-file: \(file)\(problem)")
        }
    }
}

/// The file with trust anchors can't be read, or contains no valid certificates.
package struct TrustAnchorsError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The setting and its error.
    package let description: String
}
