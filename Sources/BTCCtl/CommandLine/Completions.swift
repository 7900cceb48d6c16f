import ArgumentParser
import BTCPriceAPI
import BTCPriceCore
import Varlink

/// The completions for a shell: what the daemon has now. If it does not respond, all known currencies.
enum Completions {
    /// One currency.
    static let currency = CompletionKind.custom { words, _, _ in currencies(words) }

    /// Currencies separated by commas: the last one is completed.
    static let currencyList = CompletionKind.custom { words, _, prefix in
        let given = prefix.lastIndex(of: ",").map { prefix[...$0] } ?? ""
        return currencies(words).filter { !given.contains($0) }.map { given + $0 }
    }

    /// A source.
    static let source = CompletionKind.custom { words, _, _ in
        ask(words) { connection throws(ClientError) in try connection.listSources(nil).map(\.name) } ?? []
    }

    /// A template of `--format`: its last field is completed.
    static let template = CompletionKind.custom { _, _, prefix in
        let given = prefix.lastIndex(of: "{").map { prefix[..<$0] } ?? prefix[...]
        return FormatTemplate.Field.allCases.map { "\(given){\($0.rawValue)}" }
    }

    private static func currencies(_ words: [String]) -> [String] {
        ask(words) { connection throws(ClientError) in try connection.listCurrencies().map(\.currency) }
            ?? Currency.known.map(\.rawValue)
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
