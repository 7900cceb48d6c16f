package import BTCPriceCore

/// The direction of the last price change.
package enum PriceDirection: String, Sendable, Hashable {
    case up
    case down
    /// It has not changed yet.
    case flat
}

/// What a reader sees of the price: its text, its time, and a banner while it is not current. Independent of terminals and sockets.
package final class PriceViewModel {
    /// `$68,901.23`, or ``PriceTexts/placeholder``.
    package private(set) var price = PriceTexts.placeholder
    /// `Aug 25, 14:30`, or ``PriceTexts/placeholder``.
    package private(set) var timestamp = PriceTexts.placeholder
    /// The message to show while the price is not current; `nil` while it is.
    package private(set) var banner: String?
    /// Why the price is not current, or why there is none; `nil` if that is not known.
    package private(set) var reason: String?
    /// The warning to show; `nil` for none: `Unconfirmed: coinbase (71827.87) contradicts binance (70413.10).`
    package private(set) var warning: String?
    /// Whether a market's price is unconfirmed.
    package private(set) var isUnconfirmed = false
    /// What the price is made of, if it is derived: `€95,610.00 × 24.527 (ecb, 2026-11-20)`.
    package private(set) var derivation: String?
    /// The direction of the last change among the prices shown here.
    package private(set) var direction = PriceDirection.flat
    /// `24 h: +1.25 %, low $67,800.00, high $69,120.50`; `nil` while less than two minutes are known or the updates are paused.
    package private(set) var day: String?
    /// The direction of the last 24 hours; that of the last change if they are not known.
    package private(set) var trend = PriceDirection.flat

    private let render: RenderPriceAndTimestamp
    /// Whether the price is shown as what one unit of the currency buys.
    private let isAmount: Bool
    private var value: Price?
    private var age: Duration?

    /// - Parameter priceFormatter: Formats the price. The prices of the day are always formatted as money.
    package init(
        priceFormatter: any PriceFormatter = MoneyFormatter(),
        timestampFormatter: TimestampFormatter = TimestampFormatter()
    ) {
        isAmount = priceFormatter is SatoshiFormatter
        render = RenderPriceAndTimestamp(priceFormatter: priceFormatter, timestampFormatter: timestampFormatter)
    }

    /// The line of the price: `Aug 25, 14:30 - $68,901.23`, with the derivation if it is derived; or ``PriceTexts/placeholder``.
    package var line: String {
        if price == PriceTexts.placeholder { return price }
        return PriceTexts.line(timestamp, price) + (derivation.map { ", derived: \($0)" } ?? "")
    }

    /// All messages to show with the price, except the reason.
    package var notes: [String] { [banner, doubt].compactMap(\.self) }

    /// Why the price is in doubt; `nil` if it is not.
    package var doubt: String? { warning ?? (isUnconfirmed ? PriceTexts.unconfirmed : nil) }

    /// Shows a state.
    /// - Parameter now: The reader's clocks.
    package func show(_ state: PriceState, at now: ObservationTime) {
        let formatted = state.quote.map { render.execute($0, isDerived: state.derivation != nil) }
        derivation = state.derivation.map(PriceTexts.derivation)
        price = formatted?.price ?? PriceTexts.placeholder
        // What is computed from an uncertain price is as uncertain.
        if isAmount, formatted != nil, state.isApproximate, derivation == nil { price = "about \(price)" }
        timestamp = formatted?.timestamp ?? PriceTexts.placeholder
        if let value, let new = state.quote?.value, new != value { direction = new > value ? .up : .down }
        value = state.quote?.value ?? value
        let known = state.shownDay(at: now.wall)
        day = known.map { PriceTexts.day($0, currency: state.currency, at: now.wall) }
        trend = known.map { $0.change > .zero ? .up : $0.change < .zero ? .down : .flat } ?? direction
        age = state.age(at: now)?.age ?? state.ageByWallClock(at: now)
        isUnconfirmed = state.quote != nil && state.confirmation == .unconfirmed && state.derivation == nil
        warning =
            state.quote == nil
            ? nil : state.standing.warning.map { "\(isUnconfirmed ? "Unconfirmed" : "Warning"): \($0)." }
        if state.freshness == .fresh {
            (banner, reason) = (nil, nil)
            return
        }
        let isPaused = state.failure == PriceState.pausedFailure
        updatesFailed(
            isPaused ? PriceTexts.pause(state.ticks.ticking) : state.failure.map { "Reason: \($0)" }, isPaused: isPaused
        )
    }

    /// Marks the price as not current, because no newer state is available.
    /// - Parameters:
    ///   - reason: Why, in one line.
    ///   - isPaused: Whether the updates are paused rather than failed.
    package func updatesFailed(_ reason: String? = nil, isPaused: Bool = false) {
        self.reason = reason
        banner =
            timestamp == PriceTexts.placeholder
            ? isPaused ? PriceTexts.paused : PriceTexts.failed
            : PriceTexts.stale(from: timestamp, age: age, isPaused: isPaused)
    }
}
