import BTCPriceCore
import BTCPriceFeature

/// `btcctl sources` as text: a table with one letter per source, like `chronyc sources`.
struct SourcesText {
    let timestamps: TimestampFormatter

    /// The explanation of the letters and columns, for `-v`.
    static let explanation = [
        "The letter, why a source is used or not:",
        "  *  the price that is shown is from this source",
        "  +  healthy, and requested if the sources before it give no price",
        "  ~  healthy, but its limits don't allow a request per tick: tried after the others",
        "  =  at its request limit for the moment",
        "     no price since the start",
        "  !  its last request gave no usable price; it is requested again",
        "  z  in a cooldown, since it failed too often",
        "  ?  its cooldown is over; the next request decides",
        "  L  in a cooldown that the exchange demands: a limit or a ban",
        "  R  refuses requests (key, region, protocol); requested again only rarely",
        "  K  needs a key that is not set; never requested",
        "  -  switched off with 'btcctl source'; not requested",
        "Way: how the price arrives: poll, in the response to a request; stream; peer, from another daemon.",
        "Price, Age: of its last price. p50, p99: the time within which 50 % and 99 % of the responses arrived.",
        "Size: of the last response, which markets that share a request have in common.",
        "Limit: how much of its tightest request limit is used.",
        "Bid, ask and spread: of the last response, in the currency of the market, if it has them.",
        "In the vote: the source supports the price that is shown. The interval is where the price of bitcoin is, if "
            + "this source is right.",
        "",
    ]

    /// The table, with the reason below its source, and if `isVerbose` the intervals of the vote.
    /// - Parameter width: The maximum number of columns.
    func lines(_ reports: [SourceReport], isVerbose: Bool, at now: ObservationTime, width: Int = 80) -> [String] {
        let head = ["", "Source", "Market", "Price", "Way", "Age", "p50", "p99", "Size", "Limit"]
        let rows = Table.lines([head] + reports.map { row($0, at: now) })
        var lines = isVerbose ? Self.explanation.flatMap { explained($0, width) } : []
        lines +=
            reports.isEmpty
            ? Table.wrapped("", "No source is known: the price may be derived from another currency's.", width: width)
            : [rows[0]]
        for (report, row) in zip(reports, rows.dropFirst()) {
            lines.append(row)
            let notes = [
                reason(report, at: now), isVerbose ? quotes(report) : "", vote(report, isVerbose: isVerbose),
                elsewhere(report), clock(report),
            ]
            for note in notes where !note.isEmpty {
                lines += Table.wrapped("    ", note, width: width)
            }
        }
        return lines
    }

    /// The sources that are banned, in a cooldown, failing or contradicted, with the reasons; `nil` if there are none.
    func troubles(_ reports: [SourceReport], at now: ObservationTime) -> String? {
        let troubles = reports.compactMap { report -> String? in
            let reason =
                switch report.use {
                case .failing, .probing, .resting, .limited, .refused: reason(report, at: now)
                case .current, .ready, .slow, .full, .untried, .noKey, .offPeg: vote(report, isVerbose: false)
                }
            return reason.isEmpty ? nil : "\(report.name): \(reason)"
        }
        return troubles.isEmpty ? nil : troubles.joined(separator: "; ")
    }

    /// Why a source is used or not, in words.
    func words(_ report: SourceReport, at now: ObservationTime) -> String {
        let notes = [reason(report, at: now), vote(report, isVerbose: false), clock(report)].filter { !$0.isEmpty }
        if !notes.isEmpty { return notes.joined(separator: "; ") }
        return switch report.use {
        case .current: "shown"
        case .untried: "no price since the start"
        default: report.claim?.isMember == true ? "agrees" : "in reserve"
        }
    }

    private func clock(_ report: SourceReport) -> String {
        report.clockDifference.map {
            "its time is \(Table.text(.milliseconds($0.magnitude))) \($0 > 0 ? "ahead of" : "behind") this machine's clock"
        } ?? ""
    }

    /// A line of the explanation. The text of a letter begins in the sixth column.
    private func explained(_ line: String, _ width: Int) -> [String] {
        let head = line.prefix(line.hasPrefix("  ") ? 5 : 0)
        return Table.wrapped(String(head), String(line.dropFirst(head.count)), width: width)
    }

    private func row(_ report: SourceReport, at now: ObservationTime) -> [String] {
        [
            String(report.letter), report.name, report.market,
            report.lastPrice.map { MoneyFormatter().number($0, currency: Self.currency(report)) }
                ?? PriceTexts.placeholder,
            report.way?.rawValue ?? PriceTexts.placeholder,
            report.lastSuccess.map { age($0, now) } ?? "never",
            report.latency.map { "\($0.p50) ms" } ?? PriceTexts.placeholder,
            report.latency.map { "\($0.p99) ms" } ?? PriceTexts.placeholder,
            report.bodyBytes.map(size) ?? PriceTexts.placeholder,
            used(report.limits),
        ]
    }

    /// The currency of a source's prices. For BTC/USDT, it is the dollar.
    static func currency(_ report: SourceReport) -> String {
        Market(report.name, report.market).currency?.rawValue ?? ""
    }

    /// The bid, the ask and the spread.
    private func quotes(_ report: SourceReport) -> String {
        guard let bid = report.bid, let ask = report.ask else { return "" }
        return "bid \(bid.grouped()), ask \(ask.grouped()), spread \((ask - bid).grouped())"
    }

    /// Who contradicts the source, and if `isVerbose` the interval of its claim.
    private func vote(_ report: SourceReport, isVerbose: Bool) -> String {
        guard let claim = report.claim else { return "" }
        let ends = [claim.low, claim.high].map { MoneyFormatter().number($0, currency: Self.currency(report)) }
        let interval = isVerbose ? "\(claim.isMember ? "" : "not ")in the vote: \(ends[0]) to \(ends[1])" : nil
        let others = claim.contradictedBy.listed
        return [interval, others.isEmpty ? nil : "contradicted by \(others)"].compactMap(\.self).joined(separator: "; ")
    }

    /// A note if the address is not the exchange's own.
    private func elsewhere(_ report: SourceReport) -> String {
        report.isElsewhere ? "at \(report.address), not the exchange's own address" : ""
    }

    /// `870 B`, `1.5 KiB`
    private func size(_ bytes: Int64) -> String {
        guard bytes >= 1024 else { return "\(bytes) B" }
        let tenths = min(bytes, 1 << 40) * 10 / 1024
        return "\(tenths / 10).\(tenths % 10) KiB"
    }

    /// The used share of the limit that is used most.
    private func used(_ limits: [SourceReport.Limit]) -> String {
        let shares = limits.map { Double($0.made) / Double(max(1, $0.requests)) }
        return shares.max().map { "\(Int(min(max($0 * 100, 0), 1e6).rounded())) %" } ?? PriceTexts.placeholder
    }

    private func reason(_ report: SourceReport, at now: ObservationTime) -> String {
        if report.isOff { return "switched off: 'btcctl source \(report.name) on' switches it on" }
        switch report.use {
        case .current, .untried: return ""
        case .ready:
            // Then ``vote(_:isVerbose:)`` says more.
            if report.claim?.contradictedBy.isEmpty == false { return "" }
            return switch report.verdict {
            case .outlier: "not counted: too far from the median"
            case .disagrees: "too far from the price that is shown"
            case .unchanged: "not counted: its price has not changed for long"
            default: ""
            }
        case .slow: return "requested after the others: its limit is less than one request per tick"
        case .full: return "requested as often as its limits allow"
        case .offPeg: return "skipped while USDT is off its peg"
        case .noKey: return "needs a key: the credential \(report.name)-api-key"
        case .failing, .probing, .resting, .limited, .refused: break
        }
        let reason = report.lastFailure.map { "\($0.reason), \(age($0.at, now)) ago" } ?? "from before the start"
        guard let until = report.cooldownUntil else { return reason }
        let left = (until.milliseconds - now.wall.milliseconds + 999) / 1000
        let end = left < 120 ? "for \(max(0, left)) s" : "until \(timestamps.string(from: until))"
        return "cooldown \(end): \(reason)"
    }

    func age(_ time: Timestamp, _ now: ObservationTime) -> String {
        Table.text(.seconds(max(0, now.wall.milliseconds - time.milliseconds) / 1000))
    }
}
