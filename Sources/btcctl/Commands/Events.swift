import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine

/// `btcctl events`: what went on, as who was outvoted, by how much and how long.
enum Events {
    static let verb = Verb(
        command: Command(
            "events", "Show what happened: outages, doubt, and sources that were wrong.",
            details: """
                Examples:
                  btcctl events                            the last seven days
                  btcctl events --since 2026-08-25 --until 2026-08-26
                  btcctl events -c EUR --json

                An event has a beginning and, if it is over, an end. A source that most others contradicted was outvoted; the \
                farthest distance is that from the price that was shown meanwhile. What begins again within a minute is one \
                event. 'for' means that it goes on.

                Exit status: 0, also without events, 1 if no history is kept, 64 for a wrong command line, 69 if the daemon can't be reached, 74 if \
                standard output can't be written.
                """,
            options: Option.daemon + [currency, since, until] + Option.times + [.jsonLines])
    ) { line throws(UsageError) in
        let (now, isUTC) = (ObservationTime.now(), line.has(.utc))
        var notes: [String] = []
        let read = { (text: String) throws(UsageError) in
            let (time, _, note) = try moment(text, isUTC: isUTC, now: now.wall)
            if let note { notes.append(note) }
            return time
        }
        let to = try line.value(until, read)
        let week = Timestamp(milliseconds: (to ?? now.wall).milliseconds - 7 * 86_400_000)
        let from = try line.value(since, read) ?? week
        guard from < to ?? now.wall else { throw UsageError("--since is not before \(to == nil ? "now" : "--until")") }
        let query = EventQuery(currency: Connecting.currency(try line.currency()), from: from, to: to)
        let (daemon, isJSON, timestamps) = (try line.daemon(), line.has(.json), line.timestamps)
        return Output.status(json: isJSON) { () throws(Complaint) in
            let events = try Connecting.withDaemon(daemon) { connection throws(ClientError) in
                try connection.events(query)
            }
            for note in notes { Output.note(note) }
            let lines =
                isJSON
                ? events.map { Output.json($0.json) } : EventsText(timestamps: timestamps).lines(events, at: .now())
            if !lines.isEmpty { Output.line(lines.joined(separator: "\n")) }
            if events.isEmpty {
                let start = timestamps.string(from: from)
                let time = to.map { "between \(start) and \(timestamps.string(from: $0))" } ?? "since \(start)"
                let place = query.currency.map { " in \($0)" } ?? ""
                Output.note("Nothing is known to have happened\(place) \(time).")
            }
            return ExitStatus.success
        }
    }

    private static let currency = Option(
        "--currency", letter: "c", value: "code",
        "Only those of a currency, and of no currency. Default: $BTCCTL_CURRENCY, all.",
        completion: .computed { words, _ in Completions.currencies(words) })
    private static let since = Option(
        "--since", value: "time",
        "The start: 7d (the default, before --until) or 24h ago, yesterday, 2026-08-25, 2026-08-25T14:30.")
    private static let until = Option("--until", value: "time", "The end, in the same forms. Default: now.")
}
