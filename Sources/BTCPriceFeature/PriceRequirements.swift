package import BTCPriceCore

/// What a reader requires of a price before acting on it.
package struct PriceRequirements: Sendable, Hashable {
    /// Which prices are accepted, by what other exchanges say about them.
    package enum Trust: Sendable, Hashable {
        /// All prices, unconfirmed ones included.
        case all
        /// All prices except unconfirmed ones.
        case usual
        /// Only prices that another exchange confirms.
        case confirmed
    }

    /// Why a price is refused.
    package enum Refusal: Sendable, Hashable {
        /// Its age in milliseconds, and the largest accepted one.
        case tooOld(Int64, most: Int64)
        case ofUnknownAge
        case unconfirmed
        /// No other exchange has a say.
        case single
        /// Its uncertainty, and the largest accepted one, in percent of it.
        case tooUncertain(Price, most: Price)
        case ofUnknownUncertainty

        /// What follows after "the price": `is unconfirmed`.
        package var predicate: String {
            switch self {
            case .tooOld(let age, let most): "is \(Price(age, scale: 3)) s old, more than \(Price(most, scale: 3)) s"
            case .ofUnknownAge: "has an unknown age"
            case .unconfirmed: "is unconfirmed"
            case .single: "is that of one exchange, which no other one confirms"
            case .tooUncertain(let percent, let most): "has an uncertainty of \(percent) %, more than \(most) %"
            case .ofUnknownUncertainty: "has an unknown uncertainty"
            }
        }

        /// One word for programs: `tooOld`, `unconfirmed` or `uncertain`.
        package var word: String {
            switch self {
            case .tooOld, .ofUnknownAge: "tooOld"
            case .unconfirmed, .single: "unconfirmed"
            case .tooUncertain, .ofUnknownUncertainty: "uncertain"
            }
        }
    }

    package var trust: Trust
    /// The largest uncertainty, in percent of the price; `nil` for any.
    package var maxUncertainty: Price?
    /// The largest age; `nil` for any.
    package var maxAge: Duration?

    package init(trust: Trust = .all, maxUncertainty: Price? = nil, maxAge: Duration? = nil) {
        self.trust = trust
        self.maxUncertainty = maxUncertainty
        self.maxAge = maxAge
    }

    /// What the largest uncertainty may be, in percent.
    package static let percents = Price(1, scale: 4)...100

    /// Reads a percentage of ``percents``, with its sign or without: `0.5%`.
    package static func percent(_ text: String) -> Price? {
        Price(text.hasSuffix("%") ? String(text.dropLast()) : text).flatMap { percents.contains($0) ? $0 : nil }
    }

    /// Why the price of a state is refused; `nil` if it is accepted, and without a price.
    /// - Parameter now: The reader's clocks, on the daemon's machine.
    package func refusal(of state: PriceState, at now: ObservationTime) -> Refusal? {
        guard let quote = state.quote else { return nil }
        if let maxAge {
            guard let age = state.age(at: now), !age.isEstimate else { return .ofUnknownAge }
            guard age.age <= maxAge else {
                return .tooOld(age.age.wholeMilliseconds, most: maxAge.wholeMilliseconds)
            }
        }
        switch (trust, state.confirmation) {
        case (.usual, .unconfirmed), (.confirmed, .unconfirmed), (.confirmed, nil): return .unconfirmed
        case (.confirmed, .single): return .single
        case (.all, _), (.usual, _), (.confirmed, .confirmed): break
        }
        guard let maxUncertainty else { return nil }
        guard let plusMinus = state.standing.uncertainty?.plusMinus else { return .ofUnknownUncertainty }
        guard plusMinus * 100 > quote.value * maxUncertainty else { return nil }
        return .tooUncertain((plusMinus * 100).divided(by: quote.value, places: 4), most: maxUncertainty)
    }
}

extension Candle {
    /// A fresh price as the candle of a second, in doubt as the daemon's own would be; `nil` without one.
    package init?(_ state: PriceState, at second: Int64) {
        guard state.freshness == .fresh, let price = state.quote?.value else { return nil }
        let isDerived = state.derivation != nil
        self.init(start: second, price, isInDoubt: !isDerived && state.doubt != nil)
        if isDerived { origin = Self.derived }
    }
}

extension PriceState {
    /// Whether what is computed from the price is approximate: it is in doubt, or not current.
    var isApproximate: Bool { doubt != nil || freshness != .fresh }

    /// Whether only one of several configured exchanges gave it.
    package var isSingleOfSeveral: Bool { confirmation == .single && standing.warning != nil }

    /// One word for what is to be known of the price besides its age; `nil` for nothing. Of an old price, what was to be known then.
    package var doubt: String? {
        if quote == nil { return nil }
        if derivation != nil { return "derived" }
        if confirmation == .unconfirmed { return "unconfirmed" }
        // That no other exchange speaks is told, but contradicts nothing.
        return standing.warning == nil || confirmation == .single ? nil : "in doubt"
    }
}
