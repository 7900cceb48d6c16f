import BTCPriceCore
import BTCPriceSocket
import Synchronization

/// The news of the daemon that is not published yet. Only the newest of each kind is kept.
final class DaemonNews: Sendable {
    struct Contents: Sendable {
        /// The newest state of each currency, in the order in which they arrived.
        var states: [(message: StateMessage, interval: Int64)] = []
        var sources: [SourceReport]?
        /// The currencies that the daemon keeps.
        var kept: [String]?
        /// Whether the daemon can be reached; `nil` if that has not changed.
        var daemonIsReachable: Bool?
    }

    private let contents = Mutex(Contents())

    /// - Parameter boottime: The time of its arrival. The price is current for as long as a follower would take it for current.
    func put(_ message: StateMessage, interval: Int64, at boottime: BootTime) {
        var message = message
        message.state.ticks.freshUntil = boottime + FollowedQuote.silentIntervals * interval
        contents.withLock { [message] contents in
            contents.states.removeAll { $0.message.state.currency == message.state.currency }
            contents.states.append((message, interval))
            contents.daemonIsReachable = true
        }
    }

    func put(kept: [String]) { contents.withLock { $0.kept = kept } }

    func put(_ sources: [SourceReport]) { contents.withLock { $0.sources = sources } }

    func daemonIsGone() { contents.withLock { $0.daemonIsReachable = false } }

    func take() -> Contents {
        contents.withLock { contents in
            defer { contents = Contents() }
            return contents
        }
    }
}

/// The client of a broker that publishes the prices and sources of a daemon.
struct Publishing: BrokerClient {
    typealias Effect = Never

    /// How long to look for messages of an earlier start that the broker has kept, milliseconds.
    private static let look: Int64 = 5000
    /// The minimum time between two repetitions for Home Assistant, milliseconds: who may publish could request them without end.
    private static let repetition: Int64 = 5000

    private let name: String
    private let bootID: String
    private let isForHomeAssistant: Bool
    private let news: DaemonNews
    private var sequence: Int64 = 0
    private var daemonIsThere = false
    /// Whether the broker may have none of the messages.
    private var mustRepeat = false
    /// The newest state of each currency, in the order in which the currencies first arrived.
    private var newest: [(message: StateMessage, interval: Int64)] = []
    /// When Home Assistant last got a value, by currency.
    private var lastValue: [String: BootTime] = [:]
    private var isDescribed = false
    /// The currencies that the daemon keeps; `nil` before it has said so.
    private var kept: [String]?
    /// The currencies of messages that the broker has kept.
    private var found: Set<String> = []
    /// Until when to look for them; `nil` if that is over.
    private var lookEnds: BootTime?
    /// The currencies that are not kept any more.
    private var dropped: Set<String> = []
    private var lastRepetition: BootTime?
    /// When to repeat everything for Home Assistant, which has started; `nil` if it has not.
    private var nextRepetition: BootTime?

    init(name: String, bootID: String, isForHomeAssistant: Bool, news: DaemonNews) {
        self.name = name
        self.bootID = bootID
        self.isForHomeAssistant = isForHomeAssistant
        self.news = news
    }

    var will: BrokerMessage? { status(isOnline: false, at: nil) }

    /// The daemon's news wake the loop.
    var deadline: BootTime? { [lookEnds, nextRepetition].compactMap(\.self).min() }

    mutating func connected(at now: ObservationTime) -> [BrokerAction<Never>] {
        lastValue = [:]
        // A broker that was restarted may have lost the retained messages.
        mustRepeat = true
        found = []
        lookEnds = now.boottime + Self.look
        let birth: [BrokerAction<Never>] = isForHomeAssistant ? [.subscribe(HomeAssistantDiscovery.birth)] : []
        return [.subscribe(FleetTopic.quotes(of: name))] + birth
    }

    mutating func disconnected(_ reason: String, at now: ObservationTime) -> [BrokerAction<Never>] { [] }

    mutating func received(_ message: BrokerMessage, at now: ObservationTime) -> [BrokerAction<Never>] {
        if message.topic == HomeAssistantDiscovery.birth, message.payload.elementsEqual("online".utf8) {
            nextRepetition = max(now.boottime, lastRepetition.map { $0 + Self.repetition } ?? now.boottime)
        } else if case .quote(name, let currency)? = FleetTopic(message.topic), Currency(rawValue: currency) != nil,
            !message.payload.isEmpty
        {
            found.insert(currency)
        }
        return []
    }

    mutating func proceed(canPublish: Bool, at now: ObservationTime) -> [BrokerAction<Never>] {
        var actions: [BrokerAction<Never>] = []
        if let end = lookEnds, now.boottime >= end {
            lookEnds = nil
            actions.append(.unsubscribe(FleetTopic.quotes(of: name)))
        }
        if let time = nextRepetition, now.boottime >= time {
            (nextRepetition, lastRepetition, mustRepeat) = (nil, now.boottime, true)
        }
        // A slow broker gets only the newest news, after it has taken the earlier messages.
        return canPublish ? actions + messages(at: now).map { .publish($0) } : actions
    }

    private mutating func messages(at now: ObservationTime) -> [BrokerMessage] {
        let contents = news.take()
        kept = contents.kept ?? kept
        // A state that came before a reload may be of a currency that is not kept any more.
        let states = contents.states.filter { kept?.contains($0.message.state.currency) ?? true }
        for (message, interval) in states {
            let index = newest.firstIndex { $0.message.state.currency == message.state.currency }
            // Home Assistant does not know this currency, or this interval.
            if index.map({ newest[$0].interval }) != interval { isDescribed = false }
            if let index { newest[index] = (message, interval) } else { newest.append((message, interval)) }
            dropped.remove(message.state.currency)
        }
        if mustRepeat { isDescribed = false }
        var messages = withoutDropped()
        for (message, interval) in mustRepeat ? newest : states {
            var message = message
            message.state = message.state.aged(at: now.boottime)
            quote(message, interval, at: now).map { messages.append($0) }
            if isForHomeAssistant { messages += forHomeAssistant(message, at: now) }
        }
        let wasThere = daemonIsThere
        daemonIsThere = contents.daemonIsReachable ?? wasThere
        if mustRepeat || daemonIsThere != wasThere {
            // A follower takes a quote for a sign that the publisher is online, so "offline" comes after the quotes.
            messages.insert(status(isOnline: daemonIsThere, at: now), at: daemonIsThere ? 0 : messages.endIndex)
        }
        mustRepeat = false
        if let sources = contents.sources { messages.append(list(sources, at: now)) }
        return messages
    }

    /// Removes what the broker has kept of currencies that the daemon does not keep.
    private mutating func withoutDropped() -> [BrokerMessage] {
        guard let kept else { return [] }
        let gone = found.union(newest.map(\.message.state.currency)).subtracting(kept)
        guard !gone.isEmpty else { return [] }
        found.subtract(gone)
        dropped.formUnion(gone)
        newest.removeAll { gone.contains($0.message.state.currency) }
        for currency in gone { lastValue[currency] = nil }
        isDescribed = false
        return gone.sorted().map {
            BrokerMessage(topic: FleetTopic.quote(publisher: name, currency: $0).text, payload: [])
        }
    }

    mutating func farewell() -> [BrokerMessage] { [status(isOnline: false, at: nil)] }

    /// - Returns: `nil` if the age of the price is not known.
    private mutating func quote(
        _ message: StateMessage, _ interval: Int64, at now: ObservationTime
    ) -> BrokerMessage? {
        guard !message.state.isOfUnknownAge else { return nil }
        sequence += 1
        let quote = QuoteMessage(
            state: message, publisher: name, bootID: bootID, sequence: sequence, publishedAt: now.wall,
            interval: interval, age: message.state.age(at: now)?.age.wholeMilliseconds ?? 0)
        return BrokerMessage(
            topic: FleetTopic.quote(publisher: name, currency: message.state.currency).text,
            payload: quote.payload(at: now))
    }

    private func status(isOnline: Bool, at now: ObservationTime?) -> BrokerMessage {
        var object: JSONObject = [
            "state": .string(isOnline ? "online" : "offline"), "version": .string(Product.version),
        ]
        if let now { object["since"] = .integer(now.wall.milliseconds) }
        return message(.status(publisher: name), object, .atLeastOnce)
    }

    private func list(_ sources: [SourceReport], at now: ObservationTime) -> BrokerMessage {
        message(
            .sources(publisher: name),
            [
                "publisher": .string(name), "publishedAt": .integer(now.wall.milliseconds),
                "sources": .array(sources.map { .object($0.json) }),
            ])
    }

    private mutating func forHomeAssistant(_ message: StateMessage, at now: ObservationTime) -> [BrokerMessage] {
        let state = message.state
        var messages: [BrokerMessage] = []
        if !isDescribed {
            isDescribed = true
            defer { dropped = [] }
            messages.append(
                BrokerMessage(
                    topic: HomeAssistantDiscovery.topic(of: name),
                    payload: HomeAssistantDiscovery.payload(
                        publisher: name, currencies: newest.map { ($0.message.state.currency, $0.interval) },
                        dropped: dropped),
                    delivery: .atLeastOnce))
        }
        // A stale price is not published, so the sensor becomes unavailable after a while.
        let interval = HomeAssistantDiscovery.interval(of: state.confirmation)
        guard let quote = state.quote, state.freshness == .fresh,
            lastValue[state.currency].map({ now.boottime - $0 >= interval }) ?? true
        else { return messages }
        lastValue[state.currency] = now.boottime
        var value = self.message(
            .homeAssistant(publisher: name, currency: state.currency),
            [
                "value": .string(quote.value.description), "source": .string(quote.source),
                "market": .string(quote.market), "timestamp": .integer(quote.timestamp.milliseconds),
                "confirmation": .optional(state.confirmation?.rawValue),
                "warning": .optional(state.standing.warning), "derivedFrom": .optional(state.derivation?.currency),
            ])
        // After a restart, Home Assistant would take a retained value for a new one.
        value.isRetained = false
        messages.append(value)
        return messages
    }

    private func message(
        _ topic: FleetTopic, _ object: JSONObject, _ delivery: BrokerMessage.Delivery = .atMostOnce
    ) -> BrokerMessage {
        BrokerMessage(topic: topic.text, payload: Array(JSON.object(object).text.utf8), delivery: delivery)
    }
}
