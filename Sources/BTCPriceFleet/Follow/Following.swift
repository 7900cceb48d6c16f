import BTCPriceAPI
import BTCPriceCore
import Varlink

/// The client of a broker that follows publishers.
struct Following: BrokerClient {
    /// An effect on a publisher's socket and its clients.
    enum Effect: Sendable {
        /// A publisher that was not named has appeared.
        case came(String)
        /// The state of a currency whose messages have this interval, milliseconds.
        case state(publisher: String, StateMessage, interval: Int64)
        case sources(publisher: String, [SourceReport])
        case counted(publisher: String, kind: String)
        /// A publisher's messages are refused from now on, or accepted again if there is no reason.
        case refused(publisher: String, String?)
    }

    /// The maximum number of publishers to follow if none is named. Each one needs a socket and a thread.
    static let most = 32
    /// The time without a refusal after which a publisher counts as accepted again, milliseconds. Keeps refusals from filling the journal.
    private static let quarantine: Int64 = 600_000
    /// The maximum size of a list of sources, bytes.
    private static let longestList = 131_072

    private struct Publisher {
        var quotes: [String: FollowedQuote] = [:]
        var isOffline = false
        /// When a message was last refused, `CLOCK_BOOTTIME` in milliseconds; `nil` if the publisher counts as accepted.
        var lastRefusal: Int64?
    }

    private let named: [String]
    private var publishers: [String: Publisher] = [:]
    /// Why there is no connection; `nil` while there is one.
    private var failure: String?

    /// - Parameter named: The publishers to follow; all if none is named.
    init(named: [String]) {
        self.named = named
        for name in named { add(name) }
    }

    private mutating func add(_ name: String) {
        // A daemon requests dollars before the first message has arrived.
        publishers[name] = Publisher(quotes: ["USD": FollowedQuote(publisher: name, currency: "USD")])
    }

    var will: BrokerMessage? { nil }

    var deadline: Int64? {
        publishers.values.lazy.flatMap { $0.quotes.values.lazy.compactMap(\.freshUntil) }.min().map { $0 + 1 }
    }

    mutating func connected(at now: ObservationTime) -> [BrokerAction<Effect>] {
        failure = nil
        return FleetTopic.filters(of: named).map { .subscribe($0) } + explainSilence()
    }

    mutating func disconnected(_ reason: String, at now: ObservationTime) -> [BrokerAction<Effect>] {
        failure = reason
        return explainSilence()
    }

    mutating func received(_ message: BrokerMessage, at now: ObservationTime) -> [BrokerAction<Effect>] {
        guard let topic = FleetTopic(message.topic) else { return [] }
        let name = topic.publisher
        var actions: [BrokerAction<Effect>] = []
        if publishers[name] == nil {
            guard named.isEmpty, publishers.count < Self.most, case .quote = topic,
                (try? QuoteMessage(payload: message.payload))?.publisher == name
            else { return [] }
            add(name)
            actions.append(.effect(.came(name)))
        }
        switch topic {
        case .quote(_, let currency): return actions + quote(currency, of: name, message, at: now)
        case .status: return actions + status(of: name, message)
        case .sources: return actions + sources(of: name, message)
        case .homeAssistant: return []
        }
    }

    mutating func proceed(canPublish: Bool, at now: ObservationTime) -> [BrokerAction<Effect>] {
        change { quote in quote.age(at: now) }
    }

    mutating func farewell() -> [BrokerMessage] { [] }

    // MARK: - Messages

    private mutating func quote(
        _ currency: String, of name: String, _ message: BrokerMessage, at now: ObservationTime
    ) -> [BrokerAction<Effect>] {
        guard Currency(rawValue: currency) != nil else { return [] }
        var quote = publishers[name]?.quotes[currency] ?? FollowedQuote(publisher: name, currency: currency)
        // A quote shows that the publisher is online, whatever its status is.
        if !message.isRetained { publishers[name]?.isOffline = false }
        quote.expect(silence(of: name))
        do throws(FollowedQuote.Refusal) {
            let isNew = try quote.read(message.payload, isRetained: message.isRetained, at: now)
            publishers[name]?.quotes[currency] = quote
            guard isNew else { return [] }
            return refused(name, nil, at: now) + [
                .effect(.counted(publisher: name, kind: "ok")),
                .effect(.state(publisher: name, quote.state, interval: quote.interval)),
            ]
        } catch {
            var actions =
                refused(name, error.description, at: now) + [.effect(.counted(publisher: name, kind: error.kind))]
            if quote.silent(because: error.description) {
                actions.append(.effect(.state(publisher: name, quote.state, interval: quote.interval)))
            }
            // A currency whose messages were all refused is not stored.
            if publishers[name]?.quotes[currency] != nil { publishers[name]?.quotes[currency] = quote }
            return actions
        }
    }

    private mutating func refused(
        _ name: String, _ reason: String?, at now: ObservationTime
    ) -> [BrokerAction<Effect>] {
        let last = publishers[name]?.lastRefusal
        if reason == nil {
            guard let last, now.boottime - last >= Self.quarantine else { return [] }
            publishers[name]?.lastRefusal = nil
        } else {
            publishers[name]?.lastRefusal = now.boottime
            guard last == nil else { return [] }
        }
        return [.effect(.refused(publisher: name, reason))]
    }

    private mutating func status(of name: String, _ message: BrokerMessage) -> [BrokerAction<Effect>] {
        guard message.payload.count <= QuoteMessage.longest, let json = try? JSONValue(parsing: message.payload[...]),
            let state = json.objectValue?["state"]?.stringValue
        else { return [] }
        publishers[name]?.isOffline = state == "offline"
        return explainSilence(of: name)
    }

    private func sources(of name: String, _ message: BrokerMessage) -> [BrokerAction<Effect>] {
        guard message.payload.count <= Self.longestList, let json = try? JSONValue(parsing: message.payload[...]),
            let sources = try? json.objectValue?.list(
                "sources", { (source) throws(JSONFieldError) in try SourceReport(json: source) })
        else { return [.effect(.counted(publisher: name, kind: "malformed"))] }
        return [.effect(.sources(publisher: name, sources))]
    }

    // MARK: - Silence

    /// Why there is no message from a publisher.
    private func silence(of name: String) -> String {
        if let failure { return failure }
        return publishers[name]?.isOffline == true ? "\(name) is offline" : "no message from \(name)"
    }

    private mutating func explainSilence(of only: String? = nil) -> [BrokerAction<Effect>] {
        let reasons = publishers.keys.reduce(into: [:]) { $0[$1] = silence(of: $1) }
        return change(of: only) { quote in quote.silent(because: reasons[quote.publisher] ?? "") }
    }

    /// - Parameter body: Changes a quote, and returns whether clients must be notified.
    private mutating func change(
        of only: String? = nil, _ body: (inout FollowedQuote) -> Bool
    ) -> [BrokerAction<Effect>] {
        var actions: [BrokerAction<Effect>] = []
        for name in publishers.keys where only == nil || name == only {
            for currency in publishers[name]?.quotes.keys.sorted() ?? [] {
                guard var quote = publishers[name]?.quotes[currency] else { continue }
                let isChanged = body(&quote)
                publishers[name]?.quotes[currency] = quote
                if isChanged { actions.append(.effect(.state(publisher: name, quote.state, interval: quote.interval))) }
            }
        }
        return actions
    }
}
