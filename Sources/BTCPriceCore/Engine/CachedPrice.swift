/// The last valid quote of one currency, with what a restart needs to date it, to reject old responses and to validate the next prices.
package struct CachedPrice: Sendable, Hashable {
    package let quote: PriceQuote
    /// When it was observed; `nil` if only its wall-clock time is known (after a reboot).
    package let observedBoottime: BootTime?
    /// How many sources supported it; `nil` if that is not known.
    package let confirmation: Confirmation?
    /// The conversion to dollars of a quote read in USDT; `nil` for other quotes and after a reboot.
    package let conversion: Conversion?
    /// What it is made of, if it is derived.
    package let derivation: Derivation?
    /// The newest position accepted from each market.
    package let positions: [KeptPosition]
    /// How far each market usually is from the others.
    package let learned: [LearnedBasis]?

    package init(
        quote: PriceQuote, observedBoottime: BootTime?, confirmation: Confirmation? = nil,
        conversion: Conversion? = nil,
        derivation: Derivation? = nil, positions: [KeptPosition] = [], learned: [LearnedBasis]? = nil
    ) {
        self.quote = quote
        self.observedBoottime = observedBoottime
        self.confirmation = confirmation
        self.conversion = conversion
        self.derivation = derivation
        self.positions = positions
        self.learned = learned
    }
}
