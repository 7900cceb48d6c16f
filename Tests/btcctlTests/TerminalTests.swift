import BTCPriceCore
import BTCPriceFeature
import TestSupport
import Testing

@testable import btcctl

/// Drawing on a terminal, without a terminal. Tests/System/062-terminal.py tests a real one.
@Suite struct TerminalTests {
    @Test func `a part is coloured, and a cut counts only visible characters`() {
        let line = StyledLine([.init(text: "ab"), .init(text: "cd", style: .good), .init(text: "ef", style: .bad)])
        #expect(line.text(isColored: false) == "abcdef")
        #expect(line.prefix(3).text(isColored: true) == "ab\u{1B}[32mc\u{1B}[m")
        #expect(line.width == 6)
    }

    @Test(arguments: [
        (ColorChoice.auto, true, [:], true), (.auto, false, [:], false), (.auto, true, ["NO_COLOR": "1"], false),
        (.auto, true, ["NO_COLOR": ""], true), (.auto, true, ["TERM": "dumb"], false),
        (.always, false, ["NO_COLOR": "1"], true),
        (.never, true, [:], false),
    ])
    func `colours are used only on terminals that support them`(
        choice: ColorChoice, isTerminal: Bool, environment: [String: String], expected: Bool
    ) {
        #expect(choice.isWanted(isTerminal: isTerminal) { environment[$0] } == expected)
    }

    @Test(arguments: [
        ([:], false), (["LANG": "C"], false), (["LANG": "C.UTF-8"], true), (["LANG": "de_DE.utf8"], true),
        (["LC_ALL": "C", "LANG": "C.UTF-8"], false), (["LC_ALL": "", "LC_CTYPE": "C.UTF-8"], true),
    ])
    func `the locale decides between ASCII and UTF-8`(environment: [String: String], expected: Bool) {
        #expect(Output.isUnicode { environment[$0] } == expected)
    }

    // MARK: The view

    private let now = ObservationTime(wall: Timestamp(milliseconds: 1_724_596_202_000), boottime: 12_000)

    private func state(
        _ value: String, _ freshness: Freshness = .fresh, _ confirmation: BTCPriceCore.Confirmation = .single
    ) -> PriceState {
        PriceState(
            tick: 1, freshness: freshness,
            quote: PriceQuote(
                value: Price(value) ?? 0, currency: "USD",
                timestamp: Timestamp(milliseconds: 1_724_596_200_000), source: "binance", market: "BTC/USDT"),
            observedBoottime: 10_000, confirmation: confirmation, failure: nil)
    }

    private func shown(_ states: [PriceState], width: Int, isUnicode: Bool = true, isColored: Bool = false) -> [String]
    {
        let model = PriceViewModel(timestampFormatter: TimestampFormatter(isUTC: true, present: now.wall))
        var view = WatchView(isUnicode: isUnicode)
        for state in states {
            model.show(state, at: now)
            view.see(state)
        }
        return view.lines(states[states.count - 1], model, at: now, width: width).map { $0.text(isColored: isColored) }
    }

    @Test func `the view shows price, source, age and the range`() {
        #expect(
            shown(["68000", "68001", "68002.5"].map { state($0) }, width: 80) == [
                "Aug 25, 14:30 - $68,002.50 ▲", "binance BTC/USDT, 2 s old", "▁▄█",
            ])
        #expect(
            shown(["68001", "68000"].map { state($0) }, width: 80, isUnicode: false) == [
                "Aug 25, 14:30 - $68,000.00 -", "binance BTC/USDT, 2 s old",
            ])
        #expect(
            shown(["68001", "68000"].map { state($0) }, width: 80, isColored: true)[0]
                == "Aug 25, 14:30 - \u{1B}[31m$68,000.00 ▼\u{1B}[m")
    }

    @Test func `a price that is not current is marked, and has no arrow`() {
        #expect(
            shown([state("68000"), state("68001"), state("68001", .stale)], width: 80) == [
                "Aug 25, 14:30 - $68,001.00", "binance BTC/USDT, 2 s old",
                "Failed to update value. Displaying last updated value from Aug 25, 14:30", "▁█ ",
            ])
        #expect(shown([.empty()], width: 80) == ["-", "Failed to update value."])
        #expect(shown([state("68000", .fresh, .unconfirmed)], width: 80)[1] == "binance BTC/USDT, 2 s old, unconfirmed")
    }

    @Test func `the view fits in twenty columns, and no line is as wide as the terminal`() {
        let lines = shown((1...40).map { state("\(68000 + $0)") } + [state("68040", .stale)], width: 20)
        #expect(lines.allSatisfy { $0.count < 20 }, "\(lines)")
        #expect(lines[0...3] == ["$68,040.00", "Aug 25, 14:30", "binance BTC/USDT,", "2 s old"])
        #expect(
            lines.joined(separator: " ").contains(
                "Failed to update value. Displaying last updated value from Aug 25, 14:30"))
        #expect(lines.last?.count == 17, "room for ^C: \(lines)")
    }
}
