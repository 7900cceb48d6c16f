import BTCPriceSocket
import CommandLine
import Glibc

/// The daemon to call, as the command line names it.
struct DaemonAddress: Equatable {
    /// The path of its socket; `nil` to search for it.
    var socket: String?
    /// The timeout of the connection and of each call; `nil` for the command's own.
    var timeout: Duration?
}

enum Connecting {
    /// The currency to use: the named one, otherwise the one in `BTCCTL_CURRENCY`; `nil` for the daemon's first.
    static func currency(_ named: String?) -> String? {
        if let named { return named }
        guard let text = Output.environment("BTCCTL_CURRENCY"), !text.isEmpty else { return nil }
        // The daemon refuses what is no currency, and names those that it keeps.
        return (try? currencyCode(text)) ?? text.uppercased()
    }

    /// The result of a call that the caller can do without; `nil` if the daemon refuses it, or if its reply can't be read. A missing reply
    /// ends the connection, because it could later be read as that to another call.
    static func optional<Result>(_ call: () throws(ClientError) -> Result) throws(ClientError) -> Result? {
        do throws(ClientError) {
            return try call()
        } catch {
            switch error {
            case .refused, .unintelligible: return nil
            case .unreachable, .timedOut, .closed, .interrupted: throw error
            }
        }
    }

    /// Runs `body` with the first socket that a daemon listens at. A later error does not lead to another daemon, with another price.
    /// - Parameter patience: The timeout of the connection and of each call, unless the address has one.
    /// - Throws: ``Complaint``. If no daemon listens, it names every path and its error.
    static func withDaemon<Result>(
        _ daemon: DaemonAddress, patience: Duration = .seconds(5),
        _ body: (inout PriceConnection) throws(ClientError) -> Result
    ) throws(Complaint) -> Result {
        try withDaemon(
            SocketSearch.paths(named: daemon.socket, environment: Output.environment, uid: getuid()),
            patience: daemon.timeout ?? patience, body)
    }

    /// As ``withDaemon(_:patience:_:)``, and from then on only with that socket: another daemon's prices may differ.
    static func withSameDaemon<Result>(
        _ daemon: inout DaemonAddress, patience: Duration = .seconds(5),
        _ body: (inout PriceConnection) throws(ClientError) -> Result
    ) throws(Complaint) -> Result {
        var path: String?
        defer { daemon.socket = path ?? daemon.socket }
        return try withDaemon(daemon, patience: patience) { connection throws(ClientError) in
            path = connection.path
            return try body(&connection)
        }
    }

    static func withDaemon<Result>(
        _ search: SocketSearch.Paths, patience: Duration,
        _ body: (inout PriceConnection) throws(ClientError) -> Result
    ) throws(Complaint) -> Result {
        var tried: [ClientError] = []
        for path in search.paths {
            var isConnected = false
            while true {
                do throws(ClientError) {
                    var connection = try PriceConnection(path: path, timeout: patience)
                    isConnected = true
                    return try body(&connection)
                } catch {
                    // A signal. If it does not end the process, retry.
                    if error == .interrupted {
                        Signals.endIfAsked()
                        continue
                    }
                    guard !isConnected else { throw Complaint(error) }
                    tried.append(error)
                    break
                }
            }
        }
        throw .unreachable(tried, skipped: search.skipped)
    }
}
