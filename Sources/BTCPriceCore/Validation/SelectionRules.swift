/// The rules of selection.
package struct SelectionRules: Sendable, Hashable {
    /// How the price is determined.
    package var mode: PriceMode
    /// In median mode, the number of sources that must agree; at least 1.
    package var quorum: Int
    /// The treatment of USDT markets.
    package var peg: PegPolicy
    /// The rules that apply. All do, except in a test of what one of them is for.
    var active = Active.all

    package init(mode: PriceMode = .primary, quorum: Int = 3, peg: PegPolicy = .warn) {
        self.mode = mode
        self.quorum = quorum
        self.peg = peg
    }

    /// The rules that can be switched off by themselves.
    struct Active: OptionSet, Sendable, Hashable {
        let rawValue: UInt

        /// ``JumpRule``
        static let jump = Active(rawValue: 1)
        /// ``ConfirmationRule``
        static let confirmation = Active(rawValue: 2)
        /// ``ContradictionRule``
        static let contradiction = Active(rawValue: 4)
        /// ``ScatterRule``
        static let scatter = Active(rawValue: 8)
        /// ``OutlierRule``
        static let outlier = Active(rawValue: 16)
        /// ``MedianRule``: the quorum.
        static let quorum = Active(rawValue: 32)
        /// ``PegRule``
        static let peg = Active(rawValue: 64)
        /// ``StaleFeeds``
        static let staleFeed = Active(rawValue: 128)
        /// ``PaceRule``
        static let pace = Active(rawValue: 256)
        /// ``UncertaintyRule``
        static let uncertainty = Active(rawValue: 512)
        /// ``ParallelRule``
        static let parallel = Active(rawValue: 1024)

        static let all = Active(rawValue: 2047)
    }
}
