import BTCPriceCore
import BTCPriceSocket

/// The price in one currency that a publisher reports. Decides which messages are accepted, and how old the price is. A pure value.
struct FollowedQuote: Sendable {
    enum Refusal: Error, Sendable, Hashable, CustomStringConvertible {
        /// It is not a valid quote of this publisher and currency.
        case malformed(String)
        /// It is not newer than the one before.
        case repeated
        /// It was published too far in the future, milliseconds.
        case ahead(Int64)

        /// One word for counting.
        var kind: String {
            switch self {
            case .malformed: "malformed"
            case .repeated: "replayed"
            case .ahead: "ahead"
            }
        }

        var description: String {
            switch self {
            case .malformed(let what): what
            case .repeated: "its message is not newer than the one before"
            case .ahead(let time): "its message was published \(time / 1000) s in the future: a clock is wrong"
            }
        }
    }

    /// The maximum difference between the publisher's wall clock and this machine's, including the transit time, milliseconds.
    private static let clockTolerance: Int64 = 30_000
    /// The number of intervals without a message after which a price is stale.
    static let silentIntervals: Int64 = 3

    let publisher: String
    private let currency: String
    private var clock = RemoteClock()
    private var last: QuoteMessage?
    /// The state that is sent to clients.
    private(set) var state: StateMessage
    /// The time between two messages, milliseconds.
    private(set) var interval: Int64 = 1000
    /// The failure of a price that is stale because no message arrived.
    private var silence = ""
    /// Whether the publisher does not keep it any more.
    private(set) var isForgotten = false

    init(publisher: String, currency: String) {
        self.publisher = publisher
        self.currency = currency
        state = StateMessage(instance: "", state: .empty(of: Currency(rawValue: currency) ?? .usd))
    }

    /// The instance that the publisher's last message claims.
    var claimedInstance: String? { last?.state.instance }

    /// When the price becomes stale without another message; `nil` if it is not fresh.
    var freshUntil: BootTime? { state.state.ticks.freshUntil }

    /// Sets the failure to report if no message arrives.
    mutating func expect(_ reason: String) {
        silence = reason
        state.state.ticks.agedFailure = reason
    }

    /// Records that no message arrives.
    /// - Parameter reason: Why. It becomes the failure of a price that is not fresh.
    /// - Returns: Whether the state for clients has changed.
    mutating func silent(because reason: String) -> Bool {
        expect(reason)
        guard state.state.freshness != .fresh, state.state.failure != reason else { return false }
        state.state.ticks.failure = reason
        return true
    }

    /// Removes the price, which the publisher does not keep any more. An older message stays refused.
    mutating func forget(_ reason: String) {
        state = StateMessage(instance: state.instance, state: .empty(of: Currency(rawValue: currency) ?? .usd))
        _ = silent(because: reason)
        isForgotten = true
    }

    /// Makes the price stale if it has expired.
    /// - Returns: Whether the state for clients has changed.
    mutating func age(at now: ObservationTime) -> Bool {
        let aged = state.state.aged(at: now.boottime)
        guard aged.freshness != state.state.freshness else { return false }
        state.state = aged
        return true
    }

    /// How long after its publication a message arrived, milliseconds, if that is longer than a live message takes; otherwise `nil`. A
    /// bridge delivers what its broker had kept like a live message.
    static func lateness(of message: QuoteMessage, at now: ObservationTime) -> Int64? {
        let delay = now.wall.milliseconds - message.publishedAt.milliseconds
        return delay > clockTolerance ? delay : nil
    }

    /// Reads a message.
    /// - Parameter isLive: Whether it is not one that a broker has kept.
    /// - Returns: Whether the state for clients has changed. It has not if the broker repeats a retained message.
    mutating func read(
        _ message: QuoteMessage, isLive: Bool, at now: ObservationTime
    ) throws(Refusal) -> Bool {
        let delay = now.wall.milliseconds - message.publishedAt.milliseconds
        guard delay >= -Self.clockTolerance else { throw .ahead(-delay) }
        // The broker, or the bridge to it, repeats a retained message.
        if last == message { return false }
        // If the last message is from the future, a clock was ahead and has been corrected, so the order is not checked.
        if let last, last.publishedAt.milliseconds - now.wall.milliseconds <= Self.clockTolerance {
            guard message.publishedAt >= last.publishedAt,
                message.bootID != last.bootID || message.sequence > last.sequence
            else { throw .repeated }
        }
        // A kept message may have any age, because the price is shown with its age.
        last = message
        isForgotten = false
        interval = message.interval
        show(message, isLive: isLive, at: now)
        return true
    }

    /// Decodes the payload of a message on the topic of this publisher and currency.
    func decoded(_ payload: [UInt8]) throws(Refusal) -> QuoteMessage {
        let message: QuoteMessage
        do {
            message = try QuoteMessage(payload: payload)
        } catch {
            throw .malformed(
                "its message is not a valid quote: \(error.field.isEmpty ? "not JSON" : error.description)")
        }
        guard message.publisher == publisher, message.state.state.currency == currency,
            message.state.state.quote.map({ $0.currency == currency }) ?? true
        else { throw .malformed("its message does not match the publisher or currency of its topic") }
        return message
    }

    private mutating func show(_ message: QuoteMessage, isLive: Bool, at now: ObservationTime) {
        state = message.state
        // Another publisher can copy an instance. Publishers with the same one would count as a single peer.
        state.instance = "\(publisher)/\(message.state.instance)"
        state.state.ticks.agedFailure = silence
        state.state.ticks.freshUntil = nil
        if state.state.freshness != .fresh || state.state.quote == nil {
            state.state.becomeStale(because: state.state.failure)
        }
        guard state.state.quote != nil else { return }
        // The delay of a kept message says nothing about the transit time, so it is not stored.
        var clock = self.clock
        let theirs = state.state.observedBoottime
        let (published, isEstimate) = clock.date(
            theirs.map { $0 + message.age }, message.publishedAt, of: message.state.instance, arrivedAt: now)
        if isLive { self.clock = clock }
        let observed = Self.possible(published.boottime - message.age)
        state.state.price?.observedBoottime = isEstimate ? nil : observed
        if let theirs, let measured = state.state.price?.conversion?.measuredBoottime {
            // The conversion also has a time of the publisher's clock.
            state.state.price?.conversion?.measuredBoottime = Self.possible(measured + (observed - theirs))
        }
        guard state.state.freshness == .fresh else { return }
        state.state.ticks.freshUntil = published.boottime + Self.silentIntervals * interval
        state.state = state.state.aged(at: now.boottime)
    }

    /// The nearest time that is valid in a state.
    private static func possible(_ moment: BootTime) -> BootTime {
        let range = Timestamp.possibleMilliseconds
        return BootTime(milliseconds: min(max(moment.milliseconds, range.lowerBound), range.upperBound))
    }
}
