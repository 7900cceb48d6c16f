package import BTCPriceCore
import NIOCore
import Synchronization
import TLS

import func Glibc.strerror

/// The HTTP client that all loaders share. It turns HTTP errors into loading errors.
///
/// It uses HTTP/1.1: with HTTP/2, a single dead connection made every following request fail.
package final class ExchangeClient: Sendable {
    private let loop: TickLoop
    private let transport: Mutex<HTTPTransport>
    private let names = NameLookup()
    /// The waits of the exchanges' streams by their addresses, which outlast a change of the configuration.
    let streamWaits = Mutex<[String: StreamBackoff]>([:])

    /// - Parameter settings: The HTTP settings. Without a User-Agent Coinbase responds with 400.
    /// - Throws: ``TrustAnchorsError`` if the file with trust anchors can't be used.
    package init(_ settings: HTTPTransportSettings, on loop: TickLoop) throws(TrustAnchorsError) {
        self.loop = loop
        transport = Mutex(try HTTPTransport(settings, names: names, on: loop.eventLoop))
    }

    /// Uses other settings from now on. Pending requests finish with the old ones.
    /// - Throws: ``TrustAnchorsError`` if the file with trust anchors can't be used; then nothing has changed.
    package func apply(_ settings: HTTPTransportSettings) throws(TrustAnchorsError) {
        let new = try HTTPTransport(settings, names: names, on: loop.eventLoop)
        let old = transport.withLock { transport in
            defer { transport = new }
            return transport
        }
        old.drain()
    }

    /// Restarts name lookups and uses new connections. After a suspend the kept ones are dead, which only a timeout would show.
    package func dropConnections() {
        names.restart()
        transport.withLock(\.self).dropConnections()
    }

    /// Checks that a client can be made from these settings.
    /// - Throws: ``TrustAnchorsError`` if the file with trust anchors can't be used.
    package static func check(_ settings: HTTPTransportSettings) throws(TrustAnchorsError) {
        _ = try TransportContext(settings)
    }

    /// Closes every connection. The client can't be used afterwards.
    package func shutdown() async {
        names.cancel()
        await transport.withLock(\.self).close()
    }

    /// Sends one request and returns the complete response. Cancelling the task ends it at any point.
    /// - Parameter request: `nil` if the address of the source is not a valid URL.
    func get(_ request: HTTPRequest?) async throws(PriceLoadingError) -> HTTPResponse {
        let transport = transport.withLock(\.self)
        guard let request else { throw .unreachable("its address is not a valid URL") }
        do {
            return try await transport.execute(request)
        } catch {
            throw Self.loadingError(error, isByProxy: transport.settings.proxy != nil)
        }
    }

    /// Opens a connection and closes it: looks the name up, goes through the proxy, and checks the certificate.
    /// - Parameter url: The address of a source.
    package func tryConnection(to url: String) async throws(PriceLoadingError) {
        let transport = transport.withLock(\.self)
        guard let request = HTTPRequest(url) else { throw .unreachable("its address is not a valid URL") }
        do {
            try await transport.tryConnection(for: request)
        } catch {
            throw Self.loadingError(error, isByProxy: transport.settings.proxy != nil)
        }
    }

    /// Sends one request and reads the response. If it can't be used, the next request has a new connection, perhaps to another address.
    /// - Parameters:
    ///   - request: `nil` if the address of the source is not a valid URL.
    ///   - read: Reads the response.
    func get<Value>(
        _ request: HTTPRequest?, _ read: (HTTPResponse) throws(PriceLoadingError) -> Value
    ) async throws(PriceLoadingError) -> Value {
        let response = try await get(request)
        do {
            return try read(response)
        } catch {
            if let request { dropConnections(of: request) }
            throw error
        }
    }

    /// Uses new connections to a request's server from now on.
    func dropConnections(of request: HTTPRequest) {
        transport.withLock(\.self).dropConnections(of: request)
    }

    /// Makes a WebSocket connection, which is not opened yet. Called on the thread of ``eventLoop``.
    func webSocket(_ request: HTTPRequest, delegate: any WebSocketDelegate) -> WebSocketConnection {
        transport.withLock(\.self).webSocket(request, delegate: delegate)
    }

    var eventLoop: any EventLoop { loop.eventLoop }

    func loadingError(_ error: HTTPError) -> PriceLoadingError {
        Self.loadingError(error, isByProxy: transport.withLock(\.self).settings.proxy != nil)
    }

    private static func loadingError(_ error: HTTPError, isByProxy: Bool) -> PriceLoadingError {
        switch error {
        case .cancelled: .cancelled
        case .unresolved(let text): .unreachable(text, cause: .name)
        case .connectTimedOut: .unreachable("no connection in time", cause: isByProxy ? .proxy : .network)
        case .notConnected(let errno):
            .unreachable(
                (isByProxy ? "the proxy: " : "") + (errno.map(errorText) ?? "no connection"),
                cause: isByProxy ? .proxy : .network)
        case .lost(let errno): .unreachable(errorText(errno))
        case .keptConnectionClosed: .connectionClosed
        case .closedEarly: .unreachable("the connection was closed before the response was complete")
        case .tooLong(let limit): .invalidData("more than \(limit) bytes")
        case .malformed(let text): .invalidData("not an HTTP/1.1 response: \(text)")
        case .proxyWantsPassword:
            .unreachable("the proxy wants a user name and a password, which is not supported", cause: .proxy)
        case .proxyRefused(let text):
            .unreachable("the proxy refused the connection: \(oneLine(text))", cause: .proxy)
        case .other(let error as TLSError): .unreachable(tlsReason(error), cause: tlsCause(error))
        case .other(let error): .unreachable(oneLine("\(error)"))
        }
    }
}

extension HTTPRequest {
    /// A request for JSON. The parameters are those of ``init(_:headers:longestBody:)``.
    static func json(
        _ url: String, headers: [(name: String, value: String)] = [], longestBody: Int = usualBody
    ) -> HTTPRequest? {
        HTTPRequest(url, headers: [("Accept", "application/json")] + headers, longestBody: longestBody)
    }
}

/// A TLS error as text.
func tlsReason(_ error: TLSError) -> String {
    switch error {
    case .otherHost: "TLS: its certificate is for another host"
    case .notValidNow(let reason): "TLS: its certificate is not valid now, by this machine's clock: \(reason)"
    case .untrusted(let reason):
        "TLS: its certificate is not from a trusted authority (tls.ca-file adds one): \(reason)"
    case .truncated: "TLS: the connection was closed before the response was complete"
    case .failed(let reason): "TLS: \(reason)"
    }
}

private func tlsCause(_ error: TLSError) -> PriceLoadingError.Cause? {
    switch error {
    case .otherHost, .untrusted: .certificate
    case .notValidNow: .clock
    case .truncated, .failed: nil
    }
}

private func errorText(_ errno: Int32) -> String {
    String(cString: strerror(errno))
}

/// Makes an external text safe for a log line: printable, on one line, at most 160 scalars.
func oneLine(_ text: String) -> String {
    // Takes more than the final length, since white space is removed. Counts scalars: a character may have any number of them.
    let printable = text.unicodeScalars.prefix(1000).map { $0.properties.generalCategory.isPrintable ? $0 : " " }
    let words = String(String.UnicodeScalarView(printable)).split(separator: " ").joined(separator: " ").unicodeScalars
    return words.count > 160 ? String(String.UnicodeScalarView(words.prefix(157))) + "..." : String(words)
}

extension Unicode.GeneralCategory {
    /// Whether its scalars are printable: not control characters, changes of text direction or line breaks.
    fileprivate var isPrintable: Bool {
        switch self {
        case .control, .format, .lineSeparator, .paragraphSeparator: false
        default: true
        }
    }
}
