/// What is asked of markets that quote bitcoin in USDT, which is not the dollar.
package enum TetherPolicy: String, Sendable, Hashable, CaseIterable {
    /// Their price is shown as it is, with a warning while USDT is off its peg. The default.
    case warn
    /// Their price is multiplied by the measured USDT/USD rate.
    case convert
    /// They are passed over while USDT is off its peg.
    case refuse
}

/// What the price is made of.
package enum PriceMode: String, Sendable, Hashable, CaseIterable {
    /// The first source that has one. The default.
    case primary
    /// All sources that can be asked, and their median.
    case median
}

/// The rules of judgement that can be set.
package struct JudgementRules: Sendable, Hashable {
    /// What the price is made of.
    package var mode: PriceMode
    /// In a median, how many sources have to agree; at least 1.
    package var quorum: Int
    /// What is asked of USDT markets.
    package var tether: TetherPolicy

    /// - Parameters:
    ///   - mode: What the price is made of.
    ///   - quorum: In a median, how many sources have to agree; at least 1.
    ///   - tether: What is asked of USDT markets.
    package init(mode: PriceMode = .primary, quorum: Int = 3, tether: TetherPolicy = .warn) {
        self.mode = mode
        self.quorum = quorum
        self.tether = tether
    }
}

extension PriceQuote {
    /// Whether it was read from a market that quotes in USDT.
    var isInTether: Bool { PriceSource.isInTether(market: market) }
}

extension PriceSource {
    /// Whether it quotes in USDT.
    package var isInTether: Bool { Self.isInTether(market: market) }

    static func isInTether(market: String) -> Bool { market.hasSuffix("/USDT") }
}
