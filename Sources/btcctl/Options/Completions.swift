import BTCPriceCore
import BTCPriceSocket
import CommandLine

/// The completions that need the daemon: what it has now.
enum Completions {
    /// The daemon's currencies; all known ones if it does not respond.
    static func currencies(_ words: [String]) -> [String] {
        ask(words) { connection throws(ClientError) in try connection.listCurrencies().map(\.currency) }
            ?? Currency.known.map(\.rawValue)
    }

    static func sources(_ words: [String]) -> [String] {
        ask(words) { connection throws(ClientError) in try connection.listSources(nil).map(\.name) } ?? []
    }

    /// - Parameter words: The command line, which may name the socket.
    /// - Returns: `nil` if no daemon responds at once.
    private static func ask<Result>(
        _ words: [String], _ question: (inout PriceConnection) throws(ClientError) -> Result
    ) -> Result? {
        try? Connecting.withDaemon(
            DaemonAddress(socket: Option.socket.text(in: words)), patience: Bar.patience, question)
    }
}
