import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine

/// `btcctl pause`, `btcctl resume`, `btcctl retry` and `btcctl source`.
enum Control {
    private enum Change {
        case pause
        case resume
        /// Clears the cooldown of this source; `nil` for all sources.
        case retry(String?)
        case source(String, isOn: Bool)
    }

    private static let exitStatus = """
        For root, the daemon's own user and the group btc-priced.

        Exit status: 0 on success, also if nothing had to change, 64 for a wrong command line, 69 if the daemon can't be reached, 74 \
        if standard output can't be written, 77 if this user may not do that.
        """

    static let pauseVerb = Verb(
        command: Command(
            "pause", "Stop the ticks until 'btcctl resume'.", details: exitStatus, options: Option.daemon + [.json])
    ) { line throws(UsageError) in try run(.pause, line) }

    static let resumeVerb = Verb(
        command: Command(
            "resume", "Start the ticks again, the first one at once.", details: exitStatus,
            options: Option.daemon + [.json])
    ) { line throws(UsageError) in try run(.resume, line) }

    static let retryVerb = Verb(
        command: Command(
            "retry", "Clear the cooldowns of sources, so that the next tick requests them again.",
            details: """
                Examples:
                  sudo btcctl retry            all sources
                  sudo btcctl retry kraken     only this one

                A cooldown that an exchange has asked for (a limit or a ban) is kept, and named.

                \(exitStatus)
                """, options: Option.daemon + Option.times + [.json],
            words: [
                Words(
                    "source", "The source; without one, all of them.", count: 0...1,
                    completion: .computed { words, _ in Completions.sources(words) })
            ])
    ) { line throws(UsageError) in try run(.retry(line.words.first), line) }

    static let sourceVerb = Verb(
        command: Command(
            "source", "Switch a source off, so that it is not requested, or on again.",
            details: """
                Examples:
                  sudo btcctl source binance off
                  sudo btcctl source binance on

                A reload keeps it off; the next start of the daemon switches it on. If no source is left for a currency, standard \
                error says so. 'btcctl sources' shows those that are off.

                \(exitStatus)
                """, options: Option.daemon + [.json],
            words: [
                Words(
                    "source", "The source, as in 'btcctl sources'.", count: 1...1,
                    completion: .computed { words, _ in Completions.sources(words) }),
                Words("state", "off or on.", count: 1...1, completion: .words(["off", "on"])),
            ])
    ) { line throws(UsageError) in
        let state = line.words[1].lowercased()
        guard ["off", "on"].contains(state) else { throw UsageError("'\(line.words[1])' is neither off nor on") }
        return try run(.source(line.words[0], isOn: state == "on"), line)
    }

    private static func run(_ change: Change, _ line: ParsedLine) throws(UsageError) -> Int32 {
        let (daemon, json) = (try line.daemon(), line.has(.json))
        return Output.status(json: json) { () throws(Complaint) in
            switch change {
            case .pause:
                try Connecting.withDaemon(daemon) { connection throws(ClientError) in try connection.pause() }
                if json { Output.line(Output.json("ticking", .string("paused"))) }
            case .resume:
                try Connecting.withDaemon(daemon) { connection throws(ClientError) in try connection.resume() }
                if json { Output.line(Output.json("ticking", .string("running"))) }
            case .retry(let source):
                let result = try Connecting.withDaemon(daemon) { connection throws(ClientError) -> RetryMessage? in
                    do throws(ClientError) {
                        return try connection.retry(source)
                    } catch {
                        guard case .refused(PriceInterface.unknownSource, _) = error, let source,
                            try connection.getStatus().sourcesOff.contains(source)
                        else { throw error }
                        return nil
                    }
                }
                guard let result else { throw .switchedOff(source ?? "") }
                for text in json ? [Output.json("retry", .object(result.json))] : lines(result, line.timestamps) {
                    Output.line(text)
                }
            case .source(let name, let isOn):
                let result = try Connecting.withDaemon(daemon) { connection throws(ClientError) in
                    try connection.setSource(name, isOn: isOn)
                }
                if json { Output.line(Output.json("source", .object(result.json))) }
                if !json, !result.withoutSource.isEmpty {
                    Output.note(
                        "No source is left for \(result.withoutSource.listed): the price becomes stale, unless it can be derived."
                    )
                }
            }
            return ExitStatus.success
        }
    }

    private static func lines(
        _ result: RetryMessage, _ timestamps: TimestampFormatter
    ) -> [String] {
        let retried =
            result.retried.isEmpty
            ? [] : ["Requested again from the next tick on: \(result.retried.joined(separator: ", "))."]
        let kept = result.kept.map { kept in
            "Kept: \(kept.source), cooldown until \(timestamps.string(from: kept.until)), as the exchange asked: \(kept.reason)."
        }
        return retried.isEmpty && kept.isEmpty ? ["No source is in a cooldown."] : retried + kept
    }
}
