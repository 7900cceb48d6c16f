import BTCPriceAPI
import Glibc
import Varlink

/// Finds a daemon that responds.
enum Connecting {
    /// Returns the value of an environment variable, or `nil` if it is not set.
    static func environment(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }

    /// The currency to use: the named one, otherwise the one in `BTCCTL_CURRENCY`; `nil` for the daemon's first.
    static func currency(_ named: String?) -> String? {
        named ?? environment("BTCCTL_CURRENCY").flatMap { $0.isEmpty ? nil : $0.uppercased() }
    }

    /// Tries the sockets in order and runs `body` with the first one that responds.
    /// - Parameter patience: The timeout of the connection and of each call.
    /// - Throws: ``Complaint``. If no socket responds, it names every path and its error.
    static func withDaemon<Result>(
        socket: String?, patience: Duration = .seconds(5), _ body: (inout PriceConnection) throws(ClientError) -> Result
    ) throws(Complaint) -> Result {
        let paths = SocketSearch.paths(
            named: socket, environment: environment, uid: getuid())
        var tried: [ClientError] = []
        var next = paths.startIndex
        while next < paths.endIndex {
            do throws(ClientError) {
                var connection = try PriceConnection(path: paths[next], timeout: patience)
                return try body(&connection)
            } catch {
                switch error {
                // A signal. If it does not end the process, retry.
                case .interrupted:
                    Signals.endIfAsked()
                    continue
                case .unreachable, .timedOut, .closed: tried.append(error)
                case .refused(PriceInterface.fetchFailed, let reason?): throw .noPrice(reason)
                case .refused("\(ServiceInterface.name).PermissionDenied", _): throw .permissionDenied
                case .refused(PriceInterface.busy, _): throw .busy(paths[next])
                case .refused("\(ServiceInterface.name).MethodNotFound", _): throw .tooOldDaemon
                case .refused(PriceInterface.unknownSource, _): throw .unknownSource
                case .refused(PriceInterface.unknownCurrency, let reason),
                    .refused(HistoryInterface.unknownCurrency, let reason):
                    throw .unknownCurrency(reason)
                case .refused(HistoryInterface.disabled, _): throw .noHistory
                case .refused(HistoryInterface.unavailable, let reason): throw .historyUnavailable(reason)
                case .refused("\(ServiceInterface.name).InterfaceNotFound", _): throw .tooOldDaemon
                // btc-priced 0.1.0 keeps only dollars and has no `currency` parameter.
                case .refused("\(ServiceInterface.name).InvalidParameter", _): throw .tooOldDaemon
                case .refused, .unintelligible: throw .unexpected("\(error)")
                }
                next += 1
            }
        }
        throw .unreachable(tried)
    }
}
