import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import TestSupport
import Testing

@testable import btcctl

/// The output formats of a price other than the fixed line, and the runs of a command.
@Suite struct FormTests {
    private let now = ObservationTime(wall: Timestamp(milliseconds: 1_724_596_202_000), boottime: 12_345)

    private func state(_ value: String?, _ freshness: Freshness = .fresh) -> PriceState {
        PriceState(
            tick: 7, freshness: freshness,
            quote: value.map {
                PriceQuote(
                    value: Price($0) ?? 0, currency: "USD",
                    timestamp: Timestamp(milliseconds: 1_724_596_200_000), source: "binance", market: "BTC/USDT")
            },
            observedBoottime: value == nil ? nil : 10_000, confirmation: value == nil ? nil : .single,
            failure: freshness == .fresh ? nil : "no <route> & no host")
    }

    private func model(_ states: PriceState...) -> PriceViewModel {
        let model = PriceViewModel(timestampFormatter: TimestampFormatter(isUTC: true, present: now.wall))
        for state in states { model.show(state, at: now) }
        return model
    }

    // MARK: --format

    @Test func `a template is filled with values`() throws {
        let template = try FormatTemplate(
            "{{{price}|{value}|{time}|{age}|{ageMs}|{source}|{market}|{currency}|{freshness}|{confirmation}|{failure}|{sats}|{tick}|{timestamp}|{direction}}}"
        )
        #expect(
            template.text(state("68901.225"), model(state("1"), state("68901.225")), at: now)
                == "{$68,901.22|68901.225|Aug 25, 14:30|2.3 s|2345|binance|BTC/USDT|USD|fresh|single||1451|7|1724596200000|up}"
        )
        #expect(
            try FormatTemplate("{price} {value} {age} {source} {failure} {sats}").text(
                state(nil, .none), model(state(nil, .none)), at: now) == "- - - - no <route> & no host -")
        #expect(
            try FormatTemplate(#"{currency}\t{source}\n\\n C:\dir\"#).text(state("1"), model(state("1")), at: now)
                == "USD\tbinance\n\\n C:\\dir\\")
        #expect(throws: UsageError.self) { try FormatTemplate("") }
    }

    @Test func `all formats except JSON can be in satoshis`() throws {
        let message = StateMessage(instance: "x", state: state("68901.23"))
        let forms: [(PriceOutput.Form, String)] = [
            (.text, " - 1,451 sat per $1"), (.raw, "1451"), (.bar(.polybar), "1,451 sat per $1"),
            (.format(try FormatTemplate("{price} {value}")), "1,451 sat per $1 68901.23"),
            (.json, #""value":"68901.23","#),
        ]
        for (form, expected) in forms {
            let line = PricePrinter(PriceOutput(form: form, isInSatoshis: true)).line(message, at: now)
            #expect(line?.contains(expected) == true, "\(form): \(line ?? "")")
        }
    }

    @Test(arguments: ["{", "}", "{price", "price}", "{nothing}", "{}", "{{}", "{ price}"])
    func `an invalid template is refused with a reason`(text: String) {
        let mistake = #expect(throws: UsageError.self) { try FormatTemplate(text) }
        #expect(mistake?.message.contains("--format") == true)
    }

    // MARK: --bar

    @Test func `each bar has its own format for a rising price`() {
        let content = Bar.Content(state("68901.23"), model(state("1"), state("68901.23")))
        #expect(
            Bar.waybar.line(content)
                == #"{"text":"$68,901.23","alt":"ok","tooltip":"Aug 25, 14:30 - $68,901.23\nbinance BTC/USDT","class":["ok","up"]}"#
        )
        #expect(
            Bar.i3blocks.line(content)
                == ##"{"full_text":"$68,901.23","short_text":"$68,901.23","color":"#46954a","_class":"ok up"}"##)
        #expect(Bar.polybar.line(content) == "%{F#46954a}$68,901.23%{F-}")
    }

    @Test func `a bar shows a stale price with its time, and a missing price with the reason`() {
        let stale = Bar.Content(state("68901.23", .stale), model(state("1"), state("68901.23", .stale)))
        #expect(stale.classes == ["stale"])
        #expect(Bar.polybar.line(stale) == "%{F#c69026}$68,901.23 (Aug 25, 14:30)%{F-}")
        let none = Bar.Content(state(nil, .none), model(state(nil, .none)))
        #expect(none.classes == ["error"])
        #expect(
            Bar.waybar.line(none)
                == #"{"text":"-","alt":"error","tooltip":"Failed to update value. Reason: no &lt;route&gt; &amp; no host","class":["error"]}"#
        )
        #expect(Bar.Content(state("1"), model(state("1"))).color == nil, "the bar's own colour before it went anywhere")
    }

    // MARK: Conditions

    @Test func `above and below are reported when they become true`() {
        var watch = ConditionWatch(PriceCondition(above: 100, below: 50))
        #expect(
            [60, 100, 101, 102, 99, 101, 49, 48, 50, 49].map { watch.take($0, in: "USD") } == [
                [], [], [.above], [], [], [.above], [.below], [], [], [.below],
            ])
        // All that begin at one price are reported.
        var both = ConditionWatch(PriceCondition(above: 100, change: .percent(2)))
        #expect([98, 101, 99].map { both.take($0, in: "USD") } == [[], [.above, .change], []])
    }

    @Test func `a change is measured from the first price, and then from the last reported one`() {
        var percent = ConditionWatch(PriceCondition(change: .percent(2)))
        #expect(
            [100, 101, 102, 103, 104, Price("99.96") ?? 0, 99].map { percent.take($0, in: "USD") } == [
                [], [], [.change], [], [], [.change], [],
            ])
        var dollars = ConditionWatch(PriceCondition(change: .amount(5)))
        #expect([100, 96, 95, 99, 100].map { dollars.take($0, in: "USD") } == [[], [], [.change], [], [.change]])
        // A price in another currency is no change.
        #expect([50, 55].map { dollars.take($0, in: "EUR") } == [[], [.change]])
        var none = ConditionWatch(PriceCondition())
        #expect([1, 100].map { none.take($0, in: "USD") } == [[], []])
    }

    // MARK: --exec

    @Test func `every condition that begins has its command, in order, and what is dropped is counted`() {
        let start = ContinuousClock.now
        var alarm = Alarm(PriceCondition(above: 100, below: 100, change: .percent(2)), at: start)
        func message(_ value: Price) -> StateMessage { StateMessage(instance: "i", state: state("\(value)")) }
        func check(_ prices: Price...) { for price in prices { _ = alarm.check(price, message(price)) } }
        func due() -> [String] {
            var lines: [String] = []
            while let next = alarm.next() {
                let (event, note) = next
                lines.append(
                    "\(event.condition?.rawValue ?? "") \(event.message.state.quote?.value ?? 0)\(note.map { " \($0)" } ?? "")"
                )
            }
            return lines
        }
        check(99)
        #expect(due() == ["below 99"])
        check(103, 99)
        #expect(due() == ["above 103", "change 103", "below 99", "change 99"])
        #expect(due() == [])
        for _ in 0..<10 { check(103, 99) }
        let lines = due()
        #expect(lines.count == Alarm.mostWaiting)
        #expect(lines[0] == "above 103 8 more conditions began while 32 commands waited, and run none")
        #expect(lines[1] == "change 103")
    }

    @Test func `an alarm without a price to check says so after a minute, and when it is over`() {
        let start = ContinuousClock.now
        var alarm = Alarm(PriceCondition(above: 100), at: start)
        func time(_ seconds: Int) -> ContinuousClock.Instant { start.advanced(by: .seconds(seconds)) }
        func check() -> String? { alarm.check(99, StateMessage(instance: "i", state: state("99"))) }
        #expect(alarm.note(at: time(59)) == nil)
        #expect(
            alarm.note(at: time(60)) == "no price was checked against the conditions for a minute: no price has come")
        #expect(alarm.note(at: time(500)) == nil)
        #expect(check() == "prices are checked against the conditions again")
        // With ticks an hour apart, nothing is missing between two of them.
        #expect(alarm.note(at: time(5000)) == nil)
        alarm.lose(because: "the price is unconfirmed", at: time(5000))
        alarm.lose(because: "no network", at: time(5030))
        #expect(alarm.note(at: time(5059)) == nil)
        #expect(alarm.note(at: time(5060)) == "no price was checked against the conditions for a minute: no network")
        alarm.lose(because: "no network", at: time(6000))
        #expect(alarm.note(at: time(7000)) == nil)
        #expect(check() == "prices are checked against the conditions again")
        #expect(check() == nil)
    }

    @Test func `a command that could not be started is the next one again`() {
        var alarm = Alarm(PriceCondition(above: 100, change: .percent(2)), at: .now)
        for value in ["98", "101"] {
            _ = alarm.check(Price(value) ?? 0, StateMessage(instance: "i", state: state(value)))
        }
        let first = alarm.next()?.event
        #expect(first?.condition == .above)
        if let first { alarm.putBack(first) }
        #expect(alarm.next()?.event == first)
        #expect(alarm.next()?.event.condition == .change)
    }

    @Test func `a command receives all values`() {
        let variables = state("68901.23").variables(
            model(state("68901.23")), previous: 1, .flat, condition: "above", at: now)
        #expect(
            variables.map { "\($0.name)=\($0.value)" } == [
                "BTCCTL_VALUE=68901.23", "BTCCTL_PRICE=$68,901.23", "BTCCTL_PREVIOUS_VALUE=1", "BTCCTL_CURRENCY=USD",
                "BTCCTL_TIME=Aug 25, 14:30", "BTCCTL_TIMESTAMP=1724596200000", "BTCCTL_AGE_MS=2345",
                "BTCCTL_SOURCE=binance",
                "BTCCTL_MARKET=BTC/USDT", "BTCCTL_FRESHNESS=fresh", "BTCCTL_CONFIRMATION=single", "BTCCTL_FAILURE=",
                "BTCCTL_WARNING=", "BTCCTL_DIRECTION=flat", "BTCCTL_CONDITION=above",
            ])
    }
}
