/// The rules of selection.
package struct SelectionRules: Sendable, Hashable {
    /// How the price is determined.
    package var mode: PriceMode
    /// In median mode, the number of sources that must agree; at least 1.
    package var quorum: Int
    /// The treatment of USDT markets.
    package var peg: PegPolicy

    package init(mode: PriceMode = .primary, quorum: Int = 3, peg: PegPolicy = .warn) {
        self.mode = mode
        self.quorum = quorum
        self.peg = peg
    }
}
