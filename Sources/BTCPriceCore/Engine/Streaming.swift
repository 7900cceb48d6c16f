/// What the streams are for at present.
package enum Streaming: Sendable, Hashable {
    /// They are closed.
    case never
    /// They are open, and the ticks publish the price.
    case forTicks
    /// They are open, and a change of the price is published between the ticks, too: at most once in this time.
    case forChanges(every: Duration)

    var isOpen: Bool { self != .never }

    var minimumInterval: Duration? {
        if case .forChanges(let interval) = self { interval } else { nil }
    }
}
