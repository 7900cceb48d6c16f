import BTCPriceCore
import BTCPriceSocket
import Dispatch
import NIOHTTP1

/// A connection to the daemon that is kept open. Uses its own thread, because calls block.
// Sendable, because the mutable state is used only on the queue.
final class DaemonLink: @unchecked Sendable {
    /// How long a daemon that hangs gets no calls. Otherwise, waiting callers would wait for one timeout after the other.
    private static let pause = Duration.seconds(1)

    private let socket: @Sendable () -> String
    private let timeout: Duration
    private let queue = DispatchQueue(label: "io.btcpriced.calls")
    private var connection: PriceConnection?
    private var hungAt: ContinuousClock.Instant?

    /// - Parameter timeout: The timeout of a call. It must be longer than a healthy daemon takes.
    init(timeout: Duration, socket: @escaping @Sendable () -> String) {
        self.timeout = timeout
        self.socket = socket
    }

    /// Makes calls on the connection, and makes them again on a new one if it was closed.
    func call<Value: Sendable>(
        _ body: @escaping @Sendable (inout PriceConnection) throws(ClientError) -> Value
    ) async -> Result<Value, Problem> {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: self.result(of: body)) }
        }
    }

    private func result<Value>(
        of body: (inout PriceConnection) throws(ClientError) -> Value
    ) -> Result<Value, Problem> {
        if let hungAt, hungAt.duration(to: .now) < Self.pause { return .failure(Self.unreachable) }
        // The daemon closes a connection after ten minutes without a call, and all connections when it restarts.
        for _ in 0..<(connection == nil ? 1 : 2) {
            do throws(ClientError) {
                var connection = try take()
                let value = try body(&connection)
                self.connection = consume connection
                return .success(value)
            } catch {
                switch error {
                case .refused(let name, _): return .failure(Self.refused(name))
                case .timedOut:
                    hungAt = .now
                    return .failure(Self.unreachable)
                case .unintelligible: return .failure(.unavailable("The daemon's reply is not understood."))
                case .unreachable, .closed, .interrupted: continue
                }
            }
        }
        return .failure(Self.unreachable)
    }

    private func take() throws(ClientError) -> PriceConnection {
        if let kept = connection.take() { return kept }
        return try PriceConnection(path: socket(), timeout: timeout)
    }

    private static let unreachable = Problem.unavailable("The daemon can't be reached.")

    private static func refused(_ error: String) -> Problem {
        switch error {
        case PriceInterface.unknownCurrency: Problem(.notFound, "The price is not kept in this currency.")
        case HistoryInterface.unknownCurrency: Problem(.notFound, "There is no history in this currency.")
        case HistoryInterface.disabled: Problem(.notFound, "The daemon keeps no history.")
        case HistoryInterface.unavailable: .unavailable("The history can't be read at present.", retryAfter: 60)
        case PriceInterface.tooManyConnections: .unavailable("The daemon has too many connections.")
        case PriceInterface.busy: .unavailable("The daemon has too many pending calls.")
        case "\(ServiceInterface.name).MethodNotFound", "\(ServiceInterface.name).InterfaceNotFound",
            "\(ServiceInterface.name).InvalidParameter":
            .unavailable("The daemon is older than this gateway. Restart it.", retryAfter: 60)
        default: .unavailable("The daemon refused the call.")
        }
    }
}
