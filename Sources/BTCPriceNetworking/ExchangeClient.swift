import AsyncHTTPClient
import BTCPriceCore
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization
public import TickLoop

import func Glibc.strerror

/// How exchanges are reached.
public struct ExchangeClientSettings: Sendable, Hashable {
    /// What a proxy speaks.
    public enum Proxy: Sendable, Hashable {
        /// An HTTP proxy that tunnels with CONNECT.
        case http(host: String, port: Int)
        /// A SOCKS5 proxy; names are resolved by it.
        case socks5(host: String, port: Int)
    }

    /// The User-Agent header. Coinbase answers 400 without one, CoinGecko 403.
    public var userAgent: String
    /// A PEM file with trust anchors beside the system's.
    public var caFile: String?
    /// The proxy that every exchange is asked through.
    public var proxy: Proxy?
    /// The longest that any caller waits for an answer. A deadline is the caller's cancellation; this is what a connection may
    /// take where nobody cancels.
    public var longestWait: Duration

    /// Settings of which every part is given.
    public init(
        userAgent: String, caFile: String? = nil, proxy: Proxy? = nil, longestWait: Duration = .seconds(1)
    ) {
        self.userAgent = userAgent
        self.caFile = caFile
        self.proxy = proxy
        self.longestWait = longestWait
    }
}

/// The one HTTP client that all loaders share: it keeps connections, speaks HTTP/1.1 only, and bounds what it reads.
///
/// HTTP/1.1, since with HTTP/2 a single connection that went dark took every following request with it.
public final class ExchangeClient: Sendable {
    /// The longest body that is read, bytes. The largest real one of an exchange we ask has under three thousand.
    static let longestBody = 64 * 1024

    /// What is in use, and what it was made from.
    private struct Setup: Sendable {
        let client: HTTPClient
        let settings: ExchangeClientSettings

    }

    private let loop: TickLoop
    private let setup: Mutex<Setup>
    /// Clients that were replaced, while their last requests end.
    private let retiring = Mutex<[Int: Task<Void, Never>]>([:])
    private let names = NameLookup()
    /// The hosts whose last answer came: their names need no lookup before they are asked again.
    private let answering = Mutex<Set<String>>([])

    /// - Parameters:
    ///   - settings: How exchanges are reached.
    ///   - loop: Where they are asked from.
    /// - Throws: ``ExchangeClientError`` if the file with trust anchors can't be used.
    public init(_ settings: ExchangeClientSettings, on loop: TickLoop) throws(ExchangeClientError) {
        self.loop = loop
        setup = Mutex(Setup(client: try Self.client(settings, on: loop), settings: settings))
    }

    /// Has everything from now on asked by other settings. Requests that are under way end as they began.
    /// - Throws: ``ExchangeClientError`` if the file with trust anchors can't be used; then nothing has changed.
    public func apply(_ settings: ExchangeClientSettings) throws(ExchangeClientError) {
        let new = Setup(client: try Self.client(settings, on: loop), settings: settings)
        let old = setup.withLock { setup in
            defer { setup = new }
            return setup
        }
        retire(old)
    }

    /// Has new connections made from now on: after a suspend those that are kept lead nowhere, and say so only after a time-out.
    public func dropConnections() {
        let settings = setup.withLock(\.settings)
        // The file with trust anchors may be gone by now: then the old connections are better than none.
        do { try apply(settings) } catch {}
    }

    private func retire(_ old: Setup) {
        let wait = old.settings.longestWait + .seconds(1)
        let task = Task {
            // Cut short by the end of the daemon.
            do { try await Task.sleep(for: wait) } catch {}
            do { try await old.client.shutdown() } catch {}
        }
        retiring.withLock { retiring in
            let number = (retiring.keys.max() ?? 0) + 1
            retiring[number] = task
            Task {
                await task.value
                self.retiring.withLock { $0[number] = nil }
            }
        }
    }

    /// Whether a client can be made from these settings.
    /// - Throws: ``ExchangeClientError`` if the file with trust anchors can't be used.
    public static func check(_ settings: ExchangeClientSettings) throws(ExchangeClientError) {
        _ = try configuration(settings)
    }

    private static func client(
        _ settings: ExchangeClientSettings, on loop: TickLoop
    ) throws(ExchangeClientError) -> HTTPClient {
        HTTPClient(eventLoopGroup: loop.eventLoop, configuration: try configuration(settings))
    }

    private static func configuration(
        _ settings: ExchangeClientSettings
    ) throws(ExchangeClientError) -> HTTPClient.Configuration {
        let longestWait = TimeAmount(settings.longestWait) + .seconds(1)
        var configuration = HTTPClient.Configuration(
            redirectConfiguration: .disallow,
            timeout: .init(connect: longestWait),
            connectionPool: .init(idleTimeout: .seconds(60)),
            decompression: .disabled)
        configuration.httpVersion = .http1Only
        // A refused connection is an answer: the next source is asked at once instead of trying this one until the deadline.
        configuration.connectionPool.retryConnectionEstablishment = false
        if let file = settings.caFile {
            do {
                var tls = TLSConfiguration.makeClientConfiguration()
                tls.additionalTrustRoots = [.certificates(try NIOSSLCertificate.fromPEMFile(file))]
                configuration.tlsConfiguration = tls
            } catch {
                throw ExchangeClientError(description: "tls.ca-file: \(file) holds no certificates that can be read")
            }
        }
        switch settings.proxy {
        case .http(let host, let port): configuration.proxy = .server(host: host, port: port)
        case .socks5(let host, let port): configuration.proxy = .socksServer(host: host, port: port)
        case nil: break
        }
        return configuration
    }

    /// Ends every connection. The client can't be used after that.
    public func shutdown() async {
        for task in retiring.withLock({ Array($0.values) }) {
            task.cancel()
            await task.value
        }
        // It throws only if it was shut down before.
        let client = setup.withLock(\.client)
        do { try await client.shutdown() } catch {}
    }

    private static let proxyErrors: [HTTPClientError] = [
        .invalidProxyResponse, .httpProxyHandshakeTimeout, .socksHandshakeTimeout,
    ]

    /// Asks once and reads the whole answer. The caller's cancellation ends head and body alike.
    func get(_ question: ExchangeQuestion) async throws(PriceLoadingError) -> ExchangeAnswer {
        let setup = setup.withLock { $0 }
        guard var request = question.request else { throw .unreachable("\(oneLine(question.url)) is no address") }
        request.headers.add(name: "User-Agent", value: setup.settings.userAgent)
        let host = setup.settings.proxy?.host ?? question.host
        if answering.withLock({ $0.remove(host) }) == nil { try await names.resolve(host) }
        do {
            let task = setup.client.execute(
                request: request, delegate: AnswerCollector(), eventLoop: .delegate(on: loop.eventLoop))
            let answer = try await withTaskCancellationHandler {
                try await task.futureResult.get()
            } onCancel: {
                task.cancel()
            }
            answering.withLock { _ = $0.insert(host) }
            return answer
        } catch {
            throw loadingError(error)
        }
    }

    private func loadingError(_ error: any Error) -> PriceLoadingError {
        if Task.isCancelled || error is CancellationError { return .cancelled }
        let longestBody = Self.longestBody
        switch error {
        case is NIOTooManyBytesError: return .invalidData("more than \(longestBody) bytes")
        case let error as HTTPClientError where error == .cancelled: return .cancelled
        case let error as HTTPClientError where error == .connectTimeout: return .unreachable("no connection in time")
        case let error as HTTPClientError where error == .remoteConnectionClosed:
            return .unreachable("the connection was closed before the answer was whole")
        case HTTPParserError.invalidEOFState:
            return .unreachable("the connection was closed before the answer was whole")
        case let error as HTTPClientError where error == .proxyAuthenticationRequired:
            return .unreachable("the proxy wants a user name and a password, which is not supported")
        case let error as HTTPClientError where Self.proxyErrors.contains(error):
            return .unreachable("the proxy does not let us through: \(oneLine(error.shortDescription))")
        case let error as HTTPClientError: return .unreachable(oneLine(error.shortDescription))
        case let error as NIOConnectionError:
            if error.dnsAError != nil || error.dnsAAAAError != nil {
                return .unreachable("\(error.host) cannot be resolved")
            }
            let whom = setup.withLock(\.settings.proxy) == nil ? "" : "the proxy: "
            let reason = (error.connectionErrors.first?.error as? IOError)?.errnoDescription
            return .unreachable(whom + (reason ?? "no connection to \(error.host):\(error.port)"))
        case let error as IOError: return .unreachable(error.errnoDescription)
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError: return .unreachable(tlsReason(error))
        default: return .unreachable(oneLine("\(error)"))
        }
    }
}

extension ExchangeClientSettings.Proxy {
    fileprivate var host: String {
        switch self {
        case .http(let host, _), .socks5(let host, _): host
        }
    }
}

/// No clock that is right shows an earlier time than this release: 2026-11-01 00:00:00 UTC.
private let earliestRightTime = Timestamp(milliseconds: 1_793_491_200_000)

/// What went wrong with TLS, in a person's words where it is the certificate.
private func tlsReason(_ error: any Error) -> String {
    if let extra = error as? NIOSSLExtraError, extra == .failedToValidateHostname {
        return "TLS: its certificate is for another host"
    }
    let text = "\(error)"
    if text.contains("CERTIFICATE_VERIFY_FAILED") {
        let now = ObservationTime.now().wall
        // The library does not say which of the two it is, but a clock that can't be right is reason enough.
        if now < earliestRightTime {
            return
                "TLS: its certificate is not valid yet by this machine's clock, which is wrong: it says \(now.utcText)"
        }
        return "TLS: its certificate can't be verified: not valid now, or by an authority that is not trusted here"
    }
    // The library's own word stands between its story and a path of the machine it was built on.
    if let start = text.firstRange(of: "OPENSSL_internal:")?.upperBound {
        let word = text[start...].prefix { $0.isLetter || $0.isNumber || $0 == "_" }
        return "TLS: the handshake failed: \(word.lowercased().replacing("_", with: " "))"
    }
    return "TLS: \(oneLine(text))"
}

/// The client can't be made from these settings.
public struct ExchangeClientError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The setting, what is wrong with it, and what to do.
    public let description: String
}

extension IOError {
    /// The system's word for it, without the library's story around it.
    fileprivate var errnoDescription: String {
        String(cString: strerror(errnoCode))
    }
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
