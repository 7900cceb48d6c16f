import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import Glibc
import Testing

@testable import btcctl

@Suite struct WhyTests {
    private let now = ObservationTime(
        wall: Timestamp(milliseconds: 1_795_340_000_000), boottime: BootTime(milliseconds: 900_000))

    /// What a daemon says whose four exchanges agree.
    private var answers: Findings.Answers {
        var status = StatusMessage.blank
        status.price.state.price = ShownPrice(
            PriceQuote(
                value: Price(6_890_123, scale: 2), currency: "USD", timestamp: now.wall, source: "binance",
                market: "BTC/USDT"),
            observedBoottime: now.boottime, confirmation: .confirmed)
        status.price.state.ticks.freshness = .fresh
        let names = ["binance", "coinbase", "kraken", "bitstamp"]
        return Findings.Answers(
            status: status,
            sources: names.enumerated().map { index, name in
                SourceReport(
                    name: name, order: Int64(index + 1), market: "BTC/USD", address: "https://api.\(name).example/v1",
                    use: index == 0 ? .current : .ready)
            })
    }

    private func report(
        _ answers: Findings.Answers, program: Result<DiagnosisMessage, Findings.ProgramFailure>? = nil,
        unit: Findings.Unit? = nil
    ) -> WhyReport {
        WhyReport(
            Findings(
                daemon: .success(answers), unit: unit,
                program: program ?? .success(DiagnosisMessage())), at: now)
    }

    /// The same, but these sources fail.
    private func failing(
        _ count: Int, _ cause: PriceLoadingError.Cause?, kind: String = "unreachable", reason: String = "x",
        isFresh: Bool = false
    ) -> Findings.Answers {
        var answers = answers
        for index in answers.sources.indices.suffix(count) {
            answers.sources[index].use = .failing
            answers.sources[index].lastFailure = .init(at: now.wall, kind: kind, reason: reason, cause: cause)
        }
        if !isFresh {
            answers.status.price.state.ticks.freshness = .stale
            answers.status.price.state.ticks.failure = "no price"
        }
        return answers
    }

    @Test func `all is well, and nothing else is said`() {
        let report = report(answers)
        #expect(report.state == .well && report.verdict == "All is well.")
        #expect(report.lines.allSatisfy { $0.isGood && $0.advice == nil })
        #expect(report.lines.map(\.subject) == ["price", "sources", "daemon"])
    }

    @Test func `sources that are all switched off come first, and no retry is advised where it can't help`() {
        var off = failing(0, nil)
        off.status.sourcesOff = off.sources.map(\.name)
        for index in off.sources.indices { off.sources[index].isOff = true }
        #expect(
            report(off).verdict == "There is no current price: Switched off: binance, coinbase, kraken and bitstamp.")
        var limited = failing(4, nil, kind: "rate-limited", reason: "HTTP 429")
        for index in limited.sources.indices { limited.sources[index].use = .limited }
        #expect(report(limited).verdict == "There is no current price: all 4 exchanges: a limit or a ban: HTTP 429")
        for answers in [off, limited] {
            let lines = report(answers).lines
            #expect(lines.filter { $0.text.hasPrefix("Switched off") }.count == (answers == off ? 1 : 0))
            #expect(!lines.contains { $0.advice?.contains("btcctl retry") == true })
        }
        #expect(report(failing(2, nil)).lines.contains { $0.advice?.contains("btcctl retry") == true })
    }

    @Test func `a price from a simulator is said to be one`() {
        var answers = answers
        answers.status.elsewhere = ["binance", "kraken"]
        let report = report(answers)
        #expect(report.state == .well)
        #expect(report.lines[1].text.hasPrefix("Not from the exchanges' own addresses") && report.lines[1].isGood)
    }

    @Test(arguments: [
        (
            PriceLoadingError.Cause.name, "The names of all 4 exchanges can't be resolved.",
            "getent hosts api.binance.example"
        ),
        (.network, "No connection to all 4 exchanges: x", "ip route"),
        (.proxy, "Through the proxy, all 4 exchanges: x", "proxy.url"),
        (.certificate, "The certificate of all 4 exchanges is not accepted: x", "ca-certificates"),
        (.clock, "By this machine's clock, the certificate of all 4 exchanges is not valid: x", "timedatectl"),
    ])
    func `what concerns all exchanges is one cause`(cause: PriceLoadingError.Cause, text: String, advice: String) {
        let report = report(failing(4, cause))
        #expect(report.state == .noPrice && report.state.exitStatus == 1)
        #expect(report.verdict == "There is no current price: \(text)")
        #expect(report.lines[0].text == text && report.lines[0].advice?.contains(advice) == true)
        #expect(report.lines.count { $0.subject == "sources" } == 1)
    }

    @Test func `one that can't be connected to is not the network's fault, and an old failure has its age`() {
        var answers = failing(1, .network, isFresh: true)
        let line = { (answers: Findings.Answers) in report(answers).lines.first { $0.subject == "sources" } }
        #expect(line(answers)?.text == "No connection to bitstamp: x")
        #expect(line(answers)?.advice?.contains("'btc-priced --try bitstamp'") == true)
        answers.sources[3].lastFailure?.at = Timestamp(milliseconds: now.wall.milliseconds - 42_000)
        #expect(line(answers)?.text == "No connection to bitstamp: x, 42 s ago")
    }

    @Test func `the cause of the most sources comes first`() {
        var answers = failing(3, nil, kind: "timed-out", reason: "no response within 800 ms")
        answers.sources[0].use = .limited
        answers.sources[0].lastFailure = .init(at: now.wall, kind: "rate-limited", reason: "HTTP 418")
        let lines = report(answers).lines.filter { $0.subject == "sources" }.map(\.text)
        #expect(
            lines == [
                "No response from coinbase, kraken and bitstamp: no response within 800 ms",
                "binance: a limit or a ban: HTTP 418",
            ])
    }

    @Test func `one failing source of four comes after a doubt, and three come before it`() {
        for count in [1, 3] {
            var answers = failing(count, nil, kind: "timed-out", isFresh: true)
            answers.status.price.state.price?.confirmation = .unconfirmed
            answers.status.price.state.standing.warning = "a contradicts b"
            let report = report(answers)
            #expect(report.state == .degraded && report.state.exitStatus == 10)
            #expect(
                report.lines.prefix(2).map(\.subject) == (count == 1 ? ["price", "sources"] : ["sources", "price"]))
        }
    }

    @Test func `a doubt in another currency is one, and what all is well with is that of the first`() {
        var answers = answers
        var euro = answers.status.price
        euro.state.price?.quote.currency = "EUR"
        answers.currencies = [("USD", answers.status.price), ("EUR", euro)].map {
            CurrencyMessage(currency: $0, price: $1, interval: 1000, sources: [])
        }
        #expect(report(answers).state == .well)
        #expect(report(answers).lines[1].text == "4 exchanges for USD, and none is in trouble.")
        answers.currencies[1].price.state.standing.warning = "kraken contradicts coinbase"
        #expect(report(answers).state == .degraded)
        #expect(report(answers).lines[0].text == "EUR: €68,901.23. Warning: kraken contradicts coinbase.")
        #expect(report(answers).lines[0].advice?.contains("btcctl sources -v -c EUR") == true)
    }

    @Test func `a pause explains a stale price alone`() {
        var answers = answers
        answers.status.ticking = .paused
        answers.status.price.state.ticks.freshness = .stale
        answers.status.price.state.ticks.failure = PriceState.pausedFailure
        let report = report(answers)
        #expect(report.verdict == "There is no current price: The updates are paused by an administrator.")
        #expect(report.lines.count { !$0.isGood } == 1)
    }

    @Test func `at most ten lines, and control characters of others go`() {
        var answers = answers
        for index in answers.sources.indices {
            answers.sources[index].use = .failing
            answers.sources[index].lastFailure = .init(at: now.wall, kind: "invalid-data", reason: "\u{1B}[2J \(index)")
        }
        let checks = (0..<9).map { DiagnosisMessage.Check("disk", isGood: false, "full \($0)", advice: "Make room.") }
        let report = report(answers, program: .success(DiagnosisMessage(checks: checks)))
        #expect(report.lines.count == 10 && report.lines.allSatisfy { !$0.isGood })
        #expect(!report.text(width: 60).joined().contains("\u{1B}"))
        #expect(report.text(width: 60).allSatisfy { $0.count <= 60 })
    }

    @Test func `without a daemon, its configuration explains more than its unit`() {
        let complaint = Complaint.unreachable([
            .unreachable(path: "/run/x", reason: String(cString: strerror(ENOENT)))
        ])
        let unit = Findings.Unit(
            isUsers: false,
            properties: ["LoadState": "loaded", "ActiveState": "failed", "Result": "exit-code", "ExecMainStatus": "78"])
        let wrong = DiagnosisMessage.Check("configuration", isGood: false, "x:6: wrong", advice: "Correct that.")
        var findings = Findings(
            daemon: .failure(complaint), unit: unit, journal: "x:6",
            program: .success(DiagnosisMessage(checks: [wrong])))
        var report = WhyReport(findings, at: now)
        #expect(report.state == .noDaemon && report.state.exitStatus == 69)
        #expect(report.verdict == "No daemon responds: x:6: wrong")
        #expect(report.lines.map(\.subject) == ["configuration", "unit", "daemon", "journal"])
        #expect(report.lines[1].text == "btc-priced.service has failed (exit-code, exit status 78).")
        findings.program = .failure(.init(reason: "btc-priced can't be run"))
        report = WhyReport(findings, at: now)
        #expect(report.verdict == "No daemon responds: btc-priced.service has failed (exit-code, exit status 78).")
    }

    @Test func `a silent socket is systemd's while the unit is down, and a daemon's otherwise`() {
        let silent = Complaint.unreachable([.timedOut(path: "/run/x")])
        for (state, subjects) in [("failed", ["unit", "daemon"]), ("active", ["daemon", "unit"])] {
            let unit = Findings.Unit(
                isUsers: false, properties: ["LoadState": "loaded", "ActiveState": state, "NRestarts": "2"])
            let findings = Findings(
                daemon: .failure(silent), unit: unit, program: .success(DiagnosisMessage()))
            #expect(WhyReport(findings, at: now).lines.map(\.subject) == subjects)
        }
    }

    @Test func `a restart of long ago is not a fault, and one of a minute ago is`() {
        let unit = Findings.Unit(
            isUsers: false, properties: ["LoadState": "loaded", "ActiveState": "active", "NRestarts": "1"])
        for (uptime, state) in [(Int64(60_000), WhyReport.State.degraded), (700_000, .well)] {
            var answers = answers
            answers.status.uptime = uptime
            #expect(report(answers, unit: unit).state == state)
        }
    }

    @Test func `what another program prints is printable, and what is wrong has advice`() throws {
        let text = #"{"version":"9","checks":[{"subject":"x\u001b","good":false,"text":"a\u0007\nb","advice":null}]}"#
        let message = try DiagnosisMessage(json: try JSONValue(parsing: Array(text.utf8)[...]))
        let check = message.checks[0]
        #expect(
            !check.isGood && check.advice == ""
                && !(check.subject + check.text).contains { $0 == "\u{1B}" || $0 == "\u{7}" || $0 == "\n" })
    }
}
