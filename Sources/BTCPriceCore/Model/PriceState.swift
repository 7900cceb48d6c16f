/// How current the price is.
package enum Freshness: String, Sendable, Hashable, CaseIterable {
    /// The last tick has a value, no older than two intervals at the moment of the reply.
    case fresh
    /// The last tick failed, or the ticks are paused: the last valid value is shown.
    case stale
    /// There never was a value.
    case none
}

/// How many sources stand behind the price.
package enum Confirmation: String, Sendable, Hashable, CaseIterable {
    /// One source.
    case single
    /// A second source agrees.
    case confirmed
    /// A jump that no second source could confirm.
    case unconfirmed
}

/// What the last tick left: all that a client is told of the price.
package struct PriceState: Sendable, Hashable {
    /// The number of the last finished tick, from 1; 0 before the first.
    package var tick: Int64
    /// How current ``quote`` is.
    package var freshness: Freshness
    /// The last valid quote; `nil` exactly when ``freshness`` is `none`.
    package var quote: PriceQuote?
    /// `CLOCK_BOOTTIME` of the observation, milliseconds; `nil` where only the wall clock knows.
    package var observedBoottime: Int64?
    /// What stands behind ``quote``.
    package var confirmation: Confirmation?
    /// Why the last tick failed, in one line; `paused` while paused.
    package var failure: String?
    /// What a reader must know of the price although it is right: USDT is off its peg.
    package var warning: String?
    /// Whose median ``quote`` is, where it is one.
    package var consensus: Consensus?
    /// How ``quote`` became dollars, where it was read in USDT.
    package var conversion: Conversion?
    /// Until when a fresh state may be called fresh, `CLOCK_BOOTTIME` in milliseconds; `nil` where it is not fresh.
    package var freshUntil: Int64?

    /// Why the price is stale once ``freshUntil`` has passed, if there is a better reason than a tick that did not end: `paused`.
    var agedFailure: String?

    /// A state of which every part is given.
    package init(
        tick: Int64, freshness: Freshness, quote: PriceQuote?, observedBoottime: Int64?,
        confirmation: Confirmation?, failure: String?, warning: String? = nil, consensus: Consensus? = nil,
        conversion: Conversion? = nil, freshUntil: Int64? = nil
    ) {
        self.tick = tick
        self.freshness = freshness
        self.quote = quote
        self.observedBoottime = observedBoottime
        self.confirmation = confirmation
        self.failure = failure
        self.warning = warning
        self.consensus = consensus
        self.conversion = conversion
        self.freshUntil = freshUntil
    }

    /// Before the first price.
    package static let empty = PriceState(
        tick: 0, freshness: .none, quote: nil, observedBoottime: nil, confirmation: nil, failure: nil)

    /// What ``PriceState/failure`` says while the ticks are paused.
    package static let pausedFailure = "paused"

    /// How old the quote is.
    /// - Parameter now: The reader's clocks, on the same machine.
    /// - Returns: The age, never below zero; and whether it is an estimate, because only the wall clock knows it. `nil` without
    ///   a quote.
    package func age(at now: ObservationTime) -> (age: Duration, isEstimate: Bool)? {
        guard let quote else { return nil }
        guard let observedBoottime else {
            return (.milliseconds(max(0, now.wall.milliseconds - quote.timestamp.milliseconds)), true)
        }
        return (.milliseconds(max(0, now.boottime - observedBoottime)), false)
    }

    /// The state as it must be told at `boottime`: one that was fresh and has grown too old is stale, and says so.
    ///
    /// This is what keeps a wedged ticker from showing an old price as current.
    /// - Parameter boottime: `CLOCK_BOOTTIME` of the reply, milliseconds.
    package func told(at boottime: Int64) -> PriceState {
        guard freshness == .fresh, let freshUntil, boottime > freshUntil else { return self }
        var aged = self
        aged.freshness = .stale
        aged.failure = agedFailure ?? "no tick has finished in time since this price"
        aged.freshUntil = nil
        return aged
    }
}
