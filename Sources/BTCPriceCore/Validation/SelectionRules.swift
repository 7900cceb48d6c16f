package struct SelectionRules: Sendable, Hashable {
    package var mode: PriceMode
    /// In median mode, the number of sources that must agree; at least 1.
    package var quorum: Int
    package var peg: PegPolicy
    /// The interval of the ticks, milliseconds.
    private(set) var interval: Int64 = 1000
    /// After this time without a price the next one is validated like the first one, milliseconds.
    private(set) var gap = Vote.Bounds.memory
    /// How long the price of another exchange supports the shown one, milliseconds: at least until the observer has requested the next.
    private(set) var memory = Vote.Bounds.memory
    /// How long an agreement decides which side of a split is shown, milliseconds.
    private(set) var agreementLasts = Vote.Bounds.memory

    package init(mode: PriceMode = .primary, quorum: Int = 3, peg: PegPolicy = .warn) {
        self.mode = mode
        self.quorum = quorum
        self.peg = peg
    }

    /// The rules with the times of a currency.
    /// - Parameters:
    ///   - interval: The interval of its ticks, milliseconds.
    ///   - memory: The longest time between two observations of it, milliseconds.
    func with(interval: Int64, memory: Int64) -> SelectionRules {
        var rules = self
        rules.interval = interval
        rules.gap = max(Vote.Bounds.memory, 4 * interval)
        rules.agreementLasts = max(Vote.Bounds.memory, 3 * interval)
        // The observer leaves a source alone for two intervals after its last request.
        rules.memory = max(rules.agreementLasts, memory)
        return rules
    }
}

/// How the price is determined.
package enum PriceMode: String, Sendable, Hashable, CaseIterable {
    /// From the first source that has a price. The default.
    case primary
    /// As the median of all sources that can be requested.
    case median
}

/// The treatment of markets that quote bitcoin in USDT, which is not the dollar.
package enum PegPolicy: String, Sendable, Hashable, CaseIterable {
    /// Show their price unchanged, with a warning while USDT is off its peg. The default.
    case warn
    /// Multiply their price by the measured USDT/USD rate.
    case convert
}

/// How long a price counts: two intervals, and longer if the limits of its source allow no request in that time.
enum PaceRule {
    /// How long a price stays fresh, milliseconds.
    /// - Parameters:
    ///   - freshFor: Two intervals, milliseconds.
    ///   - pace: The minimum time until its source can give another one.
    static func lasts(_ freshFor: Int64, _ pace: Duration) -> Int64 {
        let pace = pace.wholeMilliseconds
        return freshFor + (2 * pace > freshFor ? pace : 0)
    }

    /// Whether an earlier price supports a median: for two intervals and a second, and until its source's limits allow the next request.
    static func supports(_ earlier: MarketObservation, at boottime: BootTime, _ freshFor: Int64) -> Bool {
        boottime - earlier.at <= freshFor + 1000 + earlier.pace.wholeMilliseconds
    }
}
