import BTCPriceClient
import BTCPriceVarlink
import Glibc
import Varlink

/// Finds a daemon that answers.
enum Connecting {
    /// A variable of the environment.
    static func environment(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }

    /// Tries the sockets in order and does `body` with the first that answers.
    /// - Parameter patience: How long one may take to let us connect.
    /// - Throws: The complaint that names every path and what was wrong with it.
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
                // A signal: one that does not end us has us ask again.
                case .interrupted:
                    Signals.endIfAsked()
                    continue
                case .unreachable, .timedOut, .closed: tried.append(error)
                case .refused(PriceInterface.fetchFailed, let reason?): throw .noPrice(reason)
                case .refused("\(ServiceInterface.name).PermissionDenied", _): throw .permissionDenied
                case .refused(PriceInterface.busy, _): throw .busy(paths[next])
                case .refused("\(ServiceInterface.name).MethodNotFound", _): throw .tooOldDaemon
                case .refused(PriceInterface.unknownSource, _): throw .unknownSource
                case .refused, .unintelligible: throw .unexpected("\(error)")
                }
                next += 1
            }
        }
        throw .unreachable(tried)
    }
}
