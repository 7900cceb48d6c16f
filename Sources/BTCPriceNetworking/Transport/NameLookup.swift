import Dispatch
import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// Looks up names on separate threads.
///
/// getaddrinfo(3) can't be cancelled, and takes many seconds if a name server does not respond. Each name has at most one lookup at a
/// time, so threads do not pile up with every tick, and ``isSilent(about:)`` lets a request fail at once.
package final class NameLookup: Sendable {
    /// The addresses of a name in the order of RFC 6724, without a port, or the error.
    typealias Outcome = Result<[SocketAddress], HTTPError>

    private struct Pending {
        /// Identifies the lookup, since a restart replaces it.
        let number: UInt64
        let since: ContinuousClock.Instant
        var waiters: [@Sendable (Outcome) -> Void] = []
    }

    private struct Lookups {
        var pending: [String: Pending] = [:]
        var lastNumber: UInt64 = 0

        mutating func add(_ host: String, since: ContinuousClock.Instant, _ waiters: [@Sendable (Outcome) -> Void])
            -> UInt64
        {
            lastNumber += 1
            pending[host] = Pending(number: lastNumber, since: since, waiters: waiters)
            return lastNumber
        }
    }

    /// If a lookup takes longer, the name server counts as silent.
    private static let patience = Duration.milliseconds(500)

    private let lookups = Mutex(Lookups())
    private let lookUp: @Sendable (String) -> Outcome
    private let now: @Sendable () -> ContinuousClock.Instant

    /// - Parameter lookUp: Looks up a name, and blocks until it has the outcome. The default is the system's resolver.
    init(
        lookUp: @escaping @Sendable (String) -> Outcome = systemLookup,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.lookUp = lookUp
        self.now = now
    }

    /// Whether the lookup of a name has been pending for so long that no response is expected.
    func isSilent(about host: String) -> Bool {
        let since = lookups.withLock { $0.pending[host]?.since }
        return since.map { $0.duration(to: now()) > Self.patience } ?? false
    }

    /// Looks up a name, or joins its pending lookup.
    /// - Parameter body: Called once with the outcome, on any thread.
    func addresses(of host: String, _ body: @escaping @Sendable (Outcome) -> Void) {
        let number = lookups.withLock { lookups -> UInt64? in
            if lookups.pending[host] == nil { return lookups.add(host, since: now(), [body]) }
            lookups.pending[host]?.waiters.append(body)
            return nil
        }
        if let number { begin(host, number) }
    }

    /// Restarts the lookups that have waiters, and forgets the others: after a suspend, the old name servers may be unreachable.
    package func restart() {
        let begun = lookups.withLock { lookups in
            let waiting = lookups.pending.filter { !$0.value.waiters.isEmpty }
            lookups.pending = [:]
            return waiting.map { ($0.key, lookups.add($0.key, since: now(), $0.value.waiters)) }
        }
        for (host, number) in begun { begin(host, number) }
    }

    /// Fails all waiters with ``HTTPError/cancelled``. The outcomes of pending lookups are dropped.
    package func cancel() {
        let waiters = lookups.withLock { lookups in
            let waiters = lookups.pending.values.flatMap(\.waiters)
            for host in lookups.pending.keys { lookups.pending[host]?.waiters = [] }
            return waiters
        }
        for waiter in waiters { waiter(.failure(.cancelled)) }
    }

    private func begin(_ host: String, _ number: UInt64) {
        // On a separate queue: it blocks until a name server responds.
        DispatchQueue(label: "io.btcpriced.names").async { self.end(host, number, self.lookUp(host)) }
    }

    private func end(_ host: String, _ number: UInt64, _ outcome: Outcome) {
        let ended = lookups.withLock { lookups -> Pending? in
            // After a restart, the new lookup has the waiters.
            guard lookups.pending[host]?.number == number else { return nil }
            return lookups.pending.removeValue(forKey: host)
        }
        for waiter in ended?.waiters ?? [] { waiter(outcome) }
    }
}

/// Looks up a name with getaddrinfo(3).
private func systemLookup(_ host: String) -> NameLookup.Outcome {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, nil, &hints, &found)
    guard code == 0 else {
        return .failure(.unresolved("\(host) cannot be resolved: \(String(cString: gai_strerror(code)))"))
    }
    defer { freeaddrinfo(found) }
    var addresses: [SocketAddress] = []
    var next = found
    while let entry = next?.pointee {
        next = entry.ai_next
        guard let address = entry.ai_addr else { continue }
        switch entry.ai_family {
        case AF_INET:
            addresses.append(
                address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { SocketAddress($0.pointee) })
        case AF_INET6:
            addresses.append(
                address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { SocketAddress($0.pointee) })
        default: break
        }
    }
    return .success(addresses)
}

/// Passes known addresses to NIO's connector, which tries both families, a moment apart (RFC 8305).
struct KnownAddresses: Resolver {
    let addresses: [SocketAddress]
    let eventLoop: any EventLoop

    func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        eventLoop.makeSucceededFuture(addresses(of: .inet, port))
    }

    func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        eventLoop.makeSucceededFuture(addresses(of: .inet6, port))
    }

    func cancelQueries() {}

    private func addresses(of family: NIOBSDSocket.AddressFamily, _ port: Int) -> [SocketAddress] {
        addresses.filter { $0.protocol.rawValue == family.rawValue }.map { address in
            var address = address
            address.port = port
            return address
        }
    }
}

extension HTTPRequest.Origin {
    /// The host's address; `nil` if the host is a name.
    var address: SocketAddress? { SocketAddress(literal: host, port: port) }
}

extension SocketAddress {
    /// - Returns: `nil` if the host is a name.
    init?(literal host: String, port: Int) {
        do { self = try SocketAddress(ipAddress: host, port: port) } catch { return nil }
    }
}
