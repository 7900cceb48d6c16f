import NIOCore
import NIOSSL

/// A request, and what waits for its response.
// Touched on the event loop's thread only, apart from its constant.
final class PendingRequest: @unchecked Sendable {
    typealias Continuation = CheckedContinuation<Result<HTTPResponse, HTTPError>, Never>

    let request: HTTPRequest
    /// Nobody waits before it is asked, and after it is told.
    var continuation: Continuation?
    var isCancelled = false
    /// Where it is asked.
    weak var connection: HTTPConnection?

    init(_ request: HTTPRequest) {
        self.request = request
    }

    func finish(_ outcome: Result<HTTPResponse, HTTPError>) {
        connection = nil
        continuation.take()?.resume(returning: outcome)
    }
}

/// The connections that there are, and which of them a question takes.
// Touched on the event loop's thread only, apart from its constants.
final class ConnectionPool: @unchecked Sendable {
    /// A connection that nobody used for longer is not trusted: what lies between may have forgotten it, and would say so only by silence.
    private static let longestRest = TimeAmount.seconds(60)

    let context: TransportContext
    let names: NameLookup
    let eventLoop: any EventLoop
    private var connections: [HTTPRequest.Origin: [HTTPConnection]] = [:]
    /// By whether the server has a name; made where the first secure connection needs it: each reads every certificate of the system.
    private var contexts: [Bool: NIOSSLContext] = [:]
    private var isDraining = false
    private var isClosed = false

    init(_ context: TransportContext, names: NameLookup, on eventLoop: any EventLoop) {
        self.context = context
        self.names = names
        self.eventLoop = eventLoop
    }

    func tlsContext(for identity: ServerIdentity) throws -> NIOSSLContext {
        if let context = contexts[identity.isName] { return context }
        var configuration = context.tls
        if !identity.isName { configuration.certificateVerification = .noHostnameVerification }
        let context = try NIOSSLContext(configuration: configuration)
        contexts[identity.isName] = context
        return context
    }

    // MARK: - Asking

    func ask(_ pending: PendingRequest, _ continuation: PendingRequest.Continuation) {
        pending.continuation = continuation
        ask(pending)
    }

    /// Asks where a connection is free, waits for one that opens for nobody any more, or opens another.
    func ask(_ pending: PendingRequest) {
        eventLoop.assertInEventLoop()
        guard !pending.isCancelled, !isClosed else { return pending.finish(.failure(.cancelled)) }
        let origin = pending.request.origin
        let known = known(to: origin)
        // The one used last is the likeliest to be there.
        if let ready = known.last(where: \.isReady) { return ready.ask(pending) }
        let opening = known.first(where: \.isFree)
        let host = context.settings.proxy?.host ?? origin.host
        if opening?.isResolving ?? true, names.isSilent(about: host) {
            return pending.finish(.failure(.unresolved("no name server answers for \(host)")))
        }
        if let opening { return opening.ask(pending) }
        let connection = HTTPConnection(to: origin, of: self, isDraining: isDraining)
        connections[origin, default: []].append(connection)
        connection.ask(pending)
        connection.open(host)
    }

    func cancel(_ pending: PendingRequest) {
        eventLoop.assertInEventLoop()
        pending.isCancelled = true
        let connection = pending.connection
        pending.finish(.failure(.cancelled))
        connection?.abandon()
    }

    private func known(to origin: HTTPRequest.Origin) -> [HTTPConnection] {
        guard let known = connections[origin] else { return [] }
        let now = NIODeadline.now()
        for connection in known where connection.isOverdue(at: now, longestRest: Self.longestRest) {
            connection.close()
        }
        return connections[origin] ?? []
    }

    // MARK: - Ending

    /// New connections are made from now on; where that is `forGood`, none of them is kept.
    func drop(forGood: Bool) {
        if forGood { isDraining = true }
        for connection in connections.values.joined() { connection.drain() }
    }

    func close() {
        isClosed = true
        for connection in connections.values.joined() { connection.close(.cancelled) }
    }

    func remove(_ connection: HTTPConnection) {
        connections[connection.origin]?.removeAll { $0 === connection }
        if connections[connection.origin]?.isEmpty == true { connections[connection.origin] = nil }
    }
}
