import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine

/// `btcctl check`: a check for Nagios, Icinga, monit and others, by the Monitoring Plugins Development Guidelines: one line on standard
/// output, performance data after a `|`, and an exit status from 0 to 3.
struct Check {
    static let verb = Verb(
        command: Command(
            "check", "Check the price for a monitor such as Icinga.",
            details: """
                Examples:
                  btcctl check                  BTC OK: $68,901.23, 1 s old, … | price=…
                  btcctl check --warning 1m --critical 5m --confirmed
                  btcctl check --critical-price 50000:90000 --warning-sources 2

                The performance data has no units: price, age in seconds, plusMinus and sources, which counts those that agree.

                Exit status: 0 if all is well, 1 for a warning, 2 if it is critical (also without a price, and if the daemon can't \
                be reached), 3 if that can't be found out, and for a wrong command line.
                """,
            options: Option.daemon + [.currency, warningAge, criticalAge, warningPrice, criticalPrice, warningSources]
                + [criticalSources] + Option.requirements)
    ) { line throws(UsageError) in
        try Check(line).run()
    }

    private static let warningAge = Option(
        "--warning", value: "age", "Warn if the price is older. Default: 1m, or --critical if that is shorter.")
    private static let criticalAge = Option(
        "--critical", value: "age", "It is critical if the price is older. Default: 5m, or --warning if that is longer."
    )
    private static let warningPrice = Option(
        "--warning-price", value: "range", "Warn if the price is not in this range: 50000:90000, 50000: or :90000.")
    private static let criticalPrice = Option(
        "--critical-price", value: "range", "It is critical if the price is not in this range.")
    private static let warningSources = Option(
        "--warning-sources", value: "number", "Warn if fewer sources agree on the price.")
    private static let criticalSources = Option(
        "--critical-sources", value: "number", "It is critical if fewer sources agree on the price.")

    enum Level: Int32, Comparable {
        case ok
        case warning
        case critical
        case unknown

        static func < (lhs: Level, rhs: Level) -> Bool { lhs.rawValue < rhs.rawValue }
    }

    /// What is warned of, and what is critical.
    private struct Limits<Value> {
        var warning: Value?
        var critical: Value?

        /// The level of a value, by whether a limit accepts it.
        func level(_ accepts: (Value) -> Bool) -> Level {
            if let critical, !accepts(critical) { return .critical }
            if let warning, !accepts(warning) { return .warning }
            return .ok
        }
    }

    private struct PriceRange {
        var low: Price?
        var high: Price?

        func contains(_ price: Price) -> Bool { low.map { $0 <= price } ?? true && high.map { price <= $0 } ?? true }
    }

    private let daemon: DaemonAddress
    private let currency: String?
    private let requirements: PriceRequirements
    private var ages: Limits<Duration>
    private let prices: Limits<PriceRange>
    private let sources: Limits<Int>

    private init(_ line: ParsedLine) throws(UsageError) {
        daemon = try line.daemon()
        currency = try line.currency()
        requirements = try line.requirements(.all)
        ages = Limits(
            warning: try line.value(Self.warningAge, duration), critical: try line.value(Self.criticalAge, duration))
        ages.critical = ages.critical ?? max(.seconds(300), ages.warning ?? .zero)
        ages.warning = ages.warning ?? min(.seconds(60), ages.critical ?? .zero)
        prices = Limits(
            warning: try line.value(Self.warningPrice, Self.range),
            critical: try line.value(Self.criticalPrice, Self.range))
        sources = Limits(
            warning: try line.number(Self.warningSources, in: 0...1000),
            critical: try line.number(Self.criticalSources, in: 0...1000))
    }

    private static func range(_ text: String) throws(UsageError) -> PriceRange {
        let ends = text.split(separator: ":", omittingEmptySubsequences: false)
        let (low, high) = (ends.first.map(String.init) ?? "", ends.last.map(String.init) ?? "")
        let range = PriceRange(low: Price(low), high: Price(high))
        guard ends.count == 2, low.isEmpty || low == "~" || range.low != nil, high.isEmpty || range.high != nil,
            range.low.map({ low in range.high.map { low <= $0 } ?? true }) ?? true
        else { throw UsageError("it is a range such as 50000:90000, 50000: or :90000") }
        return range
    }

    /// The line and the exit status of a command that could not be run.
    static func end(_ level: Level, _ text: String, _ data: [String] = []) -> Int32 {
        let word = ["OK", "WARNING", "CRITICAL", "UNKNOWN"][Int(level.rawValue)]
        // What follows a bar is performance data.
        let line = "BTC \(word): \(String(text.map { $0 == "|" ? "/" : $0 }))"
        Output.line(data.isEmpty ? line : "\(line) | \(data.joined(separator: " "))")
        return level.rawValue
    }

    private func run() -> Int32 {
        do throws(Complaint) {
            let (message, reports) = try Connecting.withDaemon(daemon) { connection throws(ClientError) in
                let named = Connecting.currency(currency)
                let message = try connection.getPrice(in: named)
                return (message, try connection.listSources(message.state.currency))
            }
            // Names that nobody else confirms are one exchange, as a peer that has it from there.
            let agreeing = reports.count { $0.claim?.isMember == true }
            let isConfirmed = message.state.confirmation == .confirmed
            return judge(message.state, agreeing: isConfirmed ? agreeing : min(agreeing, 1), at: .now())
        } catch {
            // A price that nobody keeps, or a daemon that is busy: the check itself is at fault.
            let isAnswer = [ExitStatus.unreachable, ExitStatus.noPrice].contains(error.status)
            return Self.end(isAnswer ? .critical : .unknown, error.message)
        }
    }

    /// - Parameter agreeing: The number of sources that agree on the price.
    private func judge(_ state: PriceState, agreeing: Int, at now: ObservationTime) -> Int32 {
        guard let quote = state.quote else {
            return Self.end(.critical, "no price: \(state.failure ?? "no tick has finished yet")")
        }
        var (level, reasons) = (Level.ok, [String]())
        func raise(_ to: Level, _ reason: String) {
            if to > .ok { reasons.append(reason) }
            level = max(level, to)
        }
        let age = state.age(at: now)
        var said: [String?] = [
            "of unknown age", quote.sourceText, state.derivation == nil ? state.confirmation?.rawValue : "derived",
            state.freshness == .fresh ? nil : "not current",
        ]
        var data = ["price=\(quote.value)"]
        if let age {
            let seconds = Price(age.age.wholeMilliseconds, scale: 3)
            said[0] = "\(age.isEstimate ? "about " : "")\(age.age.components.seconds) s old"
            let limits = [ages.warning, ages.critical].map {
                Price(($0 ?? .zero).wholeMilliseconds, scale: 3).description
            }
            data.append("age=\(seconds);\(limits.joined(separator: ";"));0")
            raise(ages.level { age.age <= $0 }, "the price is too old" + (state.failure.map { ": \($0)" } ?? ""))
        } else {
            raise(.critical, "its age is not known")
        }
        raise(prices.level { $0.contains(quote.value) }, "the price is out of its range")
        raise(
            sources.level { agreeing >= $0 },
            "\(agreeing) source\(agreeing == 1 ? "" : "s") agree\(agreeing == 1 ? "s" : "")")
        if let refusal = requirements.refusal(of: state, at: now) {
            raise(.warning, "the price \(refusal.predicate)" + (state.standing.warning.map { ": \($0)" } ?? ""))
        }
        if let plusMinus = state.standing.uncertainty?.plusMinus { data.append("plusMinus=\(plusMinus)") }
        data.append("sources=\(agreeing)")
        let price = MoneyFormatter().string(from: quote.value, currency: quote.currency)
        return Self.end(level, (reasons + [price] + said.compactMap(\.self)).joined(separator: ", "), data)
    }
}
