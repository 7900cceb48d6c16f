package struct SelectionRules: Sendable, Hashable {
    package var mode: PriceMode
    /// In median mode, the number of sources that must agree; at least 1.
    package var quorum: Int
    package var peg: PegPolicy

    package init(mode: PriceMode = .primary, quorum: Int = 3, peg: PegPolicy = .warn) {
        self.mode = mode
        self.quorum = quorum
        self.peg = peg
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
