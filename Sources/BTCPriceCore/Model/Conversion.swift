/// The conversion of a USDT price to dollars.
package struct Conversion: Sendable, Hashable {
    /// The price in USDT, as it was read.
    package var value: Price
    package var rate: Price
    /// The sources that the rate was measured from.
    package var sources: [String]
    package var measuredBoottime: BootTime

    package init(value: Price, rate: Price, sources: [String], measuredBoottime: BootTime) {
        self.value = value
        self.rate = rate
        self.sources = sources
        self.measuredBoottime = measuredBoottime
    }
}
