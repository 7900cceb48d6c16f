import BTCPriceSocket
import Logging
import Synchronization

final class PublisherSockets: Sendable {
    private let directory: String
    private let logger: Logger
    private let sockets = Mutex<[String: PublisherSocket]>([:])

    init(directory: String, logger: Logger) {
        self.directory = directory
        self.logger = logger
    }

    /// Creates the socket of a publisher.
    /// - Throws: ``SocketError``
    func add(_ name: String) throws(SocketError) {
        let socket = try PublisherSocket(name, in: directory) { [logger] event in
            logger.warning("The socket of \(name): \(event)")
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

    func stop() {
        for socket in sockets.withLock(\.values) { socket.stop() }
    }

    private subscript(name: String) -> PublisherSocket? { sockets.withLock { $0[name] } }
}
