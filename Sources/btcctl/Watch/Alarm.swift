import BTCPriceCore
import BTCPriceSocket

/// The conditions of an alarm, and the commands that are due for those that have begun, in order. A pure value: it returns what to do and
/// what to say.
struct Alarm {
    /// The most commands that wait for the one that runs.
    static let mostWaiting = 32
    /// The time after which the alarm says that there is no price to check.
    static let longestBlind = Duration.seconds(60)

    private var conditions: ConditionWatch
    private var waiting: [ExecEvent] = []
    private var dropped = 0
    /// Since when there is no price to check, and why; `nil` while there is one.
    private var blind: (since: ContinuousClock.Instant, reason: String)?
    private var hasSaid = false

    /// - Parameter now: Until the first price, there is none to check.
    init(_ condition: PriceCondition, at now: ContinuousClock.Instant) {
        conditions = ConditionWatch(condition)
        blind = (now, "no price has come")
    }

    /// Checks a price that counts.
    /// - Returns: What to say, if anything.
    mutating func check(_ price: Price, _ message: StateMessage) -> String? {
        for kind in conditions.take(price, in: message.state.currency) {
            if waiting.count < Self.mostWaiting {
                waiting.append(ExecEvent(message: message, condition: kind))
            } else {
                dropped += 1
            }
        }
        defer { (blind, hasSaid) = (nil, false) }
        return hasSaid ? "prices are checked against the conditions again" : nil
    }

    /// The last state has no price that counts, or no state comes.
    mutating func lose(because reason: String, at now: ContinuousClock.Instant) {
        blind = (blind?.since ?? now, reason)
    }

    /// - Returns: That there has been no price for a minute: once, until one comes.
    mutating func note(at now: ContinuousClock.Instant) -> String? {
        guard let blind, !hasSaid, blind.since.duration(to: now) >= Self.longestBlind else { return nil }
        hasSaid = true
        return "no price was checked against the conditions for a minute: \(blind.reason)"
    }

    /// Puts back a command that could not be started.
    mutating func putBack(_ event: ExecEvent) { waiting.insert(event, at: 0) }

    /// The next command that is due, and what to say before it.
    mutating func next() -> (event: ExecEvent, note: String?)? {
        guard !waiting.isEmpty else { return nil }
        defer { dropped = 0 }
        return (
            waiting.removeFirst(),
            dropped == 0
                ? nil : "\(dropped) more conditions began while \(Self.mostWaiting) commands waited, and run none"
        )
    }
}
