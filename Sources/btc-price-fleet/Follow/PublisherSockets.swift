import BTCPriceSocket
import Logging
import Synchronization

/// The sockets of all publishers. Together they have the connections and the memory of one daemon's socket.
final class PublisherSockets: Sendable {
    private struct Told: Hashable {
        let name: String
        let event: ServerEvent
    }

    private let directory: String
    private let limits: ServerLimits
    private let logger: Logger
    private let sockets = Mutex<[String: PublisherSocket]>([:])
    /// The events that have a line.
    private let told = Mutex<Set<Told>>([])

    /// - Parameter most: The most publishers that may be followed.
    init(directory: String, most: Int, logger: Logger) {
        self.directory = directory
        self.logger = logger
        limits = Self.share(of: .fitting(), among: most)
    }

    static func share(of all: ServerLimits, among sockets: Int) -> ServerLimits {
        ServerLimits(
            connections: max(16, all.connections / sockets), queuedBytes: max(1 << 20, all.queuedBytes / sockets),
            pendingCalls: max(16, all.pendingCalls / sockets))
    }

    /// Creates the socket of a publisher.
    /// - Throws: ``SocketError``
    func add(_ name: String) throws(SocketError) {
        let socket = try PublisherSocket(name, in: directory, limits: limits) { [weak self] event in
            self?.tell(event, of: name)
        }
        sockets.withLock { $0[name] = socket }
    }

    /// Performs an effect: notifies clients, creates a socket, or logs.
    func perform(_ effect: Following.Effect) {
        switch effect {
        case .came(let name):
            do throws(SocketError) {
                try add(name)
                logger.info("Following \(name).")
            } catch {
                logger.error("The socket of \(name) can't be made: \(error)")
            }
        case .state(let name, let message, let interval): self[name]?.tell(message, interval: interval)
        case .dropped(let name, let currency): self[name]?.drop(currency)
        case .sources(let name, let reports): self[name]?.tell(reports)
        case .counted(let name, let kind): self[name]?.count(kind)
        case .refused(let name, let reason?): logger.warning("Rejecting messages from \(name): \(reason).")
        case .refused(let name, nil): logger.info("Accepting messages again from \(name).")
        case .sameInstance(let first, let second):
            logger.warning(
                "\(first) and \(second) have the same instance: both publish one daemon, or one copies the other's. Each counts."
            )
        }
    }

    /// Logs the first event of each kind, user and publisher. Users decide how often they hit a limit.
    private func tell(_ event: ServerEvent, of name: String) {
        let isFirst = told.withLock { $0.count < 1000 && $0.insert(Told(name: name, event: event)).inserted }
        if isFirst { logger.warning("The socket of \(name): \(event.text).") }
    }

    func stop() {
        for socket in sockets.withLock(\.values) { socket.stop() }
    }

    private subscript(name: String) -> PublisherSocket? { sockets.withLock { $0[name] } }
}
