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
        var hasPrinted = false
        do throws(Complaint) {
            try Connecting.withDaemon(socket: options.socket) { connection throws(ClientError) in
                try connection.history(query) { candles, currency, _ in
                    let text = HistoryText(currency: currency, step: options.step, timestamps: options.timestamps)
                    if !hasPrinted {
                        if isTable { table = [HistoryText.header] }
                        if options.form == .csv { Output.line(HistoryText.csvHeader) }
                    }
                    hasPrinted = hasPrinted || !candles.isEmpty
                    if isTable {
                        table += candles.map(text.row)
                    } else if !candles.isEmpty {
                        let lines = candles.map {
                            options.form == .csv ? text.csv($0) : options.form == .json ? text.json($0) : text.line($0)
                        }
                        Output.write(lines.joined(separator: "\n") + "\n", to: STDOUT_FILENO)
                    }
                }
            }
            guard hasPrinted else { throw .nothingKnown }
        } catch {
            Output.tell(error, json: options.form == .json)
            return error.status
        }
        if isTable { Output.line(Table.lines(table).joined(separator: "\n")) }
        return ExitStatus.success
    }
}

/// `btcctl at`: prints the price at a moment.
enum At {
    @inline(never)
    static func run(_ options: AtOptions) -> Int32 {
        do throws(Complaint) {
            let (known, currency) = try Connecting.withDaemon(socket: options.socket) {
                connection throws(ClientError) in
                try connection.price(at: options.time, in: Connecting.currency(options.currency))
            }
            guard let known else { throw .nothingKnown }
            let unit = Currency(rawValue: currency) ?? .usd
            let text = HistoryText(currency: currency, step: known.step, timestamps: options.timestamps)
            let converted = options.amount?.converted(at: known.price)
            switch options.form {
            case .text:
                Output.line(
                    PriceTexts.line(
                        options.timestamps.string(from: options.time),
                        MoneyFormatter().string(from: known.price, currency: currency)))
                Output.line(text.description(of: known.candle))
                if let amount = options.amount, let converted { Output.line(Convert.text(amount, converted, unit)) }
            case .raw:
                guard let amount = options.amount, let converted else {
                    Output.line(known.price.description)
                    break
                }
                Output.line((amount.unit == .money(unit) ? converted.btc : converted.money).description)
            case .json:
                var object: JSONObject = [
                    "currency": .string(currency), "time": .integer(options.time.milliseconds),
                    "price": .string(known.price.description), "step": .string(known.step.rawValue),
                    "candle": .object(known.candle.json),
                ]
                if let amount = options.amount, let converted {
                    object["amount"] = .string(amount.value.description)
                    object["unit"] = .string(amount.unit.name)
                    object["btc"] = .string(converted.btc.description)
                    object["sat"] = .string(converted.sat.description)
                    object[unit.rawValue.lowercased()] = .string(converted.money.description)
                }
                Output.line(Output.json("at", .object(object)))
            }
            return ExitStatus.success
        } catch {
            Output.tell(error, json: options.form == .json)
            return error.status
        }
    }
}
