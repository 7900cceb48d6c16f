import BTCPriceCore
import BTCPriceFeature

/// `btcctl sources` as text: a table with one letter a source, as `chronyc sources` has it.
struct SourcesText {
    let timestamps: ReaderTimestampFormatter

    /// What the letters and columns mean, for `-v`.
    static let explanation = [
        "The letter, why a source is used or not:",
        "  *  the price that is shown is its",
        "  +  well, and asked if those before it give nothing",
        "  ~  well, but can't be asked at every tick within its limits: after those that can",
        "  =  asked as often as its limits allow, for the moment",
        "     not asked since the start",
        "  !  gave nothing the last time, and is asked again",
        "  z  rests, since it failed too often",
        "  ?  its rest is over, and the next question decides",
        "  L  told us that it is asked too often, and rests until it may be asked",
        "  R  refuses us (key, region, protocol), and is asked again only rarely",
        "  K  needs a key that was not given, and is never asked",
        "  U  quotes in USDT, which is off its peg: passed over until that is over",
        "Last price: how long ago. Half, 99 %: within what time so many of its last answers came.",
        "Asked: the requests in the last period of the limit it is closest to, and in all since the start.",
        "",
    ]

    func lines(_ reports: [SourceReport], isVerbose: Bool, at now: ObservationTime) -> [String] {
        let head = ["", "Source", "Market", "Last price", "Half", "99 %", "Asked", "In all", "Why"]
        return (isVerbose ? Self.explanation : []) + Table.lines([head] + reports.map { row($0, at: now) })
    }

    private func row(_ report: SourceReport, at now: ObservationTime) -> [String] {
        [
            String(report.use.letter), report.name, report.market,
            report.lastSuccess.map { "\(age($0, now)) ago" } ?? "never",
            report.latency.map { "\($0.p50) ms" } ?? PriceTexts.placeholder,
            report.latency.map { "\($0.p99) ms" } ?? PriceTexts.placeholder,
            asked(report.limits), "\(report.requests)", reason(report, at: now),
        ]
    }

    /// The limit that is used up the most.
    private func asked(_ limits: [SourceReport.Limit]) -> String {
        let share = { (limit: SourceReport.Limit) in Double(limit.made) / Double(max(1, limit.requests)) }
        guard let closest = limits.max(by: { share($0) < share($1) }) else { return PriceTexts.placeholder }
        return "\(closest.made) of \(closest.requests) in \(Table.text(.milliseconds(closest.period)))"
    }

    private func reason(_ report: SourceReport, at now: ObservationTime) -> String {
        switch report.use {
        case .current, .ready, .untried: return ""
        case .slow: return "asked behind the others: its limit is below a request a tick"
        case .full: return "asked as often as its limits allow"
        case .offPeg: return "passed over while USDT is off its peg"
        case .noKey: return "needs a key: the credential \(report.name)-api-key"
        case .failing, .probing, .resting, .limited, .refused: break
        }
        let reason = report.lastFailure.map { "\($0.reason), \(age($0.at, now)) ago" } ?? "from before the start"
        guard let until = report.restsUntil else { return reason }
        return "rests until \(timestamps.string(from: until)): \(reason)"
    }

    private func age(_ time: Timestamp, _ now: ObservationTime) -> String {
        Table.text(.seconds(max(0, now.wall.milliseconds - time.milliseconds) / 1000))
    }
}
