import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import TestSupport
import Testing

@testable import btcctl

/// What each place says of each kind of doubt. The gateway's and the fleet's are in their own tests.
@Suite struct DoubtTests {
    private let now = KindOfDoubt.now
    private let timestamps = TimestampFormatter(isUTC: true, present: KindOfDoubt.now.wall)

    private func message(_ kind: KindOfDoubt) -> StateMessage { StateMessage(instance: "i", state: kind.state) }

    /// The line and its notes.
    private func printed(_ kind: KindOfDoubt, _ form: PriceOutput.Form, isInSatoshis: Bool = false) -> String {
        let printer = PricePrinter(PriceOutput(form: form, timestamps: timestamps, isInSatoshis: isInSatoshis))
        let line = printer.line(message(kind), at: now) ?? "(no line)"
        return ([line] + printer.notes).joined(separator: " | ")
    }

    private func status(_ kind: KindOfDoubt, _ clock: ClockComparison = .agrees) -> [String] {
        var status = StatusMessage.blank
        (status.price, status.clock) = (message(kind), StatusMessage.Clock(clock))
        return StatusText(timestamps: timestamps).lines(status, at: now)
    }

    @Test func `the table of doubt: every place says what it shows of every kind`() throws {
        var table = DoubtTable()
        let kinds = KindOfDoubt.allCases
        table.add("current, watch, wait", kinds) { printed($0, .text) }
        table.add("current --raw", kinds) { printed($0, .raw) }
        table.add("current --sats", kinds) { printed($0, .text, isInSatoshis: true) }
        let template = try FormatTemplate("{price} {freshness} {confirmation} {uncertainty} {change24h}")
        table.add("current --format", kinds) { printed($0, .format(template)) }
        table.add("current --json", kinds) { kind in
            let state = kind.state
            return [
                state.freshness.rawValue, state.confirmation?.rawValue,
                state.standing.uncertainty.map { "± \($0.plusMinus)" },
                state.standing.warning, state.derivation.map { "derived from \($0.currency)" }, state.failure,
            ].compactMap(\.self).joined(separator: ", ")
        }
        for bar in Bar.allCases { table.add("--bar \(bar)", kinds) { printed($0, .bar(bar)) } }
        for (option, requirements) in [
            ("--confirmed", PriceRequirements(trust: .confirmed)),
            ("--max-uncertainty 0.5%", PriceRequirements(maxUncertainty: Price("0.5"))),
            ("--max-age 1m", PriceRequirements(maxAge: .seconds(60))),
        ] {
            table.add("current \(option)", kinds) { kind in
                guard kind.state.quote != nil else { return "(no price)" }
                return requirements.refusal(of: kind.state, at: now).map { "refused: \($0.predicate)" } ?? "shown"
            }
        }
        table.add("convert 0.05btc", kinds) { kind in
            guard let price = ConversionPrice(kind.state) else { return "(no price)" }
            return price.text(Amount(Price(5, scale: 2), .btc))
        }
        table.add("status", kinds) { status($0)[...1].joined(separator: " | ") }
        for (clock, name) in [
            (ClockComparison.agrees, "agrees"), (.unknown, "unknown"),
            (.differs(ClockDifference(milliseconds: -7_200_000, venues: 3, known: 4)), "differs"),
        ] {
            table.add("status, the clock \(name)", [KindOfDoubt.sure]) { kind in
                status(kind, clock).first { $0.hasPrefix("Clock") } ?? ""
            }
        }
        table.add("why", kinds) { kind in
            var status = StatusMessage.blank
            (status.price, status.ticking) = (message(kind), kind == .paused ? .paused : .running)
            let findings = Findings(
                daemon: .success(Findings.Answers(status: status)), program: .failure(.init(reason: "")))
            let report = WhyReport(findings, timestamps: timestamps, at: now)
            return "\(report.verdict) | \(report.lines.first { $0.subject == "price" }?.text ?? "(no line)")"
        }
        table.add("currencies", kinds) { kind in
            let row = CurrencyMessage(
                currency: kind.state.currency, price: message(kind), interval: 1000, sources: ["kraken"])
            return CurrenciesText(timestamps: timestamps).lines([row], at: now)[1]
        }
        table.add("chart", kinds) { kind in
            let candles = KindOfCandle.allCases.filter { $0.step == .minute }.map(\.candle)
            let title = ChartTitle(candles, currency: kind.state.currency, span: .day, now: now.wall.wholeSeconds)
            return title.parts(kind.state, width: 200).map(\.text).joined()
        }
        table.add("top", kinds) { kind in
            let model = PriceOutput(timestamps: timestamps).model()
            model.show(kind.state, at: now)
            let content = TopContent(
                state: kind.state, model: model, history: ChartCandles(named: nil, span: .day), now: now)
            var view = TopView(symbols: .ascii, timestamps: timestamps)
            let lines = view.picture(content, TopState(), in: (200, 24)).lines.map { $0.text(isColored: false) }
            return lines.prefix { !$0.hasPrefix("24h:") }.joined(separator: " | ")
        }
        let candles = KindOfCandle.allCases
        let text = { (kind: KindOfCandle) in HistoryText(currency: "USD", step: kind.step, timestamps: timestamps) }
        table.add("at", candles) { kind in
            let known = PriceAt(kind.candle, kind.step, at: kind.candle.start)
            let refused = known.isLess(than: .minute) ? " | --max-step 1m: refused" : ""
            return text(kind).line(known, at: Timestamp(milliseconds: kind.candle.start * 1000)) + " | "
                + text(kind).description(of: kind.candle) + refused
        }
        table.add("at … 0.05btc", candles) { kind in
            let known = PriceAt(kind.candle, kind.step, at: kind.candle.start)
            return ConversionPrice(known.candle, known.price, isCoarse: known.isCoarse, in: .usd)
                .text(Amount(Price(5, scale: 2), .btc))
        }
        table.add("history", candles) { text($0).row($0.candle).joined(separator: " | ") }
        table.add("history on a pipe", candles) { text($0).line($0.candle) }
        table.add("history --csv", candles) { text($0).csv($0.candle) }
        table.add("history --json", candles) { text($0).json($0.candle) }
        #expect(try table.isKept(), "\(table.text)")
    }
}
