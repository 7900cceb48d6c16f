import BTCPriceCore
import TestSupport
import Testing
import Varlink

@testable import BTCPriceAPI

/// Compares the interface's description with the messages that are sent and read.
@Suite struct DefinitionTests {
    private let interface: InterfaceDefinition

    init() throws {
        interface = try InterfaceDefinition(parsing: PriceInterface.description)
    }

    private static let time = Timestamp(milliseconds: 1_724_596_200_123)
    private static let state = StateMessage(
        instance: "0123456789abcdef",
        state: PriceState(
            tick: 17, freshness: .stale,
            quote: PriceQuote(
                value: Price("75500.99") ?? 0, currency: "USD", timestamp: time, source: "binance",
                market: "BTC/USDT"),
            observedBoottime: 5_000_000, confirmation: .single, failure: "paused"))
    private static let now = ObservationTime(wall: time, boottime: 5_000_000)
    private static let kept = Skipped(
        source: "binance",
        reason: .cooldown(
            SourceCooldown(
                reason: .rateLimited("HTTP 418", retryAfter: .seconds(9)), since: now, until: now,
                consecutiveFailures: 1)))
    private static let status = StatusMessage(
        version: "1.2.3", pid: 12, uptime: 34, price: state, since: time, ticking: .idle,
        ticks: StatusMessage.Ticks(interval: 1000, done: 17, failed: 2, skipped: 1),
        store: StatusMessage.Store(
            runtimeDirectory: "/run/x", stateDirectory: "/var/lib/x", synced: time, failure: "cannot write",
            heldCandles: 7, historyFailure: "disk full", candleFailure: "refused"),
        clients: StatusMessage.Clients(
            connections: 3, users: 2, watchers: 1, calls: 99,
            limits: [StatusMessage.Clients.Limit(name: "connections", most: 100, hits: 4)]))
    private static let source = SourceReport(
        name: "binance", order: 1, market: "BTC/USDT", address: "https://api.binance.com", use: .limited,
        lastSuccess: time, lastFailure: SourceReport.Failure(at: time, kind: "rate-limited", reason: "HTTP 429"),
        latency: SourceReport.Latency(p50: 1, p90: 2, p99: 3, answers: 4), cooldownUntil: time, requests: 9,
        limits: [SourceReport.Limit(requests: 10, period: 1000, made: 3)])

    private func fields(_ type: String) throws -> [InterfaceDefinition.Field] {
        guard case .type(.structure(let fields))? = interface.member(type)?.kind else { throw Missing(name: type) }
        return fields
    }

    struct Missing: Error { let name: String }

    @Test func `the definition is in its canonical form`() {
        #expect(interface.description == PriceInterface.description)
    }

    @Test func `every member and every field of a type is documented`() throws {
        for definition in [PriceInterface.description, HistoryInterface.description] {
            for member in try InterfaceDefinition(parsing: definition).members {
                #expect(!member.documentation.isEmpty, "\(member.name)")
                guard case .type(.structure(let fields)) = member.kind else { continue }
                for field in fields { #expect(!field.documentation.isEmpty, "\(member.name).\(field.name)") }
            }
        }
    }

    @Test func `each message conforms to the definition, and is read back unchanged`() throws {
        try hold(Self.state, "State", \.json, StateMessage.init(json:))
        try hold(Self.status, "Status", \.json, StatusMessage.init(json:))
        var source = Self.source
        source.claim = MarketClaim(low: 68_763, high: 69_039, isMember: true, contradictedBy: ["kraken", "okx"])
        try hold(source, "Source", \.json, SourceReport.init(json:))
        // Without the optional fields.
        try hold(StateMessage(instance: "x", state: .empty()), "State", \.json, StateMessage.init(json:))
        let bare = SourceReport(name: "a", order: 1, market: "m", address: "u", use: .untried)
        try hold(bare, "Source", \.json, SourceReport.init(json:))
        var status = Self.status
        status.store.synced = nil
        status.store.failure = nil
        status.store.heldCandles = nil
        status.store.historyFailure = nil
        status.store.candleFailure = nil
        status.price.state = .empty()
        try hold(status, "Status", \.json, StatusMessage.init(json:))
    }

    private static let candle = Candle(
        start: 1_724_596_200, open: 3, high: 5, low: 2, close: 4, ticks: 60, fresh: 58, origin: "kraken")
    private static let day = PriceDay(
        since: time, open: 100, high: 130, low: 90, close: 99, isBackfilled: true)

    @Test func `the history's definition is in its canonical form, and its messages and replies conform to it`()
        throws
    {
        let history = try InterfaceDefinition(parsing: HistoryInterface.description)
        #expect(history.description == HistoryInterface.description)
        for (type, json) in [("Candle", Self.candle.json), ("Day", Self.day.json)] {
            guard case .type(.structure(let fields))? = history.member(type)?.kind else { throw Missing(name: type) }
            try history.check(json.value, fields)
            #expect(json.members.map(\.name) == fields.map(\.name))
        }
        // Both interfaces have the same type.
        #expect(try fields("Day").map(\.name) == Self.day.json.members.map(\.name))
        try hold(
            StateMessage(
                instance: "x",
                state: PriceState(
                    tick: 1, freshness: .none, quote: nil, observedBoottime: nil, confirmation: nil, failure: nil,
                    day: Self.day)), "State", \.json, StateMessage.init(json:))
        let known = PriceAt(Self.candle, .minute, at: 1_724_596_201)
        for (method, reply) in [
            ("GetHistory", Reply.history([Self.candle], of: "USD", .hour, next: Self.time)),
            ("GetHistory", .history([], of: "USD", .day, next: nil)), ("GetPriceAt", .priceAt(known, in: "USD")),
            ("GetPriceAt", .priceAt(nil, in: "USD")), ("GetDay", .day(Self.day, of: "EUR")),
            ("GetDay", .day(nil, of: "EUR")),
        ] {
            guard case .method(_, let fields)? = history.member(method)?.kind else { throw Missing(name: method) }
            try history.check(reply.parameters, fields)
        }
        #expect(try PriceAt(json: Reply.priceAt(known, in: "USD").parameters) == known)
        for (error, reply) in [
            ("UnknownCurrency", Reply.noSuchCurrency("SEK", kept: [.usd])), ("Disabled", .historyDisabled),
            ("Unavailable", .historyUnavailable("full")),
        ] {
            guard case .error(let fields)? = history.member(error)?.kind else { throw Missing(name: error) }
            try history.check(reply.parameters, fields)
            #expect(reply.error == "\(history.name).\(error)")
        }
        for member in history.members {
            guard case .method = member.kind else { continue }
            let parameters: JSONObject = member.name == "GetPriceAt" ? ["time": .integer(0)] : [:]
            let call = Call(method: "\(HistoryInterface.name).\(member.name)", parameters: parameters)
            #expect(throws: Never.self, "\(member.name)") { try PriceCall.read(call)?.get() }
        }
    }

    private func hold<Message: Equatable>(
        _ message: Message, _ type: String, _ json: (Message) -> JSONObject, _ read: (JSONValue) throws -> Message
    ) throws {
        let (object, fields) = (json(message), try fields(type))
        try interface.check(object.value, fields)
        #expect(object.members.map(\.name) == fields.map(\.name), "\(type): in the definition's order")
        #expect(try read(object.value) == message)
        // The letter follows from the name, so a reader does not need it.
        for field in fields where field.name != "letter" {
            var without = object
            without[field.name] = nil
            if case .optional = field.type {
                #expect(throws: Never.self, "\(type).\(field.name)") { try read(without.value) }
            } else {
                #expect(throws: JSONFieldError.self, "\(type).\(field.name)") { try read(without.value) }
            }
            var wrong = object
            wrong[field.name] = .number("1.5")
            // An invalid value next to the price does not remove the price.
            if type == "State", ["consensus", "uncertainty", "day", "ticking", "boottime"].contains(field.name) {
                #expect(throws: Never.self, "\(type).\(field.name)") { try read(wrong.value) }
            } else {
                #expect(throws: JSONFieldError.self, "\(type).\(field.name)") { try read(wrong.value) }
            }
        }
    }

    @Test func `the replies conform to the methods`() throws {
        let replies: [(String, Reply)] = [
            ("GetPrice", .state(Self.state)), ("WatchPrice", .state(Self.state, continues: true)),
            ("GetStatus", .status(Self.status)), ("ListSources", .sources([Self.source])), ("Pause", Reply()),
            (
                "GetMetrics",
                .metrics([
                    MetricFamily(
                        "x", .gauge, "X.", samples: [.init(labels: [.init("quote", "USD")], value: "1")])
                ])
            ),
            ("Resume", Reply()), ("Retry", .retried(["kraken"], kept: [Self.kept], now: Self.now)),
        ]
        for (method, reply) in replies {
            guard case .method(_, let fields)? = interface.member(method)?.kind else { throw Missing(name: method) }
            try interface.check(reply.parameters, fields)
        }
        let failed = Reply.fetchFailed(FetchFailure(failures: []))
        guard case .error(let fields)? = interface.member("FetchFailed")?.kind else {
            throw Missing(name: "FetchFailed")
        }
        try interface.check(failed.parameters, fields)
        #expect(failed.error == "\(interface.name).FetchFailed")
        let old = Reply.tooOld(Self.state.state, at: 5_002_000)
        guard case .error(let parameters)? = interface.member("TooOld")?.kind else { throw Missing(name: "TooOld") }
        try interface.check(old.parameters, parameters)
        #expect(old.error == "\(interface.name).TooOld")
        #expect(old.parameters.text.elementsEqual(#"{"ageMs":2000,"reason":"paused"}"#.utf8))
    }

    @Test func `every method has a call, and every call has a method`() throws {
        let methods = interface.members.filter { if case .method = $0.kind { true } else { false } }.map(\.name)
        for method in methods {
            let call = Call(method: "\(PriceInterface.name).\(method)", more: method == "WatchPrice")
            #expect(throws: Never.self, "\(method)") { try PriceCall.read(call)?.get() }
        }
        let calls: [PriceCall] = [
            .getPrice(.noCache, "EUR", maxAge: 5000), .watchPrice(["USD", "EUR"], maxAge: 5000), .listCurrencies,
            .getStatus, .listSources("EUR"),
            .getMetrics, .pause, .resume, .retry("kraken"),
        ]
        for call in calls {
            let name = call.call.name
            #expect(call.call.interface.map(String.init) == interface.name)
            guard case .method(let parameters, _)? = interface.member(name)?.kind else {
                throw Missing(name: name)
            }
            try interface.check(call.call.parameters, parameters)
            #expect(try PriceCall.read(call.call)?.get() == call)
        }
        #expect(methods.count == calls.count)
    }

    @Test func `every enumeration has the cases of its type`() throws {
        #expect(try cases("State", "freshness") == Freshness.allCases.map(\.rawValue))
        #expect(try cases("State", "confirmation") == Confirmation.allCases.map(\.rawValue))
        #expect(try cases("Status", "ticking") == Ticking.allCases.map(\.rawValue))
        #expect(try cases("State", "ticking") == Ticking.allCases.map(\.rawValue))
        #expect(try cases("Source", "use") == SourceReport.Use.allCases.map(\.rawValue))
        guard case .method(let parameters, _)? = interface.member("GetPrice")?.kind else {
            throw Missing(name: "GetPrice")
        }
        #expect(try cases(of: parameters[0].type) == CachePolicy.allCases.map(\.rawValue))
    }

    @Test func `the letters are documented in the order of their names`() throws {
        let letters = SourceReport.Use.allCases.map { $0.letter == " " ? "(a space)" : String($0.letter) }
        let field = try #require(try fields("Source").first { $0.name == "letter" })
        #expect(field.documentation.joined().hasSuffix(letters.joined(separator: " ")))
    }

    private func cases(_ type: String, _ field: String) throws -> [String] {
        guard let found = try fields(type).first(where: { $0.name == field }) else { throw Missing(name: field) }
        return try cases(of: found.type)
    }

    private func cases(of type: InterfaceDefinition.FieldType) throws -> [String] {
        switch type {
        case .enumeration(let cases): return cases
        case .optional(let type): return try cases(of: type)
        default: throw Missing(name: "\(type)")
        }
    }
}
