import BTCPriceCore
import BTCPriceFeature

/// The unit of the amounts in a file.
struct PaymentUnit: Equatable {
    let unit: Amount.Unit
    /// How many of ``unit`` it is.
    var factor: Price = 1

    /// - Parameter name: `btc`, `sat`, `msat` (a thousandth of a satoshi), or the code of a currency.
    init?(name: String) {
        if name == "msat" || name == "msats" {
            (unit, factor) = (.sat, Price(1, scale: 3))
        } else {
            guard let known = Amount.Unit(name: name) else { return nil }
            unit = known
        }
    }
}

/// A payment that was read from a row.
struct Payment: Equatable {
    let time: Timestamp
    /// The later moment with the same time on the clock; `nil` if it is not shown twice.
    let second: Timestamp?
    /// Without its sign; `nil` without an amount.
    let amount: Amount?
    let isNegative: Bool
    /// Whether the time is only a day, and means its beginning.
    let isDay: Bool
}

/// Which columns of a table have the times and the amounts of payments, and how they are read.
struct PaymentColumns {
    typealias Mistake = PaymentTable.Mistake

    /// What the command line says of the table.
    struct Options {
        /// The name of a column, or its number from 1; `nil` to look for it.
        var time: String?
        var amount: String?
        /// The unit of amounts without one.
        var unit: PaymentUnit?
        var decimalMark: Character = "."
        /// Whether times without a zone are of UTC.
        var isUTC = false
    }

    /// The names of the columns; `nil` if the first row is a payment.
    let header: [String]?
    /// Counted from 0.
    let time: Int
    private(set) var amount: Int?
    private(set) var unit: PaymentUnit?
    let isUTC: Bool
    let decimalMark: Character

    /// Finds the columns. If it can't be told which one is meant, the command line must say it.
    init(of table: PaymentTable, _ options: Options) throws(Mistake) {
        guard let index = table.rows.firstIndex(where: { !$0.isEmpty && $0.cells != nil }),
            let first = table.rows[index].cells
        else { throw Mistake(message: "it has no rows") }
        // A row whose time can't be read is a payment, too.
        let isPayment = first.contains { Self.isTime($0) || Self.isNumeric($0) || Amount($0) != nil }
        let header = isPayment ? nil : first
        self.header = header
        decimalMark = options.decimalMark
        let columns = table.columns(after: isPayment ? 0 : index + 1)
        let names = Names(first, hasHeader: !isPayment)
        if let named = options.time {
            time = try names.column(named)
        } else if columns.isEmpty {
            time = 0
        } else {
            let found = try names.best("times", "--time-column", columns.indices) { column throws(Mistake) in
                let samples = columns[column]
                if names.says(column, Names.times) {
                    guard samples.isEmpty || samples.contains(where: Self.isTime) else {
                        throw Mistake(
                            message:
                                "the times of \(Self.name(of: column, header)) are not such as 2026-08-25T14:30:05Z")
                    }
                    return samples.isEmpty ? nil : 1
                }
                guard !samples.isEmpty, samples.count(where: Self.isTime) * 2 >= samples.count else { return nil }
                if samples[0].contains("-") { return 1 }
                return names.says(column, Names.numbers.union(Names.amounts)) || names.unit(of: column) != nil ? nil : 0
            }
            guard let found else {
                throw Mistake(message: "it has no column of times such as 2026-08-25T14:30:05Z or 1795400000")
            }
            time = found
        }
        isUTC = options.isUTC || names.says(time, ["utc", "gmt"])
        unit = options.unit
        if let named = options.amount {
            guard named != "none" else { return }
            amount = try names.column(named)
        } else {
            var money: Int?
            amount = try names.best("amounts", "--amount-column", columns.indices) { [self] column throws(Mistake) in
                let cells = columns[column]
                guard column != time, cells.contains(where: { Self.isNumeric($0) || Amount($0) != nil }),
                    !names.says(column, Names.others)
                else { return nil }
                if cells.contains(where: hasUnit) { return 1 }
                let (isNamed, isMoney) = (names.says(column, Names.amounts), names.says(column, Names.money))
                // `BTC/USD` is a price.
                if names.unit(of: column) != nil, isNamed || !isMoney { return 1 }
                if names.says(column, Names.numbers) { return nil }
                if isMoney, !names.says(column, options.unit) {
                    if isNamed, options.unit == nil { money = column }
                    return nil
                }
                return isNamed ? 1 : options.unit == nil ? nil : 0
            }
            if amount == nil, let money {
                throw Mistake(
                    message: "the amounts of \(name(of: money)) may be money: add --unit, or --amount-column none")
            }
        }
        guard let amount else {
            if options.unit != nil, !columns.isEmpty { throw Mistake(message: "it has no column of amounts") }
            return
        }
        if let given = options.unit, let said = names.unit(of: amount), said != given {
            throw Mistake(message: "the name of \(name(of: amount)) says another unit than --unit")
        }
        unit = options.unit ?? names.unit(of: amount)
        let cells = columns.indices.contains(amount) ? columns[amount] : []
        if unit == nil, !cells.isEmpty, !cells.contains(where: hasUnit) {
            throw Mistake(
                message: "the amounts of \(name(of: amount)) have no unit: add --unit btc, sat, msat or a currency")
        }
    }

    /// `column 2 (amount)`
    func name(of column: Int) -> String { Self.name(of: column, header) }

    private static func name(of column: Int, _ header: [String]?) -> String {
        let name = header.flatMap { $0.indices.contains(column) ? $0[column] : nil }
        return "column \(column + 1)" + (name.map { " (\($0))" } ?? "")
    }

    /// The names of the columns, as far as they say what is in them.
    private struct Names {
        static let times: Set<String> = ["time", "date", "datetime", "timestamp"]
        static let amounts: Set<String> = ["amount", "quantity"]
        /// What is in bitcoin or money, too, and is no amount.
        static let others: Set<String> = ["fee", "fees", "price", "rate", "cost", "costs", "balance"]
        static let numbers: Set<String> = ["id", "number", "index", "invoice", "total", "subtotal"]
        static let money: Set<String> = [
            "fiat", "usd", "eur", "gbp", "chf", "jpy", "cad", "aud", "pln", "czk", "huf", "sek", "nok", "dkk", "brl",
            "mxn", "inr", "cny",
        ]

        let first: [String]
        let hasHeader: Bool
        /// The words of each name, in small letters.
        private let words: [Set<String>]

        init(_ first: [String], hasHeader: Bool) {
            (self.first, self.hasHeader) = (first, hasHeader)
            words = first.map { hasHeader ? Set($0.lowercased().split { !$0.isLetter }.map(String.init)) : [] }
        }

        func says(_ column: Int, _ wanted: Set<String>) -> Bool {
            words.indices.contains(column) && !words[column].isDisjoint(with: wanted)
        }

        /// The unit that a name says.
        func unit(of column: Int) -> PaymentUnit? {
            let units: [(name: String, words: Set<String>)] = [
                ("msat", ["msat", "msats"]), ("sat", ["sat", "sats", "satoshi", "satoshis"]),
                ("btc", ["btc", "xbt", "bitcoin", "bitcoins"]),
            ]
            return units.first { says(column, $0.words) }.flatMap { PaymentUnit(name: $0.name) }
        }

        /// Whether a name says this unit.
        func says(_ column: Int, _ unit: PaymentUnit?) -> Bool {
            words.indices.contains(column) && unit != nil && words[column].contains { PaymentUnit(name: $0) == unit }
        }

        /// The column with this name or number.
        func column(_ named: String) throws(Mistake) -> Int {
            if hasHeader, let index = first.firstIndex(where: { trimmed($0).lowercased() == named.lowercased() }) {
                return index
            }
            if let number = Int(named), number > 0, first.indices.contains(number - 1) { return number - 1 }
            throw Mistake(
                message: "it has no column '\(named)'"
                    + (hasHeader ? ", only \(first.joined(separator: ", "))" : ": it has \(first.count) and no header"))
        }

        /// The only column with the highest rank; `nil` if none has one.
        func best(
            _ what: String, _ option: String, _ columns: Range<Int>, _ rank: (Int) throws(Mistake) -> Int?
        ) throws(Mistake) -> Int? {
            var ranked: [(column: Int, rank: Int)] = []
            for column in columns { if let rank = try rank(column) { ranked.append((column, rank)) } }
            let best = ranked.filter { $0.rank == ranked.map(\.rank).max() }
            guard best.count > 1 else { return best.first?.column }
            let choices = best.map {
                hasHeader && first.indices.contains($0.column) ? first[$0.column] : "\($0.column + 1)"
            }
            throw Mistake(
                message: "more than one column may have the \(what): say \(option) \(choices.joined(separator: " or "))"
            )
        }
    }

    private static func isTime(_ text: String) -> Bool { (try? read(time: text, isUTC: true)) != nil }

    /// Whether it is an amount with its own unit.
    private func hasUnit(_ text: String) -> Bool { (try? read(text, nil)) != nil }

    /// Whether it is a number or a date in any notation.
    private static func isNumeric(_ text: String) -> Bool {
        text.contains { ("0"..."9").contains($0) } && text.allSatisfy { "0123456789.,:/+-−' ".contains($0) }
    }

    private static func trimmed(_ text: String) -> String {
        var text = text.drop(while: \.isWhitespace)
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text)
    }

    // MARK: - Cells

    /// The payment of a row.
    func payment(_ cells: [String], now: Timestamp) throws(Mistake) -> Payment {
        guard cells.indices.contains(time), !Self.trimmed(cells[time]).isEmpty else {
            throw Mistake(message: "no time")
        }
        let read = try Self.read(time: cells[time], isUTC: isUTC)
        guard read.time <= now else { throw Mistake(message: "'\(cells[time])' is in the future") }
        var (value, isNegative): (Amount?, Bool) = (nil, false)
        if let amount, cells.indices.contains(amount), !Self.trimmed(cells[amount]).isEmpty {
            (value, isNegative) = try self.read(cells[amount], unit)
        }
        return Payment(
            time: read.time, second: read.second, amount: value, isNegative: isNegative,
            isDay: Self.trimmed(cells[time]).count == 10 && cells[time].contains("-"))
    }

    /// Reads a time as programs write them: `2026-08-25T14:30:05.123+02:00`, `2026-08-25 14:30:05 UTC`, `2026-08-25 12:30:05+00`, or Unix
    /// seconds or milliseconds.
    private static func read(time text: String, isUTC: Bool) throws(Mistake) -> ReaderTime.Reading {
        var text = trimmed(text)
        let digits = text.prefix { ("0"..."9").contains($0) }
        let fraction = text[digits.endIndex...]
        if fraction.isEmpty || fraction.first == "." && fraction.dropFirst().allSatisfy({ ("0"..."9").contains($0) }),
            let number = Int64(digits)
        {
            switch digits.count {
            case 9...10: return .init(time: Timestamp(milliseconds: number * 1000))
            case 12...13: return .init(time: Timestamp(milliseconds: number))
            default: throw Mistake(message: "'\(text)' is neither Unix seconds nor milliseconds")
            }
        }
        for name in ["UTC", "GMT"] where text.hasSuffix(name) { text = trimmed(String(text.dropLast(3))) + "Z" }
        // `2026-08-25 14:30:05 +0200`
        if let space = text.lastIndex(of: " "), text[..<space].count > 12 { text.remove(at: space) }
        do throws(ReaderTime.Mistake) {
            return try ReaderTime.date(text, isUTC: isUTC)
        } catch {
            throw Mistake(message: error.message)
        }
    }

    /// Reads an amount, which may have a sign, an exponent, and its own unit.
    /// - Parameter unit: The unit of an amount without one; `nil` if it must have its own.
    private func read(_ text: String, _ unit: PaymentUnit?) throws(Mistake) -> (Amount, isNegative: Bool) {
        var number = Self.trimmed(text)
        let isNegative = ["-", "−"].contains(number.first)
        if isNegative || number.first == "+" { number.removeFirst() }
        if decimalMark == "," { number = String(number.map { $0 == "," ? "." : $0 == "." ? "," : $0 }) }
        var unit = unit
        for name in ["msats", "msat"] where number.lowercased().hasSuffix(name) {
            (number, unit) = (Self.trimmed(String(number.dropLast(name.count))), PaymentUnit(name: "msat"))
        }
        if let own = Amount(number) { return (own, isNegative) }
        // As other programs write small numbers: `5e-05`.
        let plain = number.contains(where: { "eE".contains($0) }) ? Price(number)?.description : number
        guard let plain, let amount = Amount(plain, unit: unit?.unit) else {
            let reason = Amount.mistake(in: number)
            throw Mistake(
                message: "'\(text)' is not an amount"
                    + (decimalMark == "," ? " with a decimal comma" : reason.isEmpty ? "" : ": \(reason)"))
        }
        return (Amount(amount.value * (unit?.factor ?? 1), amount.unit), isNegative)
    }
}
