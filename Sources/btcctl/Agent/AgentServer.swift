import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import Glibc

/// `btcctl mcp`: the tools of ``AgentTools`` over standard input and output, a message a line.
enum AgentServer {
    static let verb = Verb(
        command: Command(
            "mcp", "Serve the price to an agent, by the Model Context Protocol.",
            details: """
                An agent's program starts it, with a configuration such as
                  {"mcpServers": {"bitcoin": {"command": "btcctl", "args": ["mcp"]}}}

                It reads requests from standard input and ends with it. The tools are price, price_at, history, convert and status. \
                Times without a zone are UTC.

                Exit status: 0 at the end of the input, 64 for a wrong command line, 74 if standard output can't be written.
                """, options: Option.daemon)
    ) { line throws(UsageError) in
        run(AgentProtocol(tools: AgentTools(daemon: try line.daemon()).all, instructions: AgentTools.instructions))
    }

    private static func run(_ agent: AgentProtocol) -> Int32 {
        var (line, isTooLong) = ([UInt8](), false)
        var chunk = [UInt8](repeating: 0, count: 65_536)
        func end() {
            defer { (line, isTooLong) = ([], false) }
            guard isTooLong || line.contains(where: { $0 > UInt8(ascii: " ") }) else { return }
            if let reply = agent.reply(to: isTooLong ? nil : line[...]) { Output.line(reply.text) }
        }
        while true {
            let count = read(STDIN_FILENO, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            var rest = chunk[..<count]
            while let newline = rest.firstIndex(of: UInt8(ascii: "\n")) {
                take(rest[..<newline])
                end()
                rest = rest[(newline + 1)...]
            }
            take(rest)
        }
        end()
        return ExitStatus.success

        func take(_ bytes: ArraySlice<UInt8>) {
            isTooLong = isTooLong || line.count + bytes.count > AgentProtocol.longest
            if isTooLong { line = [] } else { line += bytes }
        }
    }
}

/// The tools for agents: what `current`, `at`, `history`, `convert` and `status` print, with the doubt in words.
struct AgentTools {
    static let instructions = """
        These tools give the price of one bitcoin that btc-priced keeps on this machine. Call a price current only if "current" is true; \
        otherwise say its time, and that it is not current. Say so if "confirmation" is "unconfirmed" or there is a "warning". \
        "statement" has it all in words. Amounts are exact decimals in strings; times are UTC.
        """

    private typealias Field = AgentTool.Field

    /// The most candles of a reply.
    private static let mostCandles = 1000
    private static let currency = Field(
        "currency", "ISO 4217, such as EUR. Default: $BTCCTL_CURRENCY, the first one that is kept.")
    private static let requirements = [
        currency, Field("max_age_seconds", "Refuse a price that is older.", .number),
        Field("confirmed", "Refuse a price that no other exchange confirms.", .flag),
        Field("max_uncertainty_percent", "Refuse a price whose uncertainty is larger, or not known.", .number),
    ]
    private static let statement = Field(
        "statement", "The result in words, with what is to be said of it.", isRequired: true)
    private static let price = [
        statement, Field("current", "Whether the price is current.", .flag, isRequired: true),
        Field("price", "The price of one bitcoin.", isRequired: true),
        Field("currency", "ISO 4217", isRequired: true), Field("time", "When it was observed.", isRequired: true),
        Field("age_seconds", "Its age; null if that is not known.", .number),
        Field("confirmation", "confirmed, single (no other exchange has a say) or unconfirmed"),
        Field("plus_minus", "How far the middle of the markets may be from it; null if that is not known."),
        Field("derived", "Whether it was computed from another currency's.", .flag, isRequired: true),
        Field("source", "The exchange, and the peer that it came through.", isRequired: true),
        Field("warning", "What contradicts it; null for nothing."),
    ]

    let daemon: DaemonAddress
    private let utc = TimestampFormatter(isUTC: true, isISO: true)

    init(daemon: DaemonAddress) { self.daemon = daemon }

    var all: [AgentTool] {
        [
            AgentTool(
                name: "price", about: "The price of one bitcoin now.", arguments: Self.requirements,
                results: Self.price
            ) { given throws(Complaint) in
                try price(given)
            },
            AgentTool(
                name: "price_at", about: "The price of one bitcoin at a moment of the past.",
                arguments: [
                    Field("time", "2026-08-25T14:30Z, 2026-08-25, yesterday or 7d (ago).", isRequired: true),
                    Self.currency,
                    Field("fetch", "Ask an exchange for the minute if it is not known. It learns the moment.", .flag),
                ],
                results: [
                    Self.statement, Field("price", "The price of one bitcoin.", isRequired: true),
                    Field("currency", "ISO 4217", isRequired: true),
                    Field("time", "The moment.", isRequired: true),
                    Field("step", "What it is known of: a second, minute, hour or day.", isRequired: true),
                    Field("approximate", "Whether only low and high of the step are sure.", .flag, isRequired: true),
                    Field("low", "The lowest price of the step.", isRequired: true),
                    Field("high", "The highest price of the step.", isRequired: true),
                ], isOpen: true
            ) { given throws(Complaint) in
                try priceAt(given)
            },
            AgentTool(
                name: "history", about: "The past as candles: the first, highest, lowest and last price of each step.",
                arguments: [
                    Field("since", "The start, as time in price_at. Default: 24h."),
                    Field("until", "The end. Default: now."),
                    Field("step", "1m, 1h (the default) or 1d. At most \(Self.mostCandles) candles."), Self.currency,
                ],
                results: [
                    Field("currency", "ISO 4217", isRequired: true),
                    Field("candles", "time, open, high, low, close, origin, notes", .list, isRequired: true),
                    Field("note", "How much of the time is known; null if nearly all is."),
                ]
            ) { given throws(Complaint) in
                try history(given)
            },
            AgentTool(
                name: "convert", about: "What an amount is worth in bitcoin, satoshis and money.",
                arguments: [Field("amount", "0.05btc, 100000sat or 250usd", isRequired: true)] + Self.requirements,
                results: [
                    Self.statement, Field("amount", "The number.", isRequired: true),
                    Field("unit", "Its unit.", isRequired: true),
                    Field("btc", "In bitcoin.", isRequired: true), Field("sat", "In satoshis.", isRequired: true),
                    Field("approximate", "Whether the price is in doubt or not current.", .flag, isRequired: true),
                    Field("price", "The price, as the tool of this name has it.", .object, isRequired: true),
                    Field("other_price", "That of the other currency, if there are two.", .object),
                ]
            ) { given throws(Complaint) in
                try convert(given)
            },
            AgentTool(
                name: "status",
                about: "The state of the daemon and its sources, to find out why a price is not current.",
                arguments: [],
                results: [
                    Field("status", "As in btcctl status --json.", .object, isRequired: true),
                    Field("sources", "As in btcctl sources --json.", .list, isRequired: true),
                ]
            ) { _ throws(Complaint) in
                let (status, sources) = try Connecting.withDaemon(daemon) { connection throws(ClientError) in
                    (try connection.getStatus(), try connection.listSources())
                }
                return ["status": .object(status.json), "sources": .array(sources.map { .object($0.json) })]
            },
        ]
    }

    // MARK: - The tools

    private func price(_ given: JSONValue) throws(Complaint) -> JSONObject {
        let message = try Current.state(try asking(given))
        guard message.state.quote != nil else { throw .noPrice(message.state.failure) }
        return shown(message.state)
    }

    /// The result of the tool ``price``. The state has a price.
    private func shown(_ state: PriceState) -> JSONObject {
        let now = ObservationTime.now()
        let model = PriceViewModel(timestampFormatter: utc)
        model.show(state, at: now)
        let words = [model.banner, model.reason, model.line, model.doubt].compactMap(\.self).map { text in
            text.hasSuffix(".") ? text : "\(text)."
        }
        let isEstimate = state.age(at: now)?.isEstimate ?? true
        let age = isEstimate ? nil : state.age(at: now).map { Price($0.age.wholeMilliseconds, scale: 3) }
        return [
            "statement": .string(words.joined(separator: " ")), "current": .bool(state.freshness == .fresh),
            "price": .optional(state.quote?.value.description), "currency": .string(state.currency),
            "time": .optional(state.quote.map { utc.string(from: $0.timestamp) }),
            "age_seconds": age.map { .number($0.description) } ?? .null,
            "confirmation": .optional(state.confirmation?.rawValue),
            "plus_minus": .optional(state.standing.uncertainty?.plusMinus.description),
            "derived": .bool(state.derivation != nil), "source": .optional(state.quote?.sourceText),
            "warning": .optional(state.standing.warning),
        ]
    }

    private func priceAt(_ given: JSONValue) throws(Complaint) -> JSONObject {
        let time = try moment(given["time"]) ?? ObservationTime.now().wall
        let (named, fetch) = (Connecting.currency(try currency(given)), given["fetch"]?.boolValue ?? false)
        let answer = try Connecting.withDaemon(daemon, patience: fetch ? At.fetchPatience : .seconds(5)) {
            connection throws(ClientError) in
            try connection.price(at: time, in: named, fetch: fetch)
        }
        let notFetched = answer.notFetched.map { "The minute could not be requested: \($0)." }
        guard let known = answer.known else { throw .nothingKnown(in: nil, note: notFetched) }
        let text = HistoryText(currency: answer.currency, step: known.step, timestamps: utc)
        let words = ["\(text.line(known, at: time)): \(text.description(of: known.candle)).", notFetched]
        return [
            "statement": .string(words.compactMap(\.self).joined(separator: " ")),
            "price": .string(known.price.description),
            "currency": .string(answer.currency), "time": .string(utc.string(from: time)),
            "step": .string(known.step.rawValue), "approximate": .bool(known.isApproximate),
            "low": .string(known.candle.low.description), "high": .string(known.candle.high.description),
        ]
    }

    private func history(_ given: JSONValue) throws(Complaint) -> JSONObject {
        let now = ObservationTime.now().wall
        let to = try moment(given["until"]) ?? now
        let from = try moment(given["since"]) ?? Timestamp(milliseconds: now.milliseconds - 86_400_000)
        let choices: [StepChoice] = [.minute, .hour, .day]
        let wanted = given["step"]?.stringValue ?? StepChoice.hour.rawValue
        guard let step = choices.first(where: { $0.rawValue == wanted })?.step else {
            throw Self.wrong("'\(wanted)' is no step: it is 1m, 1h or 1d")
        }
        guard from < to else { throw Self.wrong("since is not before until") }
        guard (to.milliseconds - from.milliseconds) / 1000 / step.seconds <= Self.mostCandles else {
            throw Self.wrong("That is more than \(Self.mostCandles) candles: choose a longer step or a shorter time")
        }
        let query = HistoryQuery(
            currency: Connecting.currency(try currency(given)), from: from, to: to, step: step, more: true)
        let coverage = HistoryCoverage(from: from, to: min(to, now))
        var (candles, name, known) = ([JSON](), "", Int64(0))
        try Connecting.withDaemon(daemon) { connection throws(ClientError) in
            try connection.history(query) { batch, currency, _ in
                name = currency
                candles += batch.map { candle(_: $0, step) }
                known += coverage.seconds(in: batch, step)
            }
        }
        guard !candles.isEmpty else { throw .nothingKnown(in: nil) }
        let note = History.coverage(Int64(candles.count), step, known: known, of: coverage).map { "\($0)." }
        return ["currency": .string(name), "candles": .array(candles), "note": .optional(note)]
    }

    private func candle(_ candle: Candle, _ step: Candle.Step) -> JSON {
        let notes = PriceTexts.notes(on: candle, minutes: step.minutes).joined(separator: ", ")
        return .object([
            "time": .string(utc.string(from: Timestamp(milliseconds: candle.start * 1000))),
            "open": .string(candle.open.description), "high": .string(candle.high.description),
            "low": .string(candle.low.description), "close": .string(candle.close.description),
            "origin": .string(candle.origin), "notes": .optional(notes.isEmpty ? nil : notes),
        ])
    }

    private func convert(_ given: JSONValue) throws(Complaint) -> JSONObject {
        var asking = try asking(given)
        let (amounts, currency) = try Self.checked { () throws(UsageError) in
            try Convert.read([given["amount"]?.stringValue ?? ""], in: asking.currency)
        }
        asking.currency = currency
        guard let amount = amounts.first else { throw Self.wrong("There is no amount") }
        var prices = CurrentPrices(asking: asking)
        let converted = try Convert.convert(amount, &prices)
        var object = converted.json
        let (price, other) = (
            shown(converted.price.message.state), converted.other.map { shown($0.message.state) }
        )
        let words = [price, other].compactMap { $0?["statement"] }.map {
            if case .string(let text) = $0 { text } else { "" }
        }
        object["statement"] = .string("\(converted.text). Price: \(words.joined(separator: " Price: "))")
        object["price"] = .object(price)
        object["other_price"] = other.map { .object($0) } ?? .null
        return object
    }

    // MARK: - The arguments

    private func asking(_ given: JSONValue) throws(Complaint) -> AskingOptions {
        let limit = try number("max_uncertainty_percent", given, PriceRequirements.percents)
        let seconds = try number("max_age_seconds", given, 0...1_000_000_000)
        let age = seconds.map { Duration.seconds($0.double) }
        return AskingOptions(
            daemon: daemon, maxAge: age,
            requirements: PriceRequirements(
                trust: given["confirmed"]?.boolValue == true ? .confirmed : .all, maxUncertainty: limit),
            currency: try currency(given))
    }

    private func number(_ name: StaticString, _ given: JSONValue, _ range: ClosedRange<Price>) throws(Complaint)
        -> Price?
    {
        guard let digits = given[name]?.number else { return nil }
        guard let number = Price(utf8: digits), range.contains(number) else {
            throw Self.wrong("'\(name)' is not from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    private func currency(_ given: JSONValue) throws(Complaint) -> String? {
        guard let text = given["currency"]?.stringValue else { return nil }
        return try Self.checked { () throws(UsageError) in try currencyCode(text) }
    }

    private func moment(_ given: JSONValue?) throws(Complaint) -> Timestamp? {
        guard let text = given?.stringValue else { return nil }
        let now = ObservationTime.now().wall
        let time = try Self.checked { () throws(UsageError) in try btcctl.moment(text, isUTC: true, now: now).time }
        guard time <= now else { throw Self.wrong("'\(text)' is in the future") }
        return time
    }

    private static func checked<Value>(_ read: () throws(UsageError) -> Value) throws(Complaint) -> Value {
        do throws(UsageError) { return try read() } catch { throw wrong(error.message) }
    }

    private static func wrong(_ message: String) -> Complaint {
        Complaint(word: "usage", message: "\(message).", status: ExitStatus.usage)
    }
}
