import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import btcctl

/// What `top` draws and what its keys do, without a terminal. Tests/System/063-top.py runs it in one.
@Suite struct TopTests {
    private static let golden = String(#filePath.dropLast("Tests.swift".count)) + ".golden"
    private static let now = KindOfDoubt.now
    private static let timestamps = TimestampFormatter(isUTC: true, present: now.wall)

    private static func source(
        _ order: Int64, _ name: String, _ market: String, _ price: Price, _ use: SourceReport.Use,
        against others: [String] = []
    ) -> SourceReport {
        var report = SourceReport(
            name: name, order: order, market: market, address: "https://\(name).example", use: use,
            lastSuccess: Timestamp(milliseconds: now.wall.milliseconds - 400 * order))
        report.lastPrice = price
        report.claim = MarketClaim(low: price - 70, high: price + 70, isMember: others.isEmpty, contradictedBy: others)
        return report
    }

    private static func sources(_ kind: KindOfDoubt) -> [SourceReport] {
        var sources = [
            source(1, "kraken", "BTC/USD", Price(6_890_123, scale: 2), .current),
            source(2, "binance", "BTC/USDT", Price(6_889_000, scale: 2), .ready),
            source(3, "coinbase", "BTC/USD", Price(6_892_215, scale: 2), .ready),
            source(4, "bitstamp", "BTC/USD", 68_905, .slow), source(5, "gemini", "BTC/USD", 68_899, .full),
        ]
        if kind == .unconfirmed { sources[2] = source(3, "coinbase", "BTC/USD", 69_801, .ready, against: ["kraken"]) }
        if kind == .stale {
            for index in sources.indices {
                sources[index].use = index == 0 ? .failing : .limited
                sources[index].lastFailure = SourceReport.Failure(
                    at: Timestamp(milliseconds: now.wall.milliseconds - 30_000), kind: "server", reason: "HTTP 503")
                sources[index].cooldownUntil =
                    index == 0 ? nil : Timestamp(milliseconds: now.wall.milliseconds + 42_000)
            }
        }
        return sources
    }

    private static func content(
        _ kind: KindOfDoubt, lost: String? = nil, isFast: Bool = false, isInSatoshis: Bool = false
    ) -> TopContent {
        let model = PriceOutput(timestamps: timestamps, isInSatoshis: isInSatoshis).model()
        if isFast {
            var before = kind.state
            before.price?.quote.value = 69_400
            model.show(before, at: now)
        }
        var state = kind.state
        if lost != nil, kind != .none { state.becomeStale(because: "unreachable") }
        model.show(state, at: now)
        if let lost, kind == .none { model.updatesFailed(lost) }
        let candles = kind == .none ? [] : Candle.samples(.minute, 1440, until: now.wall.wholeSeconds, gap: 500..<640)
        let at = { (seconds: Int64) in now.wall.wholeSeconds - seconds }
        let episodes = [
            Episode(.init(.limited, .usd, source: "gemini"), start: at(9000), end: at(8700)),
            Episode(.init(.outvoted, .usd, source: "coinbase"), start: at(4000), end: at(3100), worst: 30_151),
            Episode(.init(.outage, .usd), start: at(95)),
        ]
        return TopContent(
            state: lost != nil && kind == .none ? nil : state, model: model, lost: lost,
            sources: kind == .none ? [] : sources(kind),
            events: kind == .none ? [] : episodes.prefix(kind == .stale ? 3 : 2).map(EventMessage.init),
            history: ChartCandles(named: nil, span: .day, candles: candles), now: now)
    }

    private static func picture(
        _ content: TopContent, _ width: Int, _ height: Int, _ symbols: Chart.Symbols = .braille,
        isColored: Bool = false, _ change: (inout TopState) -> Void = { _ in }
    ) -> [String] {
        var state = TopState()
        state.currencies = ["USD", "EUR"]
        change(&state)
        var view = TopView(symbols: symbols, timestamps: timestamps)
        return view.picture(content, state, in: (width, height)).lines.map { $0.text(isColored: isColored) }
    }

    @Test func `the pictures match the golden file`() throws {
        let lost = Complaint(word: "unreachable", message: "", status: 69).reason
        let pictures: [(String, [String])] = [
            ("80 columns, calm", Self.picture(Self.content(.sure), 80, 24)),
            ("80 columns, in colour", Self.picture(Self.content(.sure, isFast: true), 80, 24, isColored: true)),
            ("80 columns, ASCII", Self.picture(Self.content(.sure, isFast: true), 80, 24, .ascii)),
            ("80 columns, blocks, candles", Self.picture(Self.content(.sure), 80, 24, .blocks) { $0.isCandles = true }),
            ("80 columns, in doubt", Self.picture(Self.content(.unconfirmed), 80, 24)),
            ("80 columns, in an outage", Self.picture(Self.content(.stale), 80, 24)),
            ("80 columns, without a daemon", Self.picture(Self.content(.none, lost: lost), 80, 24)),
            ("80 columns, the daemon has gone", Self.picture(Self.content(.sure, lost: lost), 80, 24)),
            ("80 columns, derived", Self.picture(Self.content(.derived), 80, 24)),
            ("80 columns, satoshis", Self.picture(Self.content(.sure, isInSatoshis: true), 80, 24)),
            ("80 columns, help", Self.picture(Self.content(.sure), 80, 24) { $0.isHelp = true }),
            ("80 columns, frozen", Self.picture(Self.content(.sure), 80, 24) { $0.isFrozen = true }),
            ("40 columns, calm", Self.picture(Self.content(.sure), 40, 12)),
            ("40 columns, in doubt", Self.picture(Self.content(.unconfirmed), 40, 12)),
            ("40 columns, in an outage", Self.picture(Self.content(.stale), 40, 12)),
            ("30 columns, the least", Self.picture(Self.content(.sure), 30, 8)),
            ("20 columns, too small", Self.picture(Self.content(.sure), 20, 5)),
            ("120 columns, in a fast market", Self.picture(Self.content(.sure, isFast: true), 120, 32)),
            ("200 columns, calm", Self.picture(Self.content(.sure), 200, 60)),
        ]
        let text = pictures.map { "== \($0.0)\n\($0.1.joined(separator: "\n"))\n" }.joined(separator: "\n")
        if getenv("UPDATE_GOLDEN") != nil { try Data(text.utf8).write(to: URL(filePath: Self.golden)) }
        let kept = String(decoding: try Data(contentsOf: URL(filePath: Self.golden)), as: UTF8.self)
        #expect(text == kept)
        for (name, lines) in pictures where name.contains("ASCII") {
            #expect(lines.allSatisfy { $0.utf8.count == $0.count }, "\(name)")
        }
    }

    @Test func `any size and any names make a picture that fits`() {
        var random = SeededGenerator.announced()
        let names = [
            "\u{1B}[2J", "日本の取引所", "e\u{301}\u{301}", String(repeating: "long ", count: 60), "", "\u{202E}kraken",
            "a\nb",
        ]
        // STATES in the environment: more of them.
        let count = getenv("STATES").flatMap { Int(String(cString: $0)) } ?? 300
        for _ in 0..<count {
            let size = (width: Int.random(in: 1...250, using: &random), height: Int.random(in: 1...80, using: &random))
            let kind = KindOfDoubt.allCases.randomElement(using: &random) ?? .sure
            var content = Self.content(
                kind, lost: Bool.random(using: &random) ? names.randomElement(using: &random) : nil)
            for index in content.sources.indices {
                content.sources[index].name = names.randomElement(using: &random) ?? ""
                content.sources[index].lastFailure?.reason = names.randomElement(using: &random) ?? ""
            }
            content.note = names.randomElement(using: &random)
            var state = TopState()
            state.isHelp = Int.random(in: 0..<8, using: &random) == 0
            state.isCandles = Bool.random(using: &random)
            state.scrolled = Int.random(in: 0...10, using: &random)
            let symbols = Chart.Symbols.allCases.randomElement(using: &random) ?? .braille
            var view = TopView(symbols: symbols, timestamps: Self.timestamps)
            let lines = view.picture(content, state, in: size).lines
            #expect(lines.count <= size.height)
            #expect(
                lines.count == size.height || size.width < TopView.least.width || size.height < TopView.least.height)
            var (screen, terminal) = (Screen(.whole), PaperTerminal(width: size.width, height: size.height))
            terminal.show(screen.draw(lines, in: size, isColored: true))
            #expect(terminal.mistakes.isEmpty, "\(size): \(terminal.mistakes)")
            #expect(terminal.scrolled == 0)
        }
    }

    @Test func `each key changes what it names, or says why it can't`() {
        var state = TopState()
        state.currencies = ["USD", "EUR", "CHF"]
        func press(_ key: Key, hidden: Int = 0) -> TopState.Effect { state.press(key, hidden: hidden) }
        #expect(press(.character("3")) == .span && state.span.name == "7d")
        #expect(press(.right) == .span && state.span.name == "30d")
        #expect(press(.character("h")) == .span && state.span.name == "7d")
        #expect(press(.tab) == .currency && state.currency == "EUR")
        #expect(press(.tab) == .currency && press(.tab) == .currency && state.currency == "USD")
        #expect(press(.backTab) == .currency && state.currency == "CHF")
        #expect(press(.character("c")) == .none && state.isCandles)
        #expect(press(.character("s")) == .none && state.isInSatoshis)
        #expect(press(.down, hidden: 2) == .none && state.scrolled == 1)
        #expect(press(.pageDown, hidden: 2) == .none && state.scrolled == 2)
        #expect(press(.character("k"), hidden: 1) == .none && state.scrolled == 0, "fewer are hidden now")
        #expect(press(.down) == .none && state.note == "All markets are shown.")
        #expect(press(.character("?")) == .none && state.isHelp && state.note == nil)
        #expect(press(.escape) == .none && !state.isHelp)
        #expect(press(.escape) == .none && state.note == "This key does nothing here: ? shows those that do.")
        #expect(press(.character("p")) == .none && state.isFrozen)
        for key in [Key.tab, .character("1"), .left] {
            #expect(press(key) == .none && state.note == "The picture is frozen: p goes on.")
        }
        #expect(state.span.name == "7d" && state.currency == "CHF")
        #expect(press(.character("p")) == .none && !state.isFrozen)
        #expect(press(.redraw) == .redraw && press(.character("q")) == .quit)
        var single = TopState(currency: "USD")
        single.currencies = ["USD"]
        #expect(single.press(.tab, hidden: 0) == .none && single.note == "The daemon keeps no currency but USD.")
        // A span of the command line has no key.
        var odd = TopState(span: ChartSpan(.last(3 * 86_400), name: "3d"))
        #expect(odd.press(.right, hidden: 0) == .span && odd.span.name == "1h")
    }

    @Test func `the chart is drawn again only when it would differ`() {
        var view = TopView(symbols: .braille, timestamps: Self.timestamps)
        var content = Self.content(.sure)
        let first = view.picture(content, TopState(), in: (80, 24)).lines
        content.now = ObservationTime(
            wall: Timestamp(milliseconds: Self.now.wall.milliseconds + 86_400_000 / 158), boottime: Self.now.boottime)
        let later = view.picture(content, TopState(), in: (80, 24)).lines
        #expect(first != later)
        content.history = ChartCandles(named: nil, span: .hour)
        #expect(
            view.picture(content, TopState(), in: (80, 24)).lines.contains {
                $0.text(isColored: false).hasPrefix("1h: nothing")
            })
    }

    @Test func `the summary has the span, the ticks, and the prices`() {
        var summary = WatchSummary()
        let start = ContinuousClock.now
        #expect(summary.lines(at: start) == [])
        let seen: [(number: Int64, value: Price, freshness: Freshness)] = [
            (41, 68_000, .fresh), (42, 68_100, .fresh), (42, 68_200, .fresh), (43, 68_200, .stale), (1, 67_932, .fresh),
        ]
        var wrong = KindOfDoubt.unconfirmed.state
        wrong.price?.quote.value = 90_000
        for (number, value, freshness) in seen {
            var state = KindOfDoubt.sure.state
            (state.ticks.number, state.ticks.freshness) = (number, freshness)
            state.price?.quote.value = value
            summary.see(state, at: start)
            wrong.ticks.number = number
            summary.see(wrong, at: start)
        }
        #expect(
            summary.lines(at: start + .seconds(240)) == [
                "BTC/USD: 4 ticks in 4 min, 1 missed, 5 prices in doubt; low $67,932.00, high $68,200.00, -0.10 %"
            ])
    }
}
