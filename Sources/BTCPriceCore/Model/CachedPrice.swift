/// The last valid quote, with what a restart needs to be honest about its age and not to be fooled by an old answer.
package struct CachedPrice: Sendable, Hashable {
    /// The quote.
    package let quote: PriceQuote
    /// When it was observed on `CLOCK_BOOTTIME`, milliseconds; `nil` where only the wall clock knows (after a reboot).
    package let observedBoottime: Int64?
    /// How the quote became dollars, where it was read in USDT; `nil` also after a reboot.
    package let conversion: Conversion?
    /// The newest mark accepted from each source, by the source's name.
    package let marks: [String: VenueMark]

    /// - Parameters:
    ///   - quote: The quote.
    ///   - observedBoottime: `CLOCK_BOOTTIME` of the observation in milliseconds, where this boot made it.
    ///   - conversion: How it became dollars, where it was read in USDT.
    ///   - marks: The newest mark accepted from each source.
    package init(
        quote: PriceQuote, observedBoottime: Int64?, conversion: Conversion? = nil, marks: [String: VenueMark] = [:]
    ) {
        self.quote = quote
        self.observedBoottime = observedBoottime
        self.conversion = conversion
        self.marks = marks
    }
}
