/// How current the price is.
package enum Freshness: String, Sendable, Hashable, CaseIterable {
    /// The last tick has a value, no older than two intervals at the moment of the reply.
    case fresh
    /// The last tick failed, or the ticks are paused. The last valid value is shown.
    case stale
    /// There has been no value yet.
    case none
}

/// What other exchanges say about the price.
package enum Confirmation: String, Sendable, Hashable, CaseIterable {
    /// Nobody else says anything.
    case single
    /// Another exchange agrees.
    case confirmed
    /// Others contradict it and are not outvoted, or it is a first price or a jump that none confirms.
    case unconfirmed
}

/// A price that is shown, with what it is made of. A restart keeps it.
package struct ShownPrice: Sendable, Hashable {
    package var quote: PriceQuote
    /// When ``quote`` was observed; `nil` if only its wall-clock time is known (after a reboot).
    package var observedBoottime: BootTime?
    /// What other exchanges said about it; `nil` if that is not known.
    package var confirmation: Confirmation?
    /// The conversion of ``quote`` to dollars, if it was read in USDT.
    package var conversion: Conversion?
    /// What ``quote`` is made of, if it is derived from the price in another currency: no market's price.
    package var derivation: Derivation?

    package init(
        _ quote: PriceQuote, observedBoottime: BootTime? = nil, confirmation: Confirmation? = nil,
        conversion: Conversion? = nil, derivation: Derivation? = nil
    ) {
        self.quote = quote
        self.observedBoottime = observedBoottime
        self.confirmation = confirmation
        self.conversion = conversion
        self.derivation = derivation
    }
}

/// What is known about a price at the moment. It is never stored.
package struct Standing: Sendable, Hashable {
    /// How certain the price is; `nil` if nobody can say it, as of a stale price.
    package var uncertainty: Uncertainty?
    /// The consensus that it is the median of, if it is a fresh median.
    package var consensus: Consensus?
    /// What to know about it: USDT is off its peg, other exchanges contradict it and are not outvoted, or only one of several gives a
    /// price. That of a stale price is of its moment.
    package var warning: String?
    /// Whether it is, or was at its moment, in doubt: unconfirmed, contradicted, or in USDT off its peg. Known only in the daemon.
    package var isInDoubt = false
}

/// What the ticks have done. It is never stored.
package struct TickState: Sendable, Hashable {
    /// The number of the last finished tick, from 1; 0 before the first.
    package var number: Int64 = 0
    package var freshness: Freshness
    /// Until when the price is fresh; `nil` if it is not fresh.
    package var freshUntil: BootTime?
    /// Why the last tick failed, in one line; `paused` while paused.
    package var failure: String?
    /// Why the price is stale after ``freshUntil``, for example `paused`; `nil` if only the next tick did not end in time.
    package var agedFailure: String?
    /// Whether the ticks run; `nil` if a daemon does not say it.
    package var ticking: Ticking?
    /// Whether no tick has ended since the ticks were started or resumed. Known only in the daemon.
    package var awaitsTick = false
}

/// Everything that a client receives about the price of one currency.
package struct PriceState: Sendable, Hashable {
    /// The last valid price; `nil` exactly when ``freshness`` is `none`.
    package var price: ShownPrice?
    package var standing = Standing()
    package var ticks: TickState
    /// The movement of the price in the last 24 hours; `nil` if that is not known.
    package var day: PriceDay?
    /// The ISO 4217 code of the state's currency.
    package var currency: String

    init(_ price: ShownPrice?, _ ticks: TickState, currency: String) {
        (self.price, self.ticks, self.currency) = (price, ticks, currency)
    }

    package var quote: PriceQuote? { price?.quote }
    package var observedBoottime: BootTime? { price?.observedBoottime }
    package var confirmation: Confirmation? { price?.confirmation }
    package var derivation: Derivation? { price?.derivation }
    package var freshness: Freshness { ticks.freshness }
    package var failure: String? { ticks.failure }

    /// The state before the first price.
    package static func empty(of currency: Currency = .usd) -> PriceState {
        PriceState(nil, TickState(freshness: .none), currency: currency.rawValue)
    }

    /// The value of ``TickState/failure`` while the ticks are paused.
    package static let pausedFailure = "paused"

    /// How far in the future an observation may be, because the clock was read before the state arrived.
    private static let ahead = Duration.seconds(1).wholeMilliseconds

    /// The age of the quote.
    /// - Parameter now: The reader's clocks, on the same machine.
    /// - Returns: The age, never below zero, and whether it is an estimate by the wall clock; `nil` without a quote, and if the age is not
    ///   known: a price from an earlier boot is not dated with a clock that may be behind, and one from the future with another clock.
    package func age(at now: ObservationTime) -> (age: Duration, isEstimate: Bool)? {
        guard quote != nil, !isOfUnknownAge else { return nil }
        guard let observedBoottime else { return ageByWallClock(at: now).map { ($0, true) } }
        guard observedBoottime - now.boottime <= Self.ahead else { return nil }
        return (.milliseconds(max(0, now.boottime - observedBoottime)), false)
    }

    /// Whether the quote is known to be no older than `longest`, milliseconds; `true` without a quote.
    /// - Parameter boottime: By the clock that ``observedBoottime`` is of.
    package func isWithin(_ longest: Int64, at boottime: BootTime) -> Bool {
        quote == nil || observedBoottime.map { boottime - $0 <= longest } ?? false
    }

    /// Whether ``quote`` was observed before this boot, and no tick has had a price since.
    package var isOfUnknownAge: Bool { quote != nil && observedBoottime == nil && freshness != .fresh }

    /// How long ago ``quote`` was observed if the wall clocks then and now are right; `nil` without a quote. Only for people to read.
    package func ageByWallClock(at now: ObservationTime) -> Duration? {
        quote.map { .milliseconds(max(0, now.wall.milliseconds - $0.timestamp.milliseconds)) }
    }

    /// The minimum length of a day's data that mean something, milliseconds.
    private static let shortestDay: Int64 = 120_000

    /// The day to show; `nil` while less than two minutes of it are known, and while the ticks are paused, when it stands still.
    package func shownDay(at now: Timestamp) -> PriceDay? {
        guard failure != Self.pausedFailure else { return nil }
        return day.flatMap { now.milliseconds - $0.since.milliseconds < Self.shortestDay ? nil : $0 }
    }

    /// The state to send at `boottime`. A fresh state that has become too old is sent as stale, with a reason.
    ///
    /// This prevents a stuck ticker from showing an old price as current.
    package func aged(at boottime: BootTime) -> PriceState {
        guard freshness == .fresh, let freshUntil = ticks.freshUntil, boottime > freshUntil else { return self }
        var aged = self
        aged.becomeStale(because: ticks.agedFailure ?? "no tick has finished in time since this price")
        return aged
    }

    /// Makes the price stale. What was said about now is gone; the rest stays as it was at the price's moment.
    /// - Parameter failure: Why, in one line.
    package mutating func becomeStale(because failure: String?) {
        ticks.freshness = price == nil ? .none : .stale
        ticks.freshUntil = nil
        ticks.failure = failure
        standing.uncertainty = nil
        standing.consensus = nil
    }
}

/// Whether the ticks run.
package enum Ticking: String, Sendable, Hashable, CaseIterable {
    /// The ticks run, or are stopped only while the machine sleeps.
    case running
    /// An operator has paused them.
    case paused
    /// The ticks are stopped until a client wants a price.
    case idle
}

/// The sources of a median.
package struct Consensus: Sendable, Hashable {
    /// The sources that the price is the median of, in their order.
    package var sources: [String]
    /// The sources that are too far from the others to count.
    package var outliers: [String]
    /// The difference between the lowest and the highest price that counts, in the price's currency.
    package var spread: Price

    package init(sources: [String], outliers: [String], spread: Price) {
        self.sources = sources
        self.outliers = outliers
        self.spread = spread
    }
}

/// How certain a price is.
package struct Uncertainty: Sendable, Hashable {
    /// How far the median of the markets may be from the price, in the price's currency. The definition of the interface says how often
    /// it is farther.
    package var plusMinus: Price
    /// The number of markets that it was estimated from; 1 if only the price in another currency says something about it.
    package var markets: Int64

    package init(plusMinus: Price, markets: Int64) {
        self.plusMinus = plusMinus
        self.markets = markets
    }
}

/// The movement of the price in the last 24 hours, by the minute.
package struct PriceDay: Sendable, Hashable {
    /// When the first of its prices was seen: 24 hours ago, or later if less is known.
    package var since: Timestamp
    package var open: Price
    package var high: Price
    package var low: Price
    package var close: Price
    /// Whether minutes that this daemon has not seen are filled with candles from an exchange.
    package var isBackfilled: Bool
    /// When the last of its minutes ends, or the present; `nil` if a daemon does not say it.
    package var until: Timestamp?
    /// How many of its 1,440 minutes are known; `nil` if a daemon does not say it.
    package var coveredMinutes: Int64?

    package init(
        since: Timestamp, open: Price, high: Price, low: Price, close: Price, isBackfilled: Bool = false,
        until: Timestamp? = nil, coveredMinutes: Int64? = nil
    ) {
        self.since = since
        self.until = until
        self.coveredMinutes = coveredMinutes
        self.open = open
        self.high = high
        self.low = low
        self.close = close
        self.isBackfilled = isBackfilled
    }

    package var change: Price { close - open }

    /// The same in percent of the first price, to two places; 0 without one.
    package var changePercent: Price { open == .zero ? .zero : (change * 100).divided(by: open, places: 2) }
}
