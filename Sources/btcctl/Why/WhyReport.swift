import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket

/// What is wrong with a daemon's price, the cause that explains the most first, or that nothing is. A pure value.
struct WhyReport {
    enum State: String {
        case well
        /// There is a current price, and something is wrong.
        case degraded
        /// There is none.
        case noPrice
        /// No daemon responds.
        case noDaemon

        var exitStatus: Int32 {
            switch self {
            case .well: ExitStatus.success
            case .degraded: ExitStatus.degraded
            case .noPrice: ExitStatus.noPrice
            case .noDaemon: ExitStatus.unreachable
            }
        }
    }

    /// One thing that was looked at.
    typealias Line = DiagnosisMessage.Check

    private static let mostLines = 10
    /// A restart is reported until the daemon has run for this time, milliseconds.
    private static let young: Int64 = 600_000
    /// A failure that is older has its age, milliseconds: that of a source that is requested every second is not.
    private static let recent: Int64 = 5_000

    private(set) var state = State.noDaemon
    /// With what explains the most.
    private(set) var verdict = ""
    /// That, which is the text of the first line; `nil` if nothing is wrong.
    private(set) var cause: String?
    /// At most ten; what is wrong comes first, the worst at the top.
    private(set) var lines: [Line] = []

    private let timestamps: TimestampFormatter
    private let now: ObservationTime

    init(_ findings: Findings, timestamps: TimestampFormatter = TimestampFormatter(), at now: ObservationTime) {
        (self.timestamps, self.now) = (timestamps, now)
        switch findings.daemon {
        case .success(let answers): judge(answers, findings)
        case .failure(let complaint): judge(complaint, findings)
        }
        let wrong = lines.filter { !$0.isGood }
        if state == .well, !wrong.isEmpty { state = .degraded }
        lines = Array((wrong + lines.filter(\.isGood)).prefix(Self.mostLines))
        cause = wrong.first?.text
        verdict =
            switch state {
            case .well: "All is well."
            case .degraded: "There is a current price, but: \(cause ?? "")"
            case .noPrice: "There is no current price: \(cause ?? "the next tick may bring one.")"
            case .noDaemon: "No daemon responds: \(cause ?? "")"
            }
    }

    private mutating func add(_ subject: String, _ text: String, advice: String? = nil) {
        lines.append(Line(subject, isGood: advice == nil, text.printable, advice: advice?.printable))
    }

    // MARK: - No daemon

    private mutating func judge(_ complaint: Complaint, _ findings: Findings) {
        let advice = complaint.advice.isEmpty ? "'\(Self.journal(findings.unit))' may say more." : complaint.advice
        // A daemon that refuses this user explains itself. One that is silent may be down, while systemd listens for it.
        let isDown = complaint.reach == .absent || complaint.reach == .silent && findings.unit?.isDown == true
        if !isDown { add("daemon", complaint.problem, advice: advice) }
        addProgram(findings) { $0.subject == "configuration" }
        if let unit = findings.unit { add(unit, findings.journal) }
        if isDown { add("daemon", complaint.problem, advice: advice) }
        addProgram(findings) { $0.subject != "configuration" && $0.subject != "limits" }
        addProgramFailure(findings)
    }

    /// The command that prints the journal of a unit; `nil` for the system's.
    private static func journal(_ unit: Findings.Unit?) -> String {
        (["journalctl"] + (unit?.manager ?? []) + ["-u", Product.name]).joined(separator: " ")
    }

    private mutating func add(_ unit: Findings.Unit, _ journal: String?) {
        let (name, manager) = (Findings.Unit.name, unit.isUsers ? "--user " : "")
        switch unit.load {
        case "loaded": break
        case "not-found", "unknown": return add("unit", "\(name) is not installed.")
        case "masked":
            return add(
                "unit", "\(name) is masked: it can't be started.",
                advice: "'systemctl \(manager)unmask \(Product.name)' permits that.")
        default:
            return add(
                "unit", "\(name) can't be loaded: \(unit.load).",
                advice: "'systemctl \(manager)status \(Product.name)' says why.")
        }
        let log = "'\(Self.journal(unit))' says why."
        let times = unit.restarts == 1 ? "once" : "\(unit.restarts) times"
        let restarts = unit.restarts > 0 ? "; systemd has restarted it \(times)" : ""
        switch unit.state {
        case "active", "reloading": add("unit", "\(name) is active\(restarts).")
        case "failed":
            let result = unit.properties["Result"] ?? "unknown"
            let status = unit.properties["ExecMainStatus"].map { ", exit status \($0)" } ?? ""
            add("unit", "\(name) has failed (\(result)\(status))\(restarts).", advice: log)
        case "activating": add("unit", "\(name) is starting, or waits to be restarted\(restarts).", advice: log)
        default:
            add(
                "unit", "\(name) is \(unit.state).",
                advice: "'systemctl \(manager)start \(Product.name)' starts it.")
        }
        if unit.state != "active", let journal { add("journal", "Its last warning: \(journal)") }
    }

    /// What the daemon's program has found.
    private mutating func addProgram(_ findings: Findings, where isWanted: (Line) -> Bool = { _ in true }) {
        if case .success(let message) = findings.program { lines += message.checks.filter(isWanted) }
    }

    private mutating func addProgramFailure(_ findings: Findings) {
        if case .failure(let failure) = findings.program { add("program", failure.reason) }
    }

    // MARK: - A daemon

    private mutating func judge(_ answers: Findings.Answers, _ findings: Findings) {
        let (status, price) = (answers.status, answers.status.price.state)
        state = price.quote != nil && price.freshness == .fresh ? .well : .noPrice
        let groups = troubles(answers.sources)
        let exchanges = answers.sources.filter { !$0.isOff && $0.use != .noKey }
        // What concerns most sources explains the rest.
        let least = state == .well ? (exchanges.count + 1) / 2 : 0
        if price.failure == PriceState.pausedFailure {
            let advice =
                switch status.ticking {
                case .paused: "'btcctl resume' resumes them."
                case .idle: "'btcctl current' starts them."
                case .running: "They go on when the machine wakes up."
                }
            add("updates", "The updates are paused\(StatusText.cause(of: status.ticking)).", advice: advice)
        }
        let clock = StatusText.difference(status.clock).map { "This machine's clock is \($0)." }
        let isClockBlamed = groups.contains { $0.kind == .cause(.clock) }
        if let clock, isClockBlamed { addClock(clock) }
        for group in groups where group.isGeneral(least) { add(group, of: exchanges.count) }
        let off = answers.sources.filter(\.isOff).map(\.name)
        let isAllOff = exchanges.isEmpty && !off.isEmpty
        if isAllOff { add(off: off) }
        // 'btcctl retry' does not end a cooldown that an exchange has asked for.
        let mayRetry = !isAllOff && !groups.contains { $0.kind == .limited && $0.names.count == exchanges.count }
        add(price, mayRetry: mayRetry)
        if let clock, !isClockBlamed { addClock(clock) }
        addProgram(findings) { $0.subject == "disk" }
        addStore(status.store)
        for group in groups where !group.isGeneral(least) { add(group, of: exchanges.count) }
        if let note = StatusText.elsewhere(status.elsewhere) { add("sources", note) }
        if groups.isEmpty, !exchanges.isEmpty {
            let of = answers.currencies.count > 1 ? " for \(price.currency)" : ""
            add(
                "sources", "\(exchanges.count) exchange\(exchanges.count == 1 ? "" : "s")\(of), and none is in trouble."
            )
        }
        for currency in answers.currencies.dropFirst() {
            let state = currency.price.state
            if state.freshness == .fresh {
                // What a derived price is made of has a line of its own.
                let model = PriceViewModel(timestampFormatter: timestamps)
                model.show(state, at: now)
                guard state.derivation == nil, let doubt = model.doubt else { continue }
                add(
                    "currency", "\(currency.currency): \(model.price). \(doubt)",
                    advice: "Don't rely on it: 'btcctl sources -v -c \(currency.currency)' shows who says what.")
                continue
            }
            let failure = state.failure
            if failure == PriceState.pausedFailure { continue }
            add(
                "currency", "\(currency.currency): \(failure ?? "no tick has finished yet")",
                advice: currency.sources.isEmpty
                    ? "It is made of another currency's price and a reference rate: see the journal, and 'btcctl status'."
                    : "'btcctl sources -c \(currency.currency)' shows its sources.")
        }
        if let refusal = status.reloads?.failure {
            add("reload", "The last reload was refused: \(refusal)", advice: "Correct that, then reload again.")
        }
        // A running daemon has its own limits and judges the clock, as its status shows.
        addProgram(findings) { !["disk", "limits", "clock"].contains($0.subject) }
        addProgramFailure(findings)
        if !isAllOff, !status.sourcesOff.isEmpty { add(off: status.sourcesOff) }
        if let unit = findings.unit, unit.isInstalled, !unit.isDown || ["failed", "activating"].contains(unit.state) {
            add(unit, nil)
            if unit.restarts > 0, status.uptime < Self.young {
                add(
                    "unit",
                    "The daemon started \(Table.text(.milliseconds(status.uptime))) ago, after it had failed.",
                    advice: "'\(Self.journal(unit))' says why.")
            }
        }
        add(
            "daemon",
            "\(Product.name) \(status.version) has run for \(Table.text(.milliseconds(status.uptime))), as process \(status.pid)."
        )
        if let last = answers.events.last {
            let text = EventsText(timestamps: timestamps).lines([last], at: now).joined()
            add("events", "\(answers.events.count) in 24 hours, the last one: \(text)")
        }
    }

    private mutating func add(off sources: [String]) {
        add("sources", "Switched off: \(sources.listed).", advice: "'btcctl source NAME on' switches it on.")
    }

    /// - Parameter mayRetry: Whether `btcctl retry` may help.
    private mutating func add(_ state: PriceState, mayRetry: Bool) {
        let model = PriceViewModel(timestampFormatter: timestamps)
        model.show(state, at: now)
        guard state.quote != nil, state.freshness == .fresh else {
            if state.failure == PriceState.pausedFailure { return }
            let failure = state.failure ?? "no tick has finished yet"
            let last =
                (failure.hasSuffix("?") ? " The" : "; the") + " last price is \(model.price), from \(model.timestamp)"
            return add(
                "price", failure + (state.quote == nil ? "" : last),
                advice: "'btcctl sources -v' says more"
                    + (mayRetry ? "; 'btcctl retry' requests those in a cooldown again." : "."))
        }
        let age = state.age(at: now).map { ", \(Table.text($0.age)) old" } ?? ""
        let words = state.derivation == nil ? state.confirmation.map(StatusText.words) : "derived"
        let isSaid = model.doubt != nil && state.confirmation == .unconfirmed && state.derivation == nil
        let text = [model.price + age, isSaid ? nil : words].compactMap(\.self).joined(separator: ", ")
        add(
            "price", "\(text)\(model.doubt.map { ". \($0)" } ?? "")",
            advice: state.doubt == nil && model.doubt == nil
                ? nil : "Don't rely on it: 'btcctl sources -v' shows who says what, and --confirmed refuses it.")
    }

    private mutating func addClock(_ text: String) {
        add("clock", text, advice: "Set it: 'timedatectl set-ntp true' keeps it right.")
    }

    private mutating func addStore(_ store: StatusMessage.Store) {
        let advice = "See the free space and the permissions of \(store.stateDirectory)."
        if let failure = store.failure { add("disk", "The price is not kept: \(failure)", advice: advice) }
        if let failure = store.historyFailure { add("disk", "The history is not written: \(failure)", advice: advice) }
    }

    // MARK: - The sources

    /// Why some sources give no price.
    private struct Trouble {
        enum Kind: Hashable {
            case cause(PriceLoadingError.Cause)
            case limited
            case refused
            case silent
            case contradicted
            /// Any other, by its reason.
            case other(String)
        }

        var kind: Kind
        var names: [String] = []
        /// Of the first one.
        var reason: String
        var host: String
        var until: Timestamp?

        /// Whether it explains more than one source. That one is contradicted explains nothing.
        func isGeneral(_ least: Int) -> Bool { names.count >= least && kind != .contradicted }
    }

    /// The troubles, that of the most sources first.
    private func troubles(_ reports: [SourceReport]) -> [Trouble] {
        var troubles: [Trouble] = []
        for report in reports where !report.isOff {
            guard let kind = Self.kind(report) else { continue }
            let index = troubles.firstIndex { $0.kind == kind } ?? troubles.count
            if index == troubles.count {
                let reason =
                    kind == .contradicted
                    ? report.claim?.contradictedBy.listed ?? ""
                    : report.lastFailure.map(text) ?? "from before the start"
                troubles.append(
                    Trouble(kind: kind, reason: reason, host: WebAddress(report.address)?.host ?? report.address))
            }
            troubles[index].names.append(report.name)
            troubles[index].until = [troubles[index].until, report.cooldownUntil].compactMap(\.self).max()
        }
        return troubles.enumerated().sorted {
            ($1.element.names.count, $0.offset) < ($0.element.names.count, $1.offset)
        }
        .map(\.element)
    }

    private func text(_ failure: SourceReport.Failure) -> String {
        let age = now.wall.milliseconds - failure.at.milliseconds
        return age < Self.recent ? failure.reason : "\(failure.reason), \(Table.text(.seconds(age / 1000))) ago"
    }

    private static func kind(_ report: SourceReport) -> Trouble.Kind? {
        switch report.use {
        case .current, .ready, .slow, .full, .untried, .noKey, .offPeg:
            return report.claim.map { !$0.isMember && !$0.contradictedBy.isEmpty } == true ? .contradicted : nil
        case .limited: return .limited
        case .refused: return .refused
        case .failing, .resting, .probing: break
        }
        guard let failure = report.lastFailure else { return nil }
        if let cause = failure.cause { return .cause(cause) }
        return failure.kind == "timed-out" ? .silent : .other(failure.reason)
    }

    private mutating func add(_ trouble: Trouble, of count: Int) {
        let who = trouble.names.count == count && count > 1 ? "all \(count) exchanges" : trouble.names.listed
        let (text, advice): (String, String) =
            switch trouble.kind {
            case .cause(.name):
                (
                    "The names of \(who) can't be resolved.",
                    "Does a name server respond? See /etc/resolv.conf, and try 'getent hosts \(trouble.host)'."
                )
            case .cause(.network):
                (
                    "No connection to \(who): \(trouble.reason)",
                    trouble.names.count == count
                        ? "Is the network up? See 'ip route' and the firewall."
                        : "Is it blocked on the way? 'btc-priced --try \(trouble.names[0])' shows more."
                )
            case .cause(.proxy): ("Through the proxy, \(who): \(trouble.reason)", "Does the proxy run? See proxy.url.")
            case .cause(.certificate):
                (
                    "The certificate of \(who) is not accepted: \(trouble.reason)",
                    "Is ca-certificates installed, or does something on the way replace certificates (tls.ca-file)?"
                )
            case .cause(.clock):
                (
                    "By this machine's clock, the certificate of \(who) is not valid: \(trouble.reason)",
                    "Set the clock: 'timedatectl set-ntp true' keeps it right."
                )
            case .limited:
                (
                    "\(who): a limit or a ban: \(trouble.reason)",
                    "Wait\(until(trouble)), and look for other programs at this address that request it."
                )
            case .refused:
                (
                    "\(who): requests are refused: \(trouble.reason)",
                    "See the region and the key, or leave it out of 'sources'."
                )
            case .silent: ("No response from \(who): \(trouble.reason)", "Is the network slow, or is it blocked there?")
            case .contradicted:
                (
                    "\(who): contradicted by \(trouble.reason)",
                    "Nothing, unless it lasts: 'btcctl sources -v' shows the vote."
                )
            case .other:
                ("\(who): \(trouble.reason)", "If it lasts: 'btc-priced --try \(trouble.names[0])' shows more.")
            }
        add("sources", text, advice: advice)
    }

    private func until(_ trouble: Trouble) -> String {
        guard let until = trouble.until, until > now.wall else { return "" }
        return " until \(timestamps.string(from: until))"
    }
}
