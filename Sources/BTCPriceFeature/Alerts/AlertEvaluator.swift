package import BTCPriceCore

/// How far a price moves, up or down.
package enum PriceChange: Sendable, Hashable {
    /// In the currency of the price.
    case amount(Price)
    /// In percent of the price from which it is measured.
    case percent(Price)

    /// Whether the price has moved that far from another one.
    func isReached(by price: Price, from base: Price) -> Bool {
        switch self {
        case .amount(let amount): (price - base).magnitude >= amount
        case .percent(let share): (price - base).magnitude * 100 >= base * share
        }
    }
}

/// When an alert fires, and how often.
package struct AlertRule: Sendable, Hashable {
    package enum Condition: Sendable, Hashable {
        /// The price is higher.
        case above(Price)
        /// The price is lower.
        case below(Price)
        /// The price has moved that far from one of the time `within`, which moves on in sixtieths. Without it, from the first price. After
        /// it has, from the price at which it had.
        case change(PriceChange, within: Duration?)
        /// There has been no fresh price for so long.
        case stale(Duration)
        /// A fresh price is unconfirmed or in doubt. With a bound, in percent: or its uncertainty is larger, or not known.
        case unsure(bound: Price?)
    }

    /// Which fresh prices count.
    package enum Trust: Sendable, Hashable {
        /// Those that another exchange confirms.
        case confirmed
        /// All.
        case any
        /// All, but what only unconfirmed ones say counts after ``lasting``.
        case lasting
    }

    /// For how long unconfirmed prices must say the same.
    package static let lasting = Duration.seconds(60)

    package var condition: Condition
    /// How long the condition must hold.
    package var hold = Duration.zero
    /// How far back from its bound the price must be before the condition can begin to hold again, in percent of the bound.
    package var rearm = Price.zero
    /// Whether the alert fires only once.
    package var isOnce = false
    /// The shortest time from one firing to the next.
    package var pause = Duration.zero
    package var trust = Trust.lasting

    package init(_ condition: Condition) { self.condition = condition }
}

/// What is known of a price at a moment.
package struct AlertReading: Sendable, Hashable {
    /// Milliseconds of a clock that does not go back.
    package var time: Int64
    /// `nil` if there is no fresh price.
    package var price: Price?
    package var confirmation = Confirmation.confirmed
    /// Whether others contradict it, or USDT is off its peg.
    package var isInDoubt = false
    /// In percent of the price; `nil` if it is not known.
    package var uncertainty: Price?

    package init(at time: Int64, _ price: Price?) { (self.time, self.price) = (time, price) }
}

/// What an alert remembers.
package struct AlertState: Sendable, Hashable {
    package enum Position: String, Sendable, Hashable, CaseIterable {
        /// The condition does not hold.
        case inside
        case beyond
    }

    /// `nil` before the first price that counts: an alert that begins beyond does not fire.
    package var position: Position?
    /// When it fired last, milliseconds of the readings' clock.
    package var lastFired: Int64?
    /// How often it has not fired since then, because of ``AlertRule/pause``.
    package var heldBack = 0
    /// Whether it never fires again.
    package var isOver = false
    /// From when on a change is measured, milliseconds of the readings' clock; `nil` if none has been.
    package var base: Int64?

    package init(position: Position? = nil) { self.position = position }
}

/// The two prices of a change.
package struct PriceMove: Sendable, Hashable {
    package let from: Price
    package let to: Price

    package init(from: Price, to: Price) { (self.from, self.to) = (from, to) }

    package var direction: PriceDirection { to > from ? .up : to < from ? .down : .flat }
}

/// A condition begins to hold.
package struct AlertFiring: Sendable, Hashable {
    /// Since when it holds, milliseconds of the readings' clock.
    package let since: Int64
    /// Whether only unconfirmed prices say so.
    package let isUnconfirmed: Bool
    /// How often it did not fire before, because of ``AlertRule/pause``.
    package let heldBack: Int
    /// The change, from the price that is the farthest away; `nil` for another condition.
    package let move: PriceMove?
}

/// Checks the readings of a price against a rule. A pure value.
///
/// An alert fires when its condition begins to hold, and again only after it has not held. A reading says that it holds, that it does not,
/// or neither, if the price is between the bound and ``AlertRule/rearm``. Without a price that counts, a reading changes nothing, unless the
/// condition is ``AlertRule/Condition/stale(_:)``.
package struct AlertEvaluator: Sendable {
    private static let buckets: Int64 = 60

    /// Its condition stays.
    package var rule: AlertRule
    package private(set) var state: AlertState
    /// Since when the readings say the opposite of ``AlertState/position``, or without one, since when they are unconfirmed; `nil` if the
    /// last one did not.
    private var pendingSince: Int64?
    /// When the price was last fresh.
    private var fresh: Int64?
    /// Since when only unconfirmed prices come; `nil` after one that is not.
    private var unsureSince: Int64?
    /// The lowest and the highest price of each part of the window, the oldest first.
    private var window: [(bucket: Int64, low: Price, high: Price)] = []

    package init(_ rule: AlertRule, _ state: AlertState = AlertState()) { (self.rule, self.state) = (rule, state) }

    /// Whether no price is known from which a change is measured.
    package var isUnprimed: Bool { window.isEmpty }

    /// Takes in a price of the past, from which a change is measured. Nothing fires.
    package mutating func prime(_ reading: AlertReading) { note(reading) }

    /// Forgets since when the readings say something: after a time without readings, that may not have lasted.
    package mutating func interrupt() { (pendingSince, fresh, unsureSince) = (nil, nil, nil) }

    /// Whether the condition holds by a reading alone.
    package func isBeyond(_ reading: AlertReading) -> Bool {
        var copy = self
        return copy.says(reading) == .some(.beyond)
    }

    /// - Parameter isMuted: Whether it is not to fire: then a condition that begins to hold does not count as told.
    /// - Returns: `nil` if it does not fire.
    package mutating func see(_ reading: AlertReading, isMuted: Bool = false) -> AlertFiring? {
        guard !state.isOver, let said = says(reading) else { return nil }
        defer { note(reading) }
        guard let position = state.position else {
            // What only unconfirmed prices say counts after a minute here, too.
            let since = pendingSince ?? reading.time
            let counts = !isUnsure(reading) || reading.time - since >= AlertRule.lasting.wholeMilliseconds
            (state.position, pendingSince) = counts ? (said ?? .inside, nil) : (nil, since)
            return nil
        }
        guard let said, said != position else {
            pendingSince = nil
            return nil
        }
        let since = pendingSince ?? reading.time
        pendingSince = since
        let isUnconfirmed = isUnsure(reading)
        let hold = max(said == .beyond ? rule.hold : .zero, isUnconfirmed ? AlertRule.lasting : .zero)
        guard reading.time - since >= hold.wholeMilliseconds else { return nil }
        (state.position, pendingSince) = (said, nil)
        guard said == .beyond else { return nil }
        var move: PriceMove?
        if case .change = rule.condition, let price = reading.price {
            move = farthest(from: price).map { PriceMove(from: $0, to: price) }
            // The next one is measured from here.
            (state.position, state.base) = (.inside, reading.time)
            window = [(bucket(reading.time), price, price)]
        }
        return isMuted ? nil : begin(since, isUnconfirmed, move, reading)
    }

    /// The condition has begun to hold.
    private mutating func begin(
        _ since: Int64, _ isUnconfirmed: Bool, _ move: PriceMove?, _ reading: AlertReading
    ) -> AlertFiring? {
        if let last = state.lastFired, reading.time - last < rule.pause.wholeMilliseconds {
            state.heldBack += 1
            return nil
        }
        defer { (state.lastFired, state.heldBack, state.isOver) = (reading.time, 0, rule.isOnce) }
        return AlertFiring(since: since, isUnconfirmed: isUnconfirmed, heldBack: state.heldBack, move: move)
    }

    /// Whether a price is believed only if it lasts.
    private func isUnsure(_ reading: AlertReading) -> Bool {
        switch rule.condition {
        case .above, .below, .change: rule.trust == .lasting && reading.confirmation == .unconfirmed
        case .stale, .unsure: false
        }
    }

    // MARK: - What a reading says

    /// - Returns: `nil` if it says nothing at all; `.some(nil)` if it says neither.
    private mutating func says(_ reading: AlertReading) -> AlertState.Position?? {
        if case .stale(let longest) = rule.condition {
            if reading.price != nil || fresh == nil { fresh = reading.time }
            if reading.price != nil { return .inside }
            return .some(reading.time - (fresh ?? reading.time) >= longest.wholeMilliseconds ? .beyond : nil)
        }
        guard let price = reading.price else { return nil }
        if case .unsure(let bound) = rule.condition {
            let isWide = bound.map { bound in reading.uncertainty.map { $0 > bound } ?? true } ?? false
            return reading.confirmation == .unconfirmed || reading.isInDoubt || isWide ? .beyond : .inside
        }
        if rule.trust == .confirmed, reading.confirmation != .confirmed { return nil }
        switch rule.condition {
        case .above(let bound):
            if price > bound { return .beyond }
            return .some(price * 100 <= bound * (100 - rule.rearm) ? .inside : nil)
        case .below(let bound):
            if price < bound { return .beyond }
            return .some(price * 100 >= bound * (100 + rule.rearm) ? .inside : nil)
        case .change(let change, let within):
            let oldest = bucket(reading.time) - Self.buckets
            if within != nil { window.removeAll { $0.bucket <= oldest } }
            let isReached = window.contains {
                change.isReached(by: price, from: $0.low) || change.isReached(by: price, from: $0.high)
            }
            return isReached ? .beyond : .inside
        case .stale, .unsure: return nil
        }
    }

    /// Keeps a price from which a change is measured.
    private mutating func note(_ reading: AlertReading) {
        guard case .change(_, let within) = rule.condition, let price = reading.price else { return }
        unsureSince = isUnsure(reading) ? unsureSince ?? reading.time : nil
        // One that is believed only if it lasts is no base before it has.
        if let since = unsureSince, reading.time - since < AlertRule.lasting.wholeMilliseconds { return }
        let bucket = bucket(reading.time)
        if let last = window.last, last.bucket == bucket, within != nil {
            window[window.count - 1] = (bucket, min(last.low, price), max(last.high, price))
        } else if within != nil || window.isEmpty {
            window.append((bucket, price, price))
        }
    }

    /// The price of the window that differs most from another one: of two, the lower one.
    private func farthest(from price: Price) -> Price? {
        window.flatMap { [$0.low, $0.high] }
            .max { (($0 - price).magnitude, $1) < (($1 - price).magnitude, $0) }
    }

    private func bucket(_ time: Int64) -> Int64 {
        guard case .change(_, let within?) = rule.condition else { return 0 }
        return time / max(1, within.wholeMilliseconds / Self.buckets)
    }
}
