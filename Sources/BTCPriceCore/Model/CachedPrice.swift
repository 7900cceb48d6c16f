/// The last valid quote, with the data that a restart needs to give its age correctly and to reject old responses.
package struct CachedPrice: Sendable, Hashable {
    package let quote: PriceQuote
    /// When it was observed, `CLOCK_BOOTTIME` in milliseconds; `nil` if only the wall clock knows (after a reboot).
    package let observedBoottime: Int64?
    /// The conversion to dollars of a quote read in USDT; `nil` for other quotes and after a reboot.
    package let conversion: Conversion?
    /// The newest mark accepted from each source, by the source's name.
    package let marks: [String: VenueMark]

    /// - Parameter observedBoottime: `CLOCK_BOOTTIME` of the observation in milliseconds, if it was made during this boot.
    package init(
        quote: PriceQuote, observedBoottime: Int64?, conversion: Conversion? = nil, marks: [String: VenueMark] = [:]
    ) {
        self.quote = quote
        self.observedBoottime = observedBoottime
        self.conversion = conversion
        self.marks = marks
    }
}
