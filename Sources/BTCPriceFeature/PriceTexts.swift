package import BTCPriceCore

package enum PriceTexts {
    /// Shown instead of a price and a time if there is none.
    package static let placeholder = "-"
    /// Shown while there is no value yet, and if a requested price is not available.
    package static let failed = "Failed to update value."
    /// Shown before the last value while the updates are paused.
    package static let paused = "Paused."
    /// Who has paused the updates, and what ends that.
    /// - Parameter ticking: Whether the ticks run; `nil` if a daemon does not say it.
    package static func pause(_ ticking: Ticking?) -> String {
        switch ticking {
        case .paused: "Paused by an administrator: 'btcctl resume' starts the updates again."
        case .idle: "Paused while no program read the price: the next one is on its way."
        case .running: "Paused because the machine is about to sleep."
        case nil: "'btcctl resume' starts the updates again. An idle pause ends with this request."
        }
    }
    /// Shown with an unconfirmed price if no warning says why.
    package static let unconfirmed = "Unconfirmed: no second source has confirmed this price."

    /// Shown once after a price that was not current.
    package static let currentAgain = "The price is current again."
    /// Shown once after a price that was in doubt.
    package static let noLongerInDoubt = "The price is no longer in doubt."

    /// The age from which a stale price is shown with its age, in seconds.
    private static let day: Int64 = 86_400

    /// The line of a price: `Aug 25, 14:30 - $68,901.23`.
    package static func line(_ timestamp: String, _ price: String) -> String {
        "\(timestamp) - \(price)"
    }

    /// A derived price: `≈ CZK 2,345,000.00`.
    static func derived(_ price: String) -> String { "≈ \(price)" }

    /// A state's price, with the mark of a derived one: `$68,901.23`; `nil` without a price.
    package static func money(_ state: PriceState) -> String? {
        guard let quote = state.quote else { return nil }
        let money = MoneyFormatter().string(from: quote.value, currency: quote.currency)
        return state.derivation == nil ? money : derived(money)
    }

    /// What a derived price is made of: `€95,610.00 × 24.527 (ecb, 2026-11-20)`.
    package static func derivation(_ derivation: Derivation) -> String {
        let price = MoneyFormatter().string(from: derivation.value, currency: derivation.currency)
        return "\(price) × \(derivation.rate) (\(derivation.rateSource), \(derivation.rateDate))"
    }

    /// `+1.25 %`
    package static func percent(_ change: Price) -> String {
        let text = MoneyFormatter().number(change, currency: Currency.usd.rawValue)
        return "\(change.isNegative ? "-" : "+")\(text) %"
    }

    /// The span of a day: `24 h`, or `since 7 h` if less is known.
    package static func span(of day: PriceDay, at now: Timestamp) -> String {
        let minutes = (now.milliseconds - day.since.milliseconds) / 60_000
        return minutes >= 23 * 60 + 30 ? "24 h" : since(minutes: minutes)
    }

    /// `since 40 min`, `since 7 h`, `since 12 d`
    static func since(minutes: Int64) -> String {
        switch minutes {
        case ..<120: "since \(max(0, minutes)) min"
        case ..<2880: "since \((minutes + 30) / 60) h"
        default: "since \((minutes + 720) / 1440) d"
        }
    }

    /// `24 h: +1.25 %, low $67,800.00, high $69,120.50`, and if much of it is not known: ` (700 of 1440 minutes)`.
    package static func day(_ day: PriceDay, currency: String, at now: Timestamp) -> String {
        let money = MoneyFormatter()
        let minutes = (now.milliseconds - day.since.milliseconds) / 60_000
        let gaps = day.coveredMinutes.flatMap { $0 * 6 < minutes * 5 ? " (\($0) of \(minutes) minutes)" : nil }
        return "\(span(of: day, at: now)): \(percent(day.changePercent)), "
            + "low \(money.string(from: day.low, currency: currency)), "
            + "high \(money.string(from: day.high, currency: currency))\(gaps ?? "")"
    }

    /// How much of a candle is known, if that is too little: `38 of 60 minutes`, `7 of 60 s`.
    /// - Parameter minutes: The length of its span.
    package static func coverage(of candle: Candle, minutes: Int64) -> String? {
        candle.coveredMinutes.map { "\($0) of \(minutes) minutes" } ?? candle.covered.map { "\($0) of 60 s" }
    }

    /// What is to be known of a candle: `38 of 60 minutes`, and `in doubt: 3 of 60 ticks` or, if nothing else is known, `unconfirmed`, and
    /// `of one source: 5 of 60 ticks`.
    /// - Parameter minutes: The length of its span.
    package static func notes(on candle: Candle, minutes: Int64) -> [String] {
        let doubtful = candle.doubtful ?? 0
        return [
            coverage(of: candle, minutes: minutes),
            candle.isInDoubt ? "unconfirmed" : doubtful > 0 ? "in doubt: \(doubtful) of \(candle.fresh) ticks" : nil,
            candle.single.flatMap { $0 > 0 ? "of one source: \($0) of \(candle.fresh) ticks" : nil },
        ].compactMap(\.self)
    }

    /// The text shown with the last valid price while it is not current.
    /// - Parameters:
    ///   - timestamp: The formatted time of its observation.
    ///   - age: Its age, included from 24 hours on; `nil` if it is not known.
    ///   - isPaused: Whether the updates are paused rather than failed.
    package static func stale(from timestamp: String, age: Duration? = nil, isPaused: Bool = false) -> String {
        let days = (age?.components.seconds ?? 0) / day
        let ago = days > 0 ? " (\(days) day\(days == 1 ? "" : "s") ago)" : ""
        return "\(isPaused ? paused : failed) Displaying last updated value from \(timestamp)\(ago)"
    }
}
