import BTCPriceCore
import BTCPriceSocket

/// The client of a broker that follows publishers.
struct Following: BrokerClient {
    /// An effect on a publisher's socket and its clients.
    enum Effect: Sendable {
        /// A publisher that was not named has appeared.
        case came(String)
        /// The state of a currency whose messages have this interval, milliseconds.
        case state(publisher: String, StateMessage, interval: Int64)
        /// The publisher does not keep a currency any more.
        case dropped(publisher: String, currency: String)
        case sources(publisher: String, [SourceReport])
        case counted(publisher: String, kind: String)
        /// A publisher's messages are refused from now on, or accepted again if there is no reason.
        case refused(publisher: String, String?)
        /// Two publishers claim the same instance.
        case sameInstance(String, String)
    }

    /// The maximum number of publishers to follow if none is named. Each one needs a socket and a thread.
    static let most = 32
    /// The time without a refusal after which a publisher counts as accepted again, milliseconds. Keeps refusals from filling the journal.
    private static let quarantine: Int64 = 600_000
    /// The maximum size of a list of sources, bytes.
    private static let longestList = 131_072
    /// Stands for the publishers that have not come yet. It is all of them in a topic filter, and no publisher has this name.
    private static let newcomers = "+"

    private struct Publisher {
        var quotes: [String: FollowedQuote] = [:]
        var isOffline = false
        /// When a message was last refused; `nil` if the publisher counts as accepted.
        var lastRefusal: BootTime?
        var limit = MessageLimit()
        /// The instance in its last message.
        var instance: String?
        var hasSharedInstance = false
    }

    /// Includes ``newcomers`` unless publishers are named.
    private var publishers: [String: Publisher] = [:]
    /// The publishers in the topic filters of the connection.
    private var subscribed: [String] = []
    /// Why there is no connection; `nil` while there is one.
    private var failure: String?

    /// - Parameter named: The publishers to follow; all if none is named.
    init(named: [String]) {
        if named.isEmpty { publishers[Self.newcomers] = Publisher() }
        for name in named { add(name) }
    }

    private mutating func add(_ name: String) {
        // A daemon requests dollars before the first message has arrived.
        publishers[name] = Publisher(quotes: ["USD": FollowedQuote(publisher: name, currency: "USD")])
    }

    var will: BrokerMessage? { nil }

    var deadline: BootTime? {
        let ageing = publishers.values.lazy.flatMap { $0.quotes.values.lazy.compactMap(\.freshUntil) }.min()
        let resuming = publishers.values.lazy.compactMap(\.limit.ignoredUntil).min()
        return [ageing.map { $0 + 1 }, resuming].compactMap(\.self).min()
    }

    mutating func connected(at now: ObservationTime) -> [BrokerAction<Effect>] {
        failure = nil
        subscribed = []
        return subscriptions() + explainSilence()
    }

    mutating func disconnected(_ reason: String, at now: ObservationTime) -> [BrokerAction<Effect>] {
        failure = reason
        return explainSilence()
    }

    mutating func received(_ message: BrokerMessage, at now: ObservationTime) -> [BrokerAction<Effect>] {
        guard let level = FleetTopic.publisher(in: message.topic) else { return [] }
        let sender = publishers[level] == nil ? Self.newcomers : level
        if let actions = excess(of: sender, message, at: now) { return actions }
        guard let topic = FleetTopic(message.topic) else { return [] }
        let name = topic.publisher
        var actions: [BrokerAction<Effect>] = []
        if publishers[name] == nil {
            guard publishers.count <= Self.most, case .quote = topic,
                (try? QuoteMessage(payload: message.payload))?.publisher == name
            else { return [] }
            add(name)
            actions.append(.effect(.came(name)))
        }
        switch topic {
        case .quote(_, let currency): return actions + quote(currency, of: name, message, at: now)
        case .status: return actions + status(of: name, message)
        case .sources: return actions + sources(of: name, message, at: now)
        case .homeAssistant: return []
        }
    }

    mutating func proceed(canPublish: Bool, at now: ObservationTime) -> [BrokerAction<Effect>] {
        var actions = change { quote in quote.age(at: now) }
        let resumed = publishers.keys.filter { publishers[$0]?.limit.isOver(at: now.boottime) == true }
        guard !resumed.isEmpty else { return actions }
        for name in resumed { publishers[name]?.limit.resume() }
        if failure == nil { actions += subscriptions() }
        return actions + explainSilence()
    }

    mutating func farewell() -> [BrokerMessage] { [] }

    /// Subscribes to the publishers that are not ignored, and unsubscribes from the others. If one of all is ignored, the others are named.
    private mutating func subscriptions() -> [BrokerAction<Effect>] {
        let heard = publishers.filter { $0.value.limit.ignoredUntil == nil }.keys.sorted()
        let isAll = heard.contains(Self.newcomers) && heard.count == publishers.count
        let wanted = isAll ? [Self.newcomers] : heard.filter { $0 != Self.newcomers }
        let added = wanted.filter { !subscribed.contains($0) }
        defer { subscribed = wanted }
        // Some brokers (RabbitMQ) send what they have kept only to a subscription without a wildcard. It ends at once: with both, other
        // brokers would send each later message twice.
        let kept = added.filter { $0 != Self.newcomers }.map { FleetTopic.quote(publisher: $0, currency: "USD").text }
        return kept.flatMap { [.subscribe($0), .unsubscribe($0)] }
            + FleetTopic.filters(of: added).map { .subscribe($0) }
            + FleetTopic.filters(of: subscribed.filter { !wanted.contains($0) }).map { .unsubscribe($0) }
    }

    // MARK: - Messages

    /// Counts a message before it is read.
    /// - Returns: What to do instead of reading it, if its publisher sends too many or is not followed; otherwise `nil`.
    private mutating func excess(
        of name: String, _ message: BrokerMessage, at now: ObservationTime
    ) -> [BrokerAction<Effect>]? {
        guard let publisher = publishers[name] else { return [] }
        let ignored = BrokerAction<Effect>.effect(.counted(publisher: name, kind: "ignored"))
        // The broker had sent it before it unsubscribed the follower.
        if publisher.limit.ignoredUntil != nil { return [ignored] }
        let isWithin = publishers[name]?.limit.take(message.payload.count, at: now.boottime)
        guard isWithin == false else { return nil }
        return [ignored] + refused(name, publisher.limit.reason, at: now) + subscriptions() + explainSilence(of: name)
    }

    private mutating func quote(
        _ currency: String, of name: String, _ message: BrokerMessage, at now: ObservationTime
    ) -> [BrokerAction<Effect>] {
        guard Currency(rawValue: currency) != nil else { return [] }
        var quote = publishers[name]?.quotes[currency] ?? FollowedQuote(publisher: name, currency: currency)
        guard !message.payload.isEmpty else { return dropped(currency, of: name) }
        do throws(FollowedQuote.Refusal) {
            let read = try quote.decoded(message.payload)
            let lateness = message.isRetained ? nil : FollowedQuote.lateness(of: read, at: now)
            let isLive = !message.isRetained && lateness == nil
            // A quote shows that the publisher is online, whatever its status is.
            if isLive { publishers[name]?.isOffline = false }
            quote.expect(silence(of: name, lateness: lateness))
            let isNew = try quote.read(read, isLive: isLive, at: now)
            publishers[name]?.quotes[currency] = quote
            guard isNew else { return [] }
            return refused(name, nil, at: now) + claimed(quote.claimedInstance, by: name) + [
                .effect(.counted(publisher: name, kind: lateness == nil ? "ok" : "late")),
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

    /// A message without content removes a retained one (MQTT 3.1.1, section 3.3.1.3).
    private mutating func dropped(_ currency: String, of name: String) -> [BrokerAction<Effect>] {
        guard var quote = publishers[name]?.quotes[currency], !quote.isForgotten else { return [] }
        quote.forget("\(name) does not keep this currency")
        publishers[name]?.quotes[currency] = quote
        return [
            .effect(
                currency == "USD"
                    ? .state(publisher: name, quote.state, interval: quote.interval)
                    : .dropped(publisher: name, currency: currency))
        ]
    }

    private mutating func refused(
        _ name: String, _ reason: String?, at now: ObservationTime
    ) -> [BrokerAction<Effect>] {
        let last = publishers[name]?.lastRefusal
        let isLongAgo = last.map { now.boottime - $0 >= Self.quarantine }
        if reason == nil {
            guard isLongAgo == true else { return [] }
            publishers[name]?.lastRefusal = nil
        } else {
            publishers[name]?.lastRefusal = now.boottime
            guard isLongAgo != false else { return [] }
        }
        return [.effect(.refused(publisher: name == Self.newcomers ? "unknown publishers" : name, reason))]
    }

    /// Tells once that a publisher has the instance of another one.
    private mutating func claimed(_ instance: String?, by name: String) -> [BrokerAction<Effect>] {
        guard publishers[name]?.instance != instance else { return [] }
        publishers[name]?.instance = instance
        let other = publishers.filter { $0.key != name && $0.value.instance == instance }.keys.min()
        guard let other, publishers[name]?.hasSharedInstance == false else { return [] }
        publishers[name]?.hasSharedInstance = true
        return [.effect(.sameInstance(other, name))]
    }

    private mutating func status(of name: String, _ message: BrokerMessage) -> [BrokerAction<Effect>] {
        guard message.payload.count <= QuoteMessage.longest, let json = try? JSONValue(parsing: message.payload[...]),
            let state = json.objectValue?["state"]?.stringValue
        else { return [] }
        publishers[name]?.isOffline = state == "offline"
        return explainSilence(of: name)
    }

    private mutating func sources(
        of name: String, _ message: BrokerMessage, at now: ObservationTime
    ) -> [BrokerAction<Effect>] {
        let malformed = BrokerAction<Effect>.effect(.counted(publisher: name, kind: "malformed"))
        guard message.payload.count <= Self.longestList, let json = try? JSONValue(parsing: message.payload[...]),
            let elements = json["sources"]?.arrayValue
        else { return refused(name, "its list of sources is not valid", at: now) + [malformed] }
        let sources = elements.compactMap { try? SourceReport(json: $0) }
        let shown = BrokerAction<Effect>.effect(.sources(publisher: name, sources))
        guard sources.count < elements.count else { return [shown] }
        let invalid = "\(elements.count - sources.count) of \(elements.count)"
        return refused(name, "\(invalid) entries in its list of sources are not valid", at: now) + [malformed, shown]
    }

    // MARK: - Silence

    /// Why there is no message from a publisher.
    /// - Parameter lateness: How long ago the newest one was published if that is too long, milliseconds.
    private func silence(of name: String, lateness: Int64? = nil) -> String {
        if let failure { return failure }
        if let limit = publishers[name]?.limit, limit.ignoredUntil != nil { return limit.reason }
        if publishers[name]?.isOffline == true { return "\(name) is offline" }
        guard let lateness else { return "no message from \(name)" }
        return "its message was published \(lateness / 1000) s ago: a broker has kept it, or a clock is wrong"
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
                guard var quote = publishers[name]?.quotes[currency], !quote.isForgotten else { continue }
                let isChanged = body(&quote)
                publishers[name]?.quotes[currency] = quote
                if isChanged { actions.append(.effect(.state(publisher: name, quote.state, interval: quote.interval))) }
            }
        }
        return actions
    }
}

/// Limits the messages of a publisher, since all share one connection: above it, one is ignored, longer each time. A pure value.
struct MessageLimit: Sendable {
    /// Three times what a publisher of all currencies sends with ticks of a second.
    private static let traffic = TrafficLimit(messages: 500, bytes: 1 << 20)
    /// The time after which a publisher that was ignored is treated like any other, milliseconds.
    private static let forgiven: Int64 = 600_000

    private var traffic = Self.traffic
    private var backoff = Backoff(from: .seconds(10), to: .seconds(300))
    private var end: BootTime?
    /// Until when the publisher is ignored; `nil` if it is not.
    private(set) var ignoredUntil: BootTime?

    /// Why a publisher is ignored.
    var reason: String { traffic.excessText }

    /// Counts a message, and ignores the publisher from now on if it sends too much.
    /// - Returns: Whether the message may be read.
    mutating func take(_ bytes: Int, at now: BootTime) -> Bool {
        if traffic.count(bytes: bytes, at: now) { return true }
        if let end, now - end >= Self.forgiven { backoff.reset() }
        ignoredUntil = now + backoff.next().wholeMilliseconds
        end = ignoredUntil
        return false
    }

    /// Whether the publisher has been ignored for long enough.
    func isOver(at now: BootTime) -> Bool { ignoredUntil.map { $0 <= now } ?? false }

    mutating func resume() {
        ignoredUntil = nil
        traffic = Self.traffic
    }
}
