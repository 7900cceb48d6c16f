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
        guard let place = table.rows.firstIndex(where: { !$0.isEmpty && $0.cells != nil }),
            let first = table.rows[place].cells
        else { throw Mistake(message: "it has no rows") }
        // A row whose time can't be read is a payment, too.
        let isPayment = first.contains { Self.isTime($0) || Self.isNumeric($0) }
        header = isPayment ? nil : first
        decimalMark = options.decimalMark
        let columns = table.columns(after: isPayment ? 0 : place + 1)
        let names = Names(first, hasHeader: !isPayment)
        if let named = options.time {
            time = try names.column(named)
        } else if columns.isEmpty, !isPayment {
            time = 0
        } else {
            let found = try names.best("times", "--time-column", columns.indices) { column in
                guard let sample = columns[column].first(where: Self.isTime) else { return nil }
                return sample.contains("-") || names.says(column, ["time", "date", "datetime", "timestamp"]) ? 1 : 0
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
            amount = try names.best("amounts", "--amount-column", columns.indices) { [self] column in
                guard column != time, columns[column].contains(where: Self.isNumeric),
                    !names.saysOther(column, options.unit)
                else { return nil }
                let hasUnit = columns[column].contains { (try? read($0, nil)) != nil } || names.unit(of: column) != nil
                if hasUnit || names.says(column, ["amount", "quantity"]) { return 1 }
                return options.unit == nil ? nil : 0
            }
        }
        guard let amount else {
            if options.unit != nil { throw Mistake(message: "it has no column of amounts") }
            return
        }
        if let given = options.unit, let said = names.unit(of: amount), said != given {
            throw Mistake(message: "the name of \(name(of: amount)) says another unit than --unit")
        }
        unit = options.unit ?? names.unit(of: amount)
        let cells = columns.indices.contains(amount) ? columns[amount] : []
        if unit == nil, !cells.isEmpty, !cells.contains(where: { (try? read($0, nil)) != nil }) {
            throw Mistake(message: "the amounts of \(name(of: amount)) have no unit: add --unit btc, sat or msat")
        }
    }

    /// `column 2 (amount)`
    func name(of column: Int) -> String {
        let name = header.flatMap { $0.indices.contains(column) ? $0[column] : nil }
        return "column \(column + 1)" + (name.map { " (\($0))" } ?? "")
    }

    /// The names of the columns, as far as they say what is in them.
    private struct Names {
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

        /// Whether a name says that the numbers are no amounts of this unit: fees, prices, or money.
        func saysOther(_ column: Int, _ wanted: PaymentUnit?) -> Bool {
            guard words.indices.contains(column) else { return false }
            let others: Set<String> = [
                "fee", "fees", "price", "rate", "cost", "costs", "balance", "total", "subtotal", "id", "number",
                "index",
            ]
            return words[column].contains { word in
                if others.contains(word) { return true }
                guard case .money? = Amount.Unit(name: word) else { return false }
                return PaymentUnit(name: word) != wanted
            }
        }

        /// The column with this name or number.
        func column(_ named: String) throws(Mistake) -> Int {
            if hasHeader, let index = first.firstIndex(where: { trimmed($0).lowercased() == named.lowercased() }) {
                return index
            }
            if let number = Int(named), first.indices.contains(number - 1) { return number - 1 }
            throw Mistake(
                message: "it has no column '\(named)'"
                    + (hasHeader ? ", only \(first.joined(separator: ", "))" : ": it has \(first.count) and no header"))
        }

        /// The only column with the highest rank; `nil` if none has one.
        func best(
            _ what: String, _ option: String, _ columns: Range<Int>, _ rank: (Int) -> Int?
        ) throws(Mistake) -> Int? {
            let ranked = columns.compactMap { column in rank(column).map { (column: column, rank: $0) } }
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

    /// Whether it begins as a number does.
    private static func isNumeric(_ text: String) -> Bool {
        trimmed(text).drop { "+-−.".contains($0) }.first.map { ("0"..."9").contains($0) } ?? false
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
