import BTCPriceCore
import NIOSSL
import Synchronization

import func Glibc.strerror

/// The one HTTP client that all loaders share, and the words for what goes wrong with it.
///
/// HTTP/1.1, since with HTTP/2 a single connection that went dark took every following request with it.
package final class ExchangeClient: Sendable {
    private let loop: TickLoop
    private let transport: Mutex<HTTPTransport>
    private let names = NameLookup()

    /// - Parameters:
    ///   - settings: How exchanges are reached. Coinbase answers 400 without a User-Agent, CoinGecko 403.
    ///   - loop: Where they are asked from.
    /// - Throws: ``ExchangeClientError`` if the file with trust anchors can't be used.
    package init(_ settings: HTTPTransportSettings, on loop: TickLoop) throws(ExchangeClientError) {
        self.loop = loop
        transport = Mutex(try Self.transport(settings, names, loop))
    }

    /// Has everything from now on asked by other settings. Requests that are under way end as they began.
    /// - Throws: ``ExchangeClientError`` if the file with trust anchors can't be used; then nothing has changed.
    package func apply(_ settings: HTTPTransportSettings) throws(ExchangeClientError) {
        let new = try Self.transport(settings, names, loop)
        let old = transport.withLock { transport in
            defer { transport = new }
            return transport
        }
        old.drain()
    }

    private static func transport(
        _ settings: HTTPTransportSettings, _ names: NameLookup, _ loop: TickLoop
    ) throws(ExchangeClientError) -> HTTPTransport {
        do {
            return try HTTPTransport(settings, names: names, on: loop.eventLoop)
        } catch {
            throw ExchangeClientError(error)
        }
    }

    /// Has names looked up anew and new connections made from now on: after a suspend those that are kept lead nowhere, and say so
    /// only after a time-out.
    package func dropConnections() {
        names.restart()
        transport.withLock(\.self).dropConnections()
    }

    /// Whether a client can be made from these settings.
    /// - Throws: ``ExchangeClientError`` if the file with trust anchors can't be used.
    package static func check(_ settings: HTTPTransportSettings) throws(ExchangeClientError) {
        do { try HTTPTransport.check(settings) } catch { throw ExchangeClientError(error) }
    }

    /// Ends every connection. The client can't be used after that.
    package func shutdown() async {
        names.cancel()
        await transport.withLock(\.self).close()
    }

    /// Asks once and reads the whole answer. The caller's cancellation ends head and body alike.
    func get(_ request: ExchangeRequest) async throws(PriceLoadingError) -> ExchangeResponse {
        let transport = transport.withLock(\.self)
        guard let asked = request.request else { throw .unreachable("\(oneLine(request.url)) is no address") }
        do {
            return ExchangeResponse(try await transport.execute(asked))
        } catch {
            throw Self.loadingError(error, isByProxy: transport.settings.proxy != nil)
        }
    }

    private static func loadingError(_ error: HTTPError, isByProxy: Bool) -> PriceLoadingError {
        switch error {
        case .cancelled: .cancelled
        case .unresolved(let text): .unreachable(text)
        case .connectTimedOut: .unreachable("no connection in time")
        case .notConnected(let errno):
            .unreachable((isByProxy ? "the proxy: " : "") + (errno.map(errorText) ?? "no connection"))
        case .lost(let errno): .unreachable(errorText(errno))
        case .closedEarly: .unreachable("the connection was closed before the answer was whole")
        case .tooLong(let limit): .invalidData("more than \(limit) bytes")
        case .malformed(let text): .invalidData("no answer by HTTP/1.1: \(text)")
        case .proxyWantsPassword: .unreachable("the proxy wants a user name and a password, which is not supported")
        case .proxyRefused(let text): .unreachable("the proxy does not let us through: \(oneLine(text))")
        case .other(let error): .unreachable(tlsReason(error))
        }
    }
}

/// What went wrong with TLS: the library's own text, without the path of the machine that it was built on.
private func tlsReason(_ error: any Error) -> String {
    if let extra = error as? NIOSSLExtraError, extra == .failedToValidateHostname {
        return "TLS: its certificate is for another host"
    }
    let text = "\(error)"
    return "TLS: \(oneLine(String(text[..<(text.firstRange(of: " at /")?.lowerBound ?? text.endIndex)])))"
}

/// The client can't be made from these settings.
package struct ExchangeClientError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The setting, and what is wrong with it.
    package let description: String

    fileprivate init(_ error: TrustAnchorsError) {
        description = "tls.ca-file: \(error.file) holds no certificates that can be read"
    }
}

/// The system's word for an errno.
private func errorText(_ errno: Int32) -> String {
    String(cString: strerror(errno))
}

/// A foreign text made safe for one line of a log: printable, and not long.
func oneLine(_ text: String) -> String {
    // More than is kept, for what is taken out of it; and by scalars, of which one character may have any number.
    let printable = text.unicodeScalars.prefix(1000).map { $0.properties.generalCategory.isPrintable ? $0 : " " }
    let words = String(String.UnicodeScalarView(printable)).split(separator: " ").joined(separator: " ").unicodeScalars
    return words.count > 160 ? String(String.UnicodeScalarView(words.prefix(157))) + "..." : String(words)
}

extension Unicode.GeneralCategory {
    /// Whether it shows as itself: not a control character, nor one that turns the direction or breaks the line.
    fileprivate var isPrintable: Bool {
        switch self {
        case .control, .format, .lineSeparator, .paragraphSeparator: false
        default: true
        }
    }
}
