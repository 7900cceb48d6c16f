import BTCPriceAPI
import BTCPriceCore
import BTCPriceFeature
import Glibc
import Varlink

/// `btcctl history`: prints candles.
enum History {
    // Not inlined, so that `current` does not pay for the run-time setup of these types.
    @inline(never)
    static func run(_ options: HistoryOptions) -> Int32 {
        let query = HistoryQuery(
            currency: Connecting.currency(options.currency), from: options.from, to: options.to, step: options.step,
            more: true)
        let isTable = options.form == .text && isatty(STDOUT_FILENO) == 1
        var table: [[String]] = []
        var known: Int64 = 0
        var isFirst = true
        var note: String?
        do throws(Complaint) {
            try Connecting.withDaemon(socket: options.socket) { connection throws(ClientError) in
                try connection.history(query) { candles, currency, _ in
                    let text = HistoryText(currency: currency, step: options.step, timestamps: options.timestamps)
                    if isFirst {
                        if isTable { table = [HistoryText.header] }
                        if options.form == .csv { Output.line(HistoryText.csvHeader) }
                    }
                    isFirst = false
                    known += Int64(candles.count)
                    if isTable {
                        table += candles.map(text.row)
                    } else if !candles.isEmpty {
                        let lines = candles.map {
                            options.form == .csv ? text.csv($0) : options.form == .json ? text.json($0) : text.line($0)
                        }
                        Output.write(lines.joined(separator: "\n") + "\n", to: STDOUT_FILENO)
                    }
                }
                note = try missing(options, known: known, &connection)
            }
            guard known > 0 else { throw note.map(Complaint.nothingKnown) ?? .nothingKnown }
        } catch {
            Output.tell(error, json: options.form == .json)
            return error.status
        }
        if isTable { Output.line(Table.lines(table).joined(separator: "\n")) }
        if let note { Output.complain(note) }
        return ExitStatus.success
    }

    /// A note if much of the requested span is missing: `Only 1443 of 129600 minutes of this time are known; --step 1h knows more.`
    private static func missing(
        _ options: HistoryOptions, known: Int64, _ connection: inout PriceConnection
    ) throws(ClientError) -> String? {
        let coverage = HistoryCoverage(from: options.from, to: min(options.to, ObservationTime.now().wall))
        guard coverage.isPoor(known, options.step) else { return nil }
        let wanted = coverage.count(options.step)
        var note = "Only \(known) of \(wanted) \(options.step)s of this time are known"
        for step in Candle.Step.allCases where step > options.step {
            var count: Int64 = 0
            let query = HistoryQuery(
                currency: Connecting.currency(options.currency), from: options.from, to: options.to, step: step,
                more: true)
            try connection.history(query) { candles, _, _ in count += Int64(candles.count) }
            guard coverage.knowsMore(count, step, than: known, options.step) else { continue }
            note += "; --step \(StepChoice(step).rawValue) knows more"
            break
        }
        return note + "."
    }
}

/// `btcctl at`: prints the price at a moment.
enum At {
    /// The timeout with `--fetch`, because the daemon then requests the minute from an exchange.
    private static let fetchPatience = Duration.seconds(30)

    @inline(never)
    static func run(_ options: AtOptions) -> Int32 {
        do throws(Complaint) {
            let (known, currency, notFetched) = try Connecting.withDaemon(
                socket: options.socket, patience: options.fetch ? fetchPatience : .seconds(5)
            ) { connection throws(ClientError) in
                try connection.price(
                    at: options.time, in: Connecting.currency(options.currency), fetch: options.fetch)
            }
            if let notFetched { Output.complain("The minute could not be requested: \(notFetched).") }
            guard let known else { throw .nothingKnown }
            let text = HistoryText(currency: currency, step: known.step, timestamps: options.timestamps)
            if let maxStep = options.maxStep, known.step > maxStep {
                throw .tooCoarse(text.range(of: known.candle), canFetch: !options.fetch)
            }
            let unit = Currency(rawValue: currency) ?? .usd
            switch options.form {
            case .text:
                Output.line(text.line(known, at: options.time))
                Output.line(text.description(of: known.candle))
                for amount in options.amounts {
                    Output.line(Convert.text(amount, amount.converted(at: known.price), unit))
                }
            case .raw:
                if known.isCoarse {
                    Output.complain("The exact moment is not known, only the \(text.range(of: known.candle)).")
                }
                if options.amounts.isEmpty { Output.line(known.price.description) }
                for amount in options.amounts {
                    let converted = amount.converted(at: known.price)
                    Output.line((amount.unit == .money(unit) ? converted.btc : converted.money).description)
                }
            case .json:
                let amounts: [Amount?] = options.amounts.isEmpty ? [nil] : options.amounts
                for amount in amounts { Output.line(json(known, amount, unit, at: options.time)) }
            }
            return ExitStatus.success
        } catch {
            Output.tell(error, json: options.form == .json)
            return error.status
        }
    }

    private static func json(_ known: PriceAt, _ amount: Amount?, _ unit: Currency, at time: Timestamp) -> String {
        var object: JSONObject = [
            "currency": .string(unit.rawValue), "time": .integer(time.milliseconds),
            "price": .string(known.price.description), "step": .string(known.step.rawValue),
            "candle": .object(known.candle.json),
        ]
        if let amount {
            let members = Convert.json(amount, amount.converted(at: known.price), unit).members
            for member in members { object[member.name] = member.value }
        }
        return Output.json("at", .object(object))
    }
}
