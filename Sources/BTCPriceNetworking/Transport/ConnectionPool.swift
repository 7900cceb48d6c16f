import NIOCore

/// A request, and the continuation that waits for its response.
// Accessed on the event loop's thread only, except for its constant.
final class PendingRequest: @unchecked Sendable {
    typealias Continuation = CheckedContinuation<Result<HTTPResponse, HTTPError>, Never>

    let request: HTTPRequest
    /// `nil` before the request is executed, and after it has finished.
    var continuation: Continuation?
    var isCancelled = false
    /// The connection that it uses.
    weak var connection: HTTPConnection?

    init(_ request: HTTPRequest) {
        self.request = request
    }

    func finish(_ outcome: Result<HTTPResponse, HTTPError>) {
        connection = nil
        continuation.take()?.resume(returning: outcome)
    }
}

/// The open connections, and the choice of the one that a request uses.
// Accessed on the event loop's thread only, except for its constants.
final class ConnectionPool: @unchecked Sendable {
    /// A connection that was idle for longer is closed: a NAT or firewall may have dropped it without notice.
    private static let idleTimeout = TimeAmount.seconds(60)
    /// A connection that has been open for longer takes no more requests: its server may have moved to another address.
    private static let longestAge = TimeAmount.minutes(5)

    let dialer: Dialer
    private var connections: [HTTPRequest.Origin: [HTTPConnection]] = [:]
    private var isDraining = false
    private var isClosed = false

    init(_ dialer: Dialer) {
        self.dialer = dialer
    }

    // MARK: - Requests

    /// Sends the request on a free connection, waits for one that is opening without a request, or opens another.
    func start(_ pending: PendingRequest, _ continuation: PendingRequest.Continuation) {
        dialer.eventLoop.assertInEventLoop()
        pending.continuation = continuation
        guard !pending.isCancelled, !isClosed else { return pending.finish(.failure(.cancelled)) }
        let origin = pending.request.origin
        let known = known(to: origin)
        // The newest one is the most likely to be still open.
        if let ready = known.last(where: \.isReady) { return ready.start(pending) }
        let opening = known.first(where: \.isFree)
        let host = dialer.host(to: origin)
        if opening?.isResolving ?? true, dialer.names.isSilent(about: host) {
            return pending.finish(.failure(.unresolved("no name server responds for \(host)")))
        }
        if let opening { return opening.start(pending) }
        let connection = HTTPConnection(to: origin, of: self, isDraining: isDraining)
        connections[origin, default: []].append(connection)
        connection.start(pending)
        connection.open()
    }

    func cancel(_ pending: PendingRequest) {
        dialer.eventLoop.assertInEventLoop()
        pending.isCancelled = true
        let connection = pending.connection
        pending.finish(.failure(.cancelled))
        connection?.abandon()
    }

    private func known(to origin: HTTPRequest.Origin) -> [HTTPConnection] {
        guard let known = connections[origin] else { return [] }
        let now = NIODeadline.now()
        for connection in known
        where connection.isOverdue(at: now, idleTimeout: Self.idleTimeout, longestAge: Self.longestAge) {
            connection.close()
        }
        return connections[origin] ?? []
    }

    // MARK: - Closing

    /// Drains the present connections to a server: the next request looks its name up again.
    func drop(to origin: HTTPRequest.Origin) {
        for connection in connections[origin] ?? [] { connection.drain() }
    }

    /// Drains the present connections. If `forGood`, later ones are not kept either.
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
