import BTCPriceCore
import TestSupport
import Testing

@testable import BTCPriceSocket

/// Reads every message back, and compares names in the code with the definitions. 070-varlink.py compares the daemon's replies with them.
@Suite struct DefinitionTests {
    private static let time = Timestamp(milliseconds: 1_724_596_200_123)
    private static let state = StateMessage(
        instance: "0123456789abcdef",
        state: PriceState(
            tick: 17, freshness: .stale,
            quote: PriceQuote(
                value: Price("75500.99") ?? 0, currency: "USD", timestamp: time, source: "binance",
                market: "BTC/USDT"),
            observedBoottime: 5_000_000, confirmation: .single, failure: "paused",
            day: PriceDay(since: time, open: 100, high: 130, low: 90, close: 99, isBackfilled: true)),
        boottime: 5_001_000)
    private static let status = StatusMessage(
        version: "1.2.3", pid: 12, uptime: 34, price: state, since: time, ticking: .idle,
        ticks: StatusMessage.Ticks(interval: 1000, done: 17, failed: 2, skipped: 1),
        store: StatusMessage.Store(
            runtimeDirectory: "/run/x", stateDirectory: "/var/lib/x", synced: time, failure: "cannot write",
            heldCandles: 7, historyFailure: "disk full", candleFailure: "refused"),
        clients: StatusMessage.Clients(
            connections: 3, users: 2, watchers: 1, calls: 99,
            limits: [StatusMessage.Clients.Limit(name: "connections", most: 100, hits: 4)]),
        clock: StatusMessage.Clock(.differs(ClockDifference(milliseconds: -7_200_000, venues: 3, known: 4))))
    private static let source = SourceReport(
        name: "binance", order: 1, market: "BTC/USDT", address: "https://api.binance.com", use: .limited,
        lastSuccess: time,
        lastFailure: SourceReport.Failure(at: time, kind: "rate-limited", reason: "HTTP 429", cause: .proxy),
        latency: SourceReport.Latency(p50: 1, p90: 2, p99: 3, answers: 4), cooldownUntil: time, requests: 9,
        limits: [SourceReport.Limit(requests: 10, period: 1000, made: 3)])

    @Test func `each message is read back, and without what may be null; a missing or wrong field is refused`() throws {
        let empty = StateMessage(instance: "x", state: .empty())
        var state = Self.state
        state.state.ticks.ticking = .idle
        // An invalid value next to the price does not remove the price.
        try hold(
            state, bare: empty, optional: ["currency"],
            lenient: ["consensus", "uncertainty", "day", "ticking", "boottime"], \.json, StateMessage.init(json:))
        var source = Self.source
        source.claim = MarketClaim(low: 68_763, high: 69_039, isMember: true, contradictedBy: ["kraken", "okx"])
        source.clockDifference = -90_000
        // The letter follows from the name, so a reader does not need it.
        try hold(
            source, bare: SourceReport(name: "a", order: 1, market: "m", address: "u", use: .untried),
            optional: ["elsewhere", "letter", "switchedOff"], lenient: ["letter"], \.json, SourceReport.init(json:))
        var status = Self.status
        status.store.synced = nil
        status.store.failure = nil
        status.store.heldCandles = nil
        status.store.historyFailure = nil
        status.store.candleFailure = nil
        status.clock = StatusMessage.Clock()
        status.price = empty
        try hold(
            Self.status, bare: status, optional: ["elsewhere", "clock", "sourcesOff"], \.json, StatusMessage.init(json:)
        )
    }

    /// - Parameters:
    ///   - bare: A message in which every field is null that can be.
    ///   - optional: The other fields that may be absent.
    ///   - lenient: The fields whose wrong value is ignored.
    private func hold<Message: Equatable>(
        _ message: Message, bare: Message, optional: Set<String>, lenient: Set<String> = [],
        _ json: (Message) -> JSONObject, _ read: (JSONValue) throws -> Message
    ) throws {
        let object = json(message)
        #expect(try read(object.value) == message)
        #expect(try read(json(bare).value) == bare)
        for (name, value) in json(bare).members.map({ ($0.name, $0.value) }) {
            var without = object
            without[name] = nil
            if value == .null || optional.contains(name) {
                #expect(throws: Never.self, "\(name)") { try read(without.value) }
            } else {
                #expect(throws: JSONFieldError.self, "\(name)") { try read(without.value) }
            }
            var wrong = object
            wrong[name] = .number("1.5")
            if lenient.contains(name) {
                #expect(throws: Never.self, "\(name)") { try read(wrong.value) }
            } else {
                #expect(throws: JSONFieldError.self, "\(name)") { try read(wrong.value) }
            }
        }
    }

    @Test func `every enumeration and every error is in the definition`() {
        func cases<Value: CaseIterable & RawRepresentable<String>>(_ type: Value.Type) -> String {
            "(\(type.allCases.map(\.rawValue).joined(separator: ", ")))"
        }
        let letters = SourceReport.Use.allCases.map { $0.letter == " " ? "(a space)" : String($0.letter) }
        for part in [
            "freshness: \(cases(Freshness.self))", "confirmation: ?\(cases(Confirmation.self))",
            "ticking: \(cases(Ticking.self))", "ticking: ?\(cases(Ticking.self))",
            "use: \(cases(SourceReport.Use.self))",
            "in that order: \(letters.joined(separator: " "))\n  letter: string",
            "verdict: ?\(cases(MarketVerdict.self))", "way: ?\(cases(PriceWay.self))",
            "kind: \(cases(MetricFamily.Kind.self))", "cachePolicy: ?\(cases(CachePolicy.self))",
            "updates: ?\(cases(WatchUpdates.self))",
        ] {
            #expect(PriceInterface.description.contains(part), "\(part)")
        }
        #expect(HistoryInterface.description.contains("step: \(cases(Candle.Step.self))"))
        for error in [
            PriceInterface.unknownCurrency, PriceInterface.unknownSource, PriceInterface.fetchFailed,
            PriceInterface.tooOld, PriceInterface.busy,
        ] {
            let name = error.dropFirst(PriceInterface.name.count + 1)
            #expect(PriceInterface.description.contains("\nerror \(name) ("))
        }
        for error in [HistoryInterface.unknownCurrency, HistoryInterface.disabled, HistoryInterface.unavailable] {
            let name = error.dropFirst(HistoryInterface.name.count + 1)
            #expect(HistoryInterface.description.contains("\nerror \(name) ("))
        }
    }
}
