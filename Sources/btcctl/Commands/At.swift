import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine

/// `btcctl at`: prints the price at a moment.
struct At {
    static let verb = Verb(
        command: Command(
            "at", "Print the price at a moment of the past.",
            details: """
                Examples:
                  btcctl at 2026-08-25T14:30
                  btcctl at 2026-08-25T14:30 0.05btc     what 0.05 bitcoin were worth then
                  btcctl at 2025-03-01T12:00 --fetch     asks an exchange for the minute
                  btcctl at 7d --raw --max-step 1m       the price a week ago, for scripts
                  btcctl at --csv payments.csv --fetch > priced.csv

                The price is that of the shortest candle that is known: of a second in the last hour, else of a minute, an hour or \
                a day; its first or its last price, whichever is nearer to the moment. If it is of an hour or a day, or of a minute \
                of which less than five sixths are known, it is printed as 'about', with the lowest and the highest price of that \
                time; also if all its prices are in doubt. With --raw, standard error says so.

                --fetch tells an exchange which moment you are interested in. The minute is kept as long as the others.

                --csv adds columns to a table with a header or without, whose cells are separated by commas, semicolons or tabs: \
                price, value (of the amount; in bitcoin if that is money), currency, step, low and high (if the price is only \
                known to be between them), origin and doubt. A time is 2026-08-25T14:30:05Z, the same in local time or, with \
                --utc, in UTC without the Z, or Unix seconds or milliseconds. A row without a price keeps its bytes, gets empty \
                cells, and is named on standard error. --fetch waits for the daemon's limits; what was requested is kept as \
                other minutes are, so that a repetition goes on.

                Exit status: 0 with a price, 1 if nothing is known of that moment, or a row of the file has no price, 64 for a wrong command line, 69 if the daemon \
                can't be reached, 74 if standard output can't be written, 75 if only a longer candle than --max-step is known, or less than five sixths of a minute (with \
                --csv: 1).
                """,
            options: Option.daemon + [.currency, longestStep, fetchFlag] + PricedPayments.options + Option.times + [
                .json, Option("--raw", "Print the exact number alone: the price, or what the amount was worth."),
            ],
            words: [
                Words(
                    "time", "The moment: 2026-08-25T14:30, 2026-08-25, 14:30, yesterday, 7d, @1795400000.",
                    count: 0...1),
                Words("amount", "Amounts: 0.05btc, 100000sat, 250usd.", count: 0...Int(Int32.max)),
            ])
    ) { line throws(UsageError) in
        let payments = try PricedPayments(
            line, currency: try line.currency(), maxStep: try maxStep(line), fetch: line.has(fetchFlag))
        if let payments { return Output.status(of: payments.run) }
        let at = try At(line)
        return Output.status(json: at.form == .json, of: at.run)
    }

    private static let longestStep = Option(
        "--max-step", value: "step",
        "Fail with status 75 if only a longer candle is known (1s, 1m, 1h, 1d), or too little of a minute.",
        completion: .words(StepChoice.steps.map(\.rawValue)))
    private static let fetchFlag = Option(
        "--fetch", "Request the minute from an exchange if less than five sixths of it are known.")

    /// The timeout with `--fetch`, because the daemon then requests the minute from an exchange.
    static let fetchPatience = Duration.seconds(60)

    private let daemon: DaemonAddress
    private let currency: String?
    private let time: Timestamp
    /// What is to be known of the time.
    private let note: String?
    private let amounts: [GivenAmount]
    /// The longest candle that is precise enough; `nil` for any.
    private let maxStep: Candle.Step?
    /// Whether the minute is requested from an exchange if it is not known.
    private let fetch: Bool
    private let form: PlainForm
    private let timestamps: TimestampFormatter

    private init(_ line: ParsedLine) throws(UsageError) {
        guard let word = line.words.first else { throw UsageError("<time> is missing") }
        form = try line.plainForm()
        var (amounts, currency) = try Convert.read(Array(line.words.dropFirst()), in: try line.currency())
        for case .money(let unit) in amounts.compactMap(\.unit) {
            guard currency ?? unit.rawValue == unit.rawValue else {
                throw UsageError(
                    "the price is wanted in \(currency ?? "") and in \(unit.rawValue): name one currency")
            }
            currency = unit.rawValue
        }
        (self.amounts, self.currency) = (amounts, currency)
        let now = ObservationTime.now().wall
        (time, _, note) = try moment(word, isUTC: line.has(.utc), now: now)
        guard time <= now else { throw UsageError("the moment '\(word)' is in the future") }
        maxStep = try Self.maxStep(line)
        fetch = line.has(Self.fetchFlag)
        daemon = try line.daemon()
        timestamps = line.timestamps
    }

    private static func maxStep(_ line: ParsedLine) throws(UsageError) -> Candle.Step? {
        try line.choice(longestStep, among: StepChoice.steps)?.step
    }

    private func run() throws(Complaint) -> Int32 {
        let (answer, state) = try Connecting.withDaemon(
            daemon, patience: fetch ? Self.fetchPatience : .seconds(5)
        ) { connection throws(ClientError) in
            let named = Connecting.currency(self.currency)
            let answer = try connection.price(at: time, in: named, fetch: fetch)
            return (answer, answer.known == nil ? try connection.getPrice(in: named).state : nil)
        }
        let (known, currency, notFetched) = answer
        for note in [self.note, notFetched.map { "The minute could not be requested: \($0)." }] {
            if let note { Output.note(note) }
        }
        guard let known else { throw .nothingKnown(in: state) }
        let text = HistoryText(currency: currency, step: known.step, timestamps: timestamps)
        if let maxStep, known.isLess(than: maxStep) {
            throw .tooCoarse(text.range(of: known.candle), canFetch: !fetch)
        }
        let unit = Currency(rawValue: currency) ?? .usd
        let price = ConversionPrice(known.candle, known.price, isCoarse: known.isCoarse, in: unit)
        let wanted = amounts.map { $0.amount(in: unit) }
        switch form {
        case .text:
            Output.line(text.line(known, at: time))
            Output.line(text.description(of: known.candle))
            for amount in wanted { Output.line(price.text(amount)) }
        case .raw:
            if known.isCoarse {
                Output.note("The exact moment is not known, only the \(text.range(of: known.candle)).")
            }
            if known.candle.isInDoubt { Output.note(PriceTexts.unconfirmed) }
            if known.candle.isDerived { Output.note("Derived from another currency's price by the rate of the day.") }
            if wanted.isEmpty { Output.line(known.price.description) }
            for amount in wanted {
                let converted = amount.converted(at: known.price)
                Output.line((amount.unit == .money(unit) ? converted.btc : converted.money).description)
            }
        case .json:
            for amount in wanted.isEmpty ? [nil] : wanted as [Amount?] {
                Output.line(Self.json(known, amount, price, at: time))
            }
        }
        return ExitStatus.success
    }

    private static func json(
        _ known: PriceAt, _ amount: Amount?, _ price: ConversionPrice, at time: Timestamp
    ) -> String {
        var object: JSONObject = [
            "currency": .string(price.currency.rawValue), "time": .integer(time.milliseconds),
            "price": .string(known.price.description), "step": .string(known.step.rawValue),
            "candle": .object(known.candle.json), "approximate": .bool(price.isApproximate),
        ]
        if let amount {
            for member in Convert.json(amount, price).members { object[member.name] = member.value }
        }
        return Output.json("at", .object(object))
    }
}
