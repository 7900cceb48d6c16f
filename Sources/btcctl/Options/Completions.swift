import BTCPriceSocket
import BTCPriceCore

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
        let socket =
            words.firstIndex(of: "--socket").flatMap { words.dropFirst($0 + 1).first }
            ?? words.first { $0.hasPrefix("--socket=") }.map { String($0.dropFirst("--socket=".count)) }
        return try? Connecting.withDaemon(socket: socket, patience: Bar.patience, question)
    }
}
