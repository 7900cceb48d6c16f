import BTCPriceAPI
import BTCPriceCore
import BTCPriceFeature
import Glibc
import Varlink

/// `btcctl history`: prints candles.
enum History {
    /// The most candles that are requested only to count them.
    private static let mostCounted: Int64 = 10_000

    // Not inlined, so that `current` does not pay for the run-time setup of these types.
    @inline(never)
    static func run(_ options: HistoryOptions) -> Int32 {
        let isTable = options.form == .text && isatty(STDOUT_FILENO) == 1
        let coverage = HistoryCoverage(from: options.from, to: min(options.to, ObservationTime.now().wall))
        var table: [[String]] = []
        var (count, known) = (Int64(0), Int64(0))
        var (isFirst, note) = (true, String?.none)
        do throws(Complaint) {
            let state = try Connecting.withDaemon(socket: options.socket) {
                connection throws(ClientError) -> PriceState? in
                var step = options.step ?? Candle.Step.second
                let show = { (candles: [Candle], currency: String) in
                    let text = HistoryText(
                        currency: currency, step: step, timestamps: options.timestamps, days: options.days)
                    if isFirst {
                        if isTable { table = [text.header] }
                        if options.form == .csv { Output.line(HistoryText.csvHeader) }
                    }
                    isFirst = false
                    count += Int64(candles.count)
                    known += coverage.seconds(in: candles, step)
                    if isTable {
                        table += candles.map(text.row)
                    } else if !candles.isEmpty {
                        let lines = candles.map {
                            options.form == .csv ? text.csv($0) : options.form == .json ? text.json($0) : text.line($0)
                        }
                        Output.write(lines.joined(separator: "\n") + "\n", to: STDOUT_FILENO)
                    }
                }
                if options.step == nil {
                    let (best, candles, currency) = try covering(options, coverage, &connection)
                    step = best
                    show(candles, currency)
                } else {
                    try request(options, step, &connection, show)
                }
                note = try missing(options, step, count: count, known: known, coverage, &connection)
                return count > 0 ? nil : try connection.getPrice(in: Connecting.currency(options.currency)).state
            }
            for note in options.notes { Output.complain(note) }
            guard count > 0 else { throw .nothingKnown(in: state, note: note) }
        } catch {
            Output.tell(error, json: options.form == .json)
            return error.status
        }
        if isTable { Output.line(Table.lines(table).joined(separator: "\n")) }
        if let note { Output.complain(note) }
        return ExitStatus.success
    }

    /// Requests candles, from the oldest to the newest.
    /// - Parameter take: Called for each batch, with its currency.
    static func request(
        _ options: HistoryOptions, _ step: Candle.Step, _ connection: inout PriceConnection,
        _ take: ([Candle], String) -> Void
    ) throws(ClientError) {
        var query = HistoryQuery(
            currency: Connecting.currency(options.currency), from: options.from, to: options.to, step: step, more: true)
        guard step == .day, options.days == .local else {
            return try connection.history(query) { candles, currency, _ in take(candles, currency) }
        }
        let days = ReaderDays(from: options.from, to: options.to, calendar: ReaderCalendar(isUTC: false))
        guard let hours = days.hours else { return }
        (query.from, query.to, query.step) = (hours.from, hours.to, .hour)
        var (known, minutes, currency) = ([Candle](), [Candle](), Currency.usd.rawValue)
        try connection.history(query) { candles, named, _ in
            known += candles
            currency = named
        }
        query.step = .minute
        for start in days.cut(known) {
            (query.from, query.to) = (
                Timestamp(milliseconds: start * 1000), Timestamp(milliseconds: (start + 3600) * 1000)
            )
            try connection.history(query) { candles, _, _ in minutes += candles }
        }
        take(days.candles(hours: known, minutes: minutes, at: ObservationTime.now().wall.milliseconds / 1000), currency)
    }

    /// The candles of the shortest step that covers the span, and gives a table of readable length; if none covers it, of the one that
    /// covers most.
    private static func covering(
        _ options: HistoryOptions, _ coverage: HistoryCoverage, _ connection: inout PriceConnection
    ) throws(ClientError) -> (Candle.Step, [Candle], String) {
        let length = (options.to.milliseconds - options.from.milliseconds) / 1000
        let shortest: Candle.Step = length <= 3 * 3600 ? .minute : length <= 7 * 86_400 ? .hour : .day
        var best: (step: Candle.Step, candles: [Candle], currency: String, known: Int64)?
        for step in Candle.Step.allCases where step >= shortest {
            var (candles, currency, longer) = ([Candle](), Currency.usd.rawValue, options)
            // A longer candle may begin before the span.
            if step > shortest {
                // A local day begins at most a day before that of UTC.
                let earlier = step == .day && options.days == .local ? step.seconds : 0
                let start = step.start(of: options.from.milliseconds / 1000)
                longer.from = Timestamp(milliseconds: (start - earlier) * 1000)
            }
            try request(longer, step, &connection) {
                candles += $0
                currency = $1
            }
            let known = coverage.seconds(in: candles, step)
            if best.map({ coverage.knowsMore(known, than: $0.known) }) ?? true {
                best = (step, candles, currency, known)
            }
            if known > 0, !coverage.isPoor(known / step.seconds, step) { break }
        }
        return best.map { ($0.step, $0.candles, $0.currency) } ?? (shortest, [], Currency.usd.rawValue)
    }

    /// A note if much of the requested span is missing: `Only 1443 of 129600 minutes of this time are known; --step 1h knows more.`
    /// - Parameters:
    ///   - count: The number of candles that are known.
    ///   - known: The seconds that they cover.
    private static func missing(
        _ options: HistoryOptions, _ step: Candle.Step, count: Int64, known: Int64, _ coverage: HistoryCoverage,
        _ connection: inout PriceConnection
    ) throws(ClientError) -> String? {
        guard coverage.isPoor(known / step.seconds, step) else { return nil }
        let wanted = coverage.count(step)
        let what = count == 0 ? "No" : count < wanted ? "Only \(count) of \(wanted)" : "Only parts of the \(wanted)"
        var note = "\(what) \(step)s of this time are known"
        var utc = options
        utc.days = .utc
        for longer in Candle.Step.allCases
        where (options.step != nil && longer > step || longer == step && step == .day && options.days == .local)
            && coverage.count(longer) <= mostCounted
        {
            var seconds: Int64 = 0
            try request(utc, longer, &connection) { candles, _ in seconds += coverage.seconds(in: candles, longer) }
            guard coverage.knowsMore(seconds, than: known) else { continue }
            note +=
                longer == step ? "; --day-zone utc knows more" : "; --step \(StepChoice(longer).rawValue) knows more"
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
            let (answer, state) = try Connecting.withDaemon(
                socket: options.socket, patience: options.fetch ? fetchPatience : .seconds(5)
            ) { connection throws(ClientError) in
                let named = Connecting.currency(options.currency)
                let answer = try connection.price(at: options.time, in: named, fetch: options.fetch)
                return (answer, answer.known == nil ? try connection.getPrice(in: named).state : nil)
            }
            let (known, currency, notFetched) = answer
            for note in [options.note, notFetched.map { "The minute could not be requested: \($0)." }] {
                if let note { Output.complain(note) }
            }
            guard let known else { throw .nothingKnown(in: state) }
            let text = HistoryText(currency: currency, step: known.step, timestamps: options.timestamps)
            if let maxStep = options.maxStep, known.step > maxStep {
                throw .tooCoarse(text.range(of: known.candle), canFetch: !options.fetch)
            }
            let unit = Currency(rawValue: currency) ?? .usd
            let amounts = options.amounts.map { $0.amount(in: unit) }
            switch options.form {
            case .text:
                Output.line(text.line(known, at: options.time))
                Output.line(text.description(of: known.candle))
                for amount in amounts {
                    Output.line(Convert.text(amount, amount.converted(at: known.price), unit))
                }
            case .raw:
                if known.isCoarse {
                    Output.complain("The exact moment is not known, only the \(text.range(of: known.candle)).")
                }
                if known.candle.isInDoubt { Output.complain(PriceTexts.unconfirmed) }
                if amounts.isEmpty { Output.line(known.price.description) }
                for amount in amounts {
                    let converted = amount.converted(at: known.price)
                    Output.line((amount.unit == .money(unit) ? converted.btc : converted.money).description)
                }
            case .json:
                for amount in amounts.isEmpty ? [nil] : amounts as [Amount?] {
                    Output.line(json(known, amount, unit, at: options.time))
                }
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
