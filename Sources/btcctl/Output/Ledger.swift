import BTCPriceCore
import BTCPriceFeature
import CommandLine

/// A form of price lines for plain text accounting.
///
/// The rules are from experiments with hledger 1.25 and 1.32.3, ledger 3.3.0 and 3.3.2, beancount 3.2.3: hledger takes the last line of a
/// day, whatever its time; ledger compares local times and takes a day without one for its midnight; beancount has one price a day. A
/// point is taken for a thousands mark by a journal of other customs, unless the file says what it is.
struct Ledger: Equatable {
    enum Tool: String, CaseIterable {
        /// hledger, and ledger, which reads the same.
        case hledger
        case beancount
    }

    let tool: Tool
    /// What the journal calls the currency; `nil` for its code.
    var commodity: String?
    /// Whether the price is that of a satoshi.
    var isOfSatoshis = false

    static let option = Option(
        "--ledger", value: "tool", "Print prices for a journal: hledger (ledger reads the same) or beancount.",
        completion: .words(Tool.allCases.map(\.rawValue)))
    static let commodityOption = Option(
        "--commodity", value: "name", "With --ledger: what the journal calls the currency, such as '$'.")
    static let satoshisOption = Option("--sats", "With --ledger: the price of a satoshi.")

    /// The options of a command line; `nil` without ``option``.
    init?(_ line: ParsedLine) throws(UsageError) {
        guard let tool = try line.choice(Self.option, among: Tool.allCases) else {
            if let needless = [Self.commodityOption, Self.satoshisOption].first(where: line.has) {
                throw UsageError("\(needless.name) needs \(Self.option.name)")
            }
            return nil
        }
        self.tool = tool
        commodity = try line.value(Self.commodityOption) { text throws(UsageError) in
            guard Self.isCommodity(text, of: tool) else {
                throw UsageError(
                    tool == .beancount
                        ? "it has capital letters and digits, a letter first, as in USD"
                        : "it is a symbol or letters without digits and blanks, as in $ or USD")
            }
            return text
        }
        isOfSatoshis = line.has(Self.satoshisOption)
    }

    private static func isCommodity(_ text: String, of tool: Tool) -> Bool {
        switch tool {
        case .hledger:
            // Other names need quotation marks.
            !text.isEmpty && text.printable == text
                && !text.contains { $0.isWhitespace || $0.isNumber || ".,;:?!-+*/^&|=<>[](){}@\"'~#%\\".contains($0) }
        case .beancount:
            text.first.map { ("A"..."Z").contains($0) } == true
                && text.allSatisfy { ("A"..."Z").contains($0) || ("0"..."9").contains($0) }
        }
    }

    /// The lines before the first price.
    func header(_ currency: String, _ length: CandleLength) -> String {
        let what = "; btc-priced: BTC in \(currency), last price of each \(length.rawValue), local time"
        return tool == .hledger ? "\(what)\ndecimal-mark ." : what
    }

    /// The line of a price.
    /// - Parameters:
    ///   - time: The last second that it is of, so that a report up to the next day has it.
    ///   - notes: What is to be known of it.
    func line(_ close: Price, at time: Timestamp, _ currency: String, _ notes: [String]) -> String {
        let places = (Currency(rawValue: currency)?.places ?? 2) + (isOfSatoshis ? 8 : 0)
        let price = isOfSatoshis ? close.divided(by: Amount.satoshis, places: places) : close
        // Always the same number of digits: ledger takes three after a point for thousands where a point means that.
        let number = String(price.grouped(places: places).filter { $0 != "," })
        let text = TimestampFormatter(isISO: true).string(from: time)
        let (day, clock) = (text.prefix(10), text.dropFirst(11).prefix(8))
        let unit = commodity ?? currency
        // A symbol is written before the number.
        let amount =
            tool == .hledger && !unit.allSatisfy(\.isLetter) ? "\(unit)\(number)" : "\(number) \(unit)"
        let comment = notes.isEmpty ? "" : "  ; \(notes.joined(separator: ", "))"
        return switch tool {
        case .hledger: "P \(day) \(clock) \(isOfSatoshis ? "sat" : "BTC") \(amount)\(comment)"
        case .beancount: "\(day) price \(isOfSatoshis ? "SAT" : "BTC") \(amount)\(comment)"
        }
    }
}
