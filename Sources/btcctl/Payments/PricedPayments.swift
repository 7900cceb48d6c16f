import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import Files
import Glibc

/// `btcctl at --csv`: adds the price at the time of each payment to a file.
struct PricedPayments {
    static let csv = Option(
        "--csv", value: "file", "Add the prices to a file of payments ('-' for standard input), and print it.",
        completion: .files)
    private static let timeColumn = Option(
        "--time-column", value: "column", "With --csv: the column of the times, by its name or number.")
    private static let amountColumn = Option(
        "--amount-column", value: "column", "With --csv: the column of the amounts, or 'none'.")
    private static let unit = Option(
        "--unit", value: "unit", "With --csv: the unit of amounts without one: btc, sat, msat or usd.")
    private static let decimal = Option(
        "--decimal", value: "mark", "With --csv: '.' (the default) or ',' begins the decimals.",
        completion: .words([".", ","]))
    static let options = [csv, timeColumn, amountColumn, unit, decimal]

    /// The longest file, MiB.
    private static let longestFile = 16
    /// The columns that are added.
    private static let added = ["price", "value", "currency", "step", "low", "high", "origin", "doubt"]

    private let path: String
    private var columns = PaymentColumns.Options()
    private let daemon: DaemonAddress
    private let currency: String?
    private let maxStep: Candle.Step?
    private let fetch: Bool

    /// - Returns: `nil` without ``csv``.
    init?(_ line: ParsedLine, currency: String?, maxStep: Candle.Step?, fetch: Bool) throws(UsageError) {
        guard let path = line.text(Self.csv) else {
            if let needless = Self.options.first(where: line.has) {
                throw UsageError("\(needless.name) needs \(Self.csv.name)")
            }
            return nil
        }
        if let word = line.words.first { throw UsageError("unexpected word '\(word)': the times are in the file") }
        if line.has(.json) || line.has(.raw) { throw UsageError("--csv prints the file: --json and --raw exclude it") }
        self.path = path
        columns.time = line.text(Self.timeColumn)
        columns.amount = line.text(Self.amountColumn)
        columns.isUTC = line.has(.utc)
        columns.unit = try line.value(Self.unit) { text throws(UsageError) in
            guard let unit = PaymentUnit(name: text.lowercased()) else {
                throw UsageError("it is btc, sat, msat, or the code of a currency such as usd")
            }
            return unit
        }
        columns.decimalMark =
            try line.value(Self.decimal) { text throws(UsageError) in
                guard [".", ","].contains(text) else { throw UsageError("it is '.' or ','") }
                return Character(text)
            } ?? "."
        var named = currency
        if case .money(let money) = columns.unit?.unit {
            guard named ?? money.rawValue == money.rawValue else {
                throw UsageError("the price is wanted in \(named ?? "") and the amounts are in \(money.rawValue)")
            }
            named = money.rawValue
        }
        (self.currency, self.maxStep, self.fetch) = (named, maxStep, fetch)
        daemon = try line.daemon()
    }

    func run() throws(Complaint) -> Int32 {
        let (table, found) = try read()
        let now = ObservationTime.now().wall
        var (payments, problems) = ([Int: Payment](), [(line: Int, text: String)]())
        var empty: [Int] = []
        let first = table.rows.firstIndex { !$0.isEmpty && $0.cells != nil } ?? 0
        let width = table.rows[first].cells?.count ?? 0
        for (index, row) in table.rows.enumerated() where index != first || found.header == nil {
            guard !row.isEmpty else {
                empty.append(row.line)
                continue
            }
            do throws(PaymentTable.Mistake) {
                payments[index] = try payment(of: row, found, width: width, now: now)
            } catch {
                problems.append((row.line, error.message))
            }
        }
        note(found, payments.values)
        if !empty.isEmpty { Output.note("Empty lines: \(empty.map(String.init).joined(separator: ", ")).") }
        for (index, payment) in payments.sorted(by: { $0.key < $1.key }) {
            guard let second = payment.second else { continue }
            let exact = TimestampFormatter(isUTC: found.isUTC, isISO: true)
            Output.note(
                "btcctl: line \(table.rows[index].line): the time occurs twice: this is the first one, "
                    + "\(exact.string(from: payment.time)). The second one is \(exact.string(from: second)).")
        }
        let (known, currency, failure) = try prices(at: Set(payments.values.map(\.time)).sorted())
        var output = Array(table.start)
        for (index, row) in table.rows.enumerated() {
            if index == first, let header = found.header {
                output += table.extended(row, Self.names(beside: header), width: width)
                continue
            }
            var cells = [String](repeating: "", count: Self.added.count)
            if let payment = payments[index] {
                do throws(PaymentTable.Mistake) {
                    cells = try self.cells(payment, known[payment.time], in: currency, found.decimalMark)
                } catch {
                    problems.append((row.line, error.message))
                }
                if let reason = known[payment.time]?.notFetched {
                    Output.note("btcctl: line \(row.line): the minute could not be requested: \(reason).")
                }
            }
            // Cells would not be added to an empty line or to one whose quotation marks are wrong, but to its last cell.
            output +=
                row.isEmpty || row.cells == nil ? Array(row.bytes + row.end) : table.extended(row, cells, width: width)
        }
        Output.write(output, to: STDOUT_FILENO)
        for problem in problems.sorted(by: { $0.line < $1.line }) {
            Output.complain("btcctl: line \(problem.line): \(problem.text.printable).")
        }
        if let failure { throw failure }
        guard problems.isEmpty else {
            throw Complaint(
                word: "noPrice",
                message:
                    "\(problems.count) of \(table.rows.count - empty.count - (found.header == nil ? 0 : 1)) rows have no price.",
                status: ExitStatus.noPrice)
        }
        return ExitStatus.success
    }

    private func read() throws(Complaint) -> (PaymentTable, PaymentColumns) {
        func complaint(_ message: String) -> Complaint {
            Complaint(word: "usage", message: message, status: ExitStatus.usage)
        }
        do {
            let bytes = try fileContent(path == "-" ? "/dev/stdin" : path, atMost: Self.longestFile, mayBePipe: true)
            let table = try PaymentTable(bytes)
            return (table, try PaymentColumns(of: table, columns))
        } catch let error as FileFailure {
            throw complaint(error.description)
        } catch {
            throw complaint("\(path): \((error as? PaymentTable.Mistake)?.message ?? "\(error)").")
        }
    }

    private func payment(
        of row: PaymentTable.Row, _ found: PaymentColumns, width: Int, now: Timestamp
    ) throws(PaymentTable.Mistake) -> Payment {
        guard let cells = row.cells else {
            throw PaymentTable.Mistake(message: "a quotation mark is missing, or one too many")
        }
        guard cells.count <= width else {
            throw PaymentTable.Mistake(message: "it has \(cells.count) cells, and the first line \(width)")
        }
        return try found.payment(cells, now: now)
    }

    /// Says what was found in the file.
    private func note(_ found: PaymentColumns, _ payments: some Collection<Payment>) {
        let unit = found.unit.map { " in \($0.factor == 1 ? $0.unit.name : "msat")" } ?? ""
        let amounts = found.amount.map { "amounts\(unit) from \(found.name(of: $0))" } ?? "no amounts"
        Output.note(
            "Times\(found.isUTC ? " in UTC" : "") are read from \(found.name(of: found.time)), \(amounts).".printable)
        let days = payments.count(where: \.isDay)
        if days > 0 { Output.note("\(days) of the times are days: the price is that of the day's beginning.") }
    }

    /// The names of the new columns. If the file has one of them, all have a prefix.
    private static func names(beside header: [String]) -> [String] {
        let known = Set(header.map { $0.lowercased() })
        return known.isDisjoint(with: added) ? added : added.map { "btc_\($0)" }
    }

    /// The cells of a payment: the exact price, what the amount was worth in its currency (in bitcoin, if the amount is money), and how far
    /// both may be believed.
    private func cells(
        _ payment: Payment, _ moment: MomentMessage?, in currency: String, _ decimalMark: Character
    ) throws(PaymentTable.Mistake) -> [String] {
        guard let known = moment?.known else {
            throw PaymentTable.Mistake(message: "no price is recorded for that time")
        }
        let text = HistoryText(currency: currency, step: known.step, timestamps: TimestampFormatter())
        if let maxStep, known.isLess(than: maxStep) {
            throw PaymentTable.Mistake(
                message: "less is known than --max-step asks for, only the \(text.range(of: known.candle))")
        }
        var value = ""
        if let amount = payment.amount {
            let converted = amount.converted(at: known.price)
            if case .money(let unit) = amount.unit {
                guard unit.rawValue == currency else {
                    throw PaymentTable.Mistake(
                        message: "the amount is in \(unit.rawValue) and the price in \(currency): add --currency")
                }
                value = converted.btc.description
            } else {
                value = converted.money.description
            }
            if payment.isNegative { value = "-\(value)" }
        }
        let range = known.isCoarse ? [known.candle.low, known.candle.high].map(\.description) : ["", ""]
        var numbers = [known.price.description, value] + range
        if decimalMark == "," { numbers = numbers.map { $0.replaced(".", by: ",") } }
        return numbers.prefix(2) + [currency, known.step.rawValue] + numbers.suffix(2)
            + [known.candle.origin, text.notes(on: known.candle).joined(separator: ", ")]
    }

    // MARK: - The daemon

    /// What is known of some moments, and the currency of the prices; also why the requests of the rest have ended too early.
    private func prices(at times: [Timestamp]) throws(Complaint) -> (
        known: [Timestamp: MomentMessage], currency: String, failure: Complaint?
    ) {
        try Connecting.withDaemon(daemon, patience: fetch ? At.fetchPatience : .seconds(5)) {
            connection throws(ClientError) in
            let named = Connecting.currency(self.currency)
            var known: [Timestamp: MomentMessage] = [:]
            var currency = named ?? Currency.usd.rawValue
            for batch in Self.batches(of: times) {
                let answer = try connection.prices(at: batch, in: named)
                currency = answer.currency
                for moment in answer.known { known[moment.time] = moment }
            }
            var failure: Complaint?
            if fetch {
                // What is known already is not lost.
                do throws(ClientError) {
                    try request(times, in: currency, &known, &connection)
                } catch {
                    failure = Complaint(error)
                }
            }
            return (known, currency, failure)
        }
    }

    private static func batches(of times: [Timestamp]) -> [[Timestamp]] {
        stride(from: 0, to: times.count, by: HistoryCall.mostTimes).map {
            Array(times[$0..<min($0 + HistoryCall.mostTimes, times.count)])
        }
    }

    /// Has the daemon request the minutes of which too little is known, as fast as its limit for this user allows.
    private func request(
        _ times: [Timestamp], in currency: String, _ known: inout [Timestamp: MomentMessage],
        _ connection: inout PriceConnection
    ) throws(ClientError) {
        func isWanted(_ time: Timestamp) -> Bool {
            known[time].map { $0.known?.isCoarse ?? true && $0.notFetched == nil } ?? true
        }
        var left = times.filter(isWanted)
        let (count, isTerminal) = (left.count, isatty(STDERR_FILENO) == 1 && !Output.isQuiet)
        while !left.isEmpty {
            if isTerminal { Output.write("\r\(count - left.count) of \(count) moments requested ", to: STDERR_FILENO) }
            let batch = Array(left.prefix(HistoryCall.mostTimes))
            let answer = try connection.prices(at: batch, in: currency, fetch: true)
            for moment in answer.known { known[moment.time] = moment }
            // Without a wait, nothing of the batch is left.
            left = (answer.wait == nil ? [] : batch.filter(isWanted)) + left.dropFirst(batch.count)
            if let wait = answer.wait { Signals.wait(.milliseconds(wait), on: -1) }
        }
        if isTerminal, count > 0 { Output.write("\r\(count) of \(count) moments requested\n", to: STDERR_FILENO) }
    }
}
