/// The value of one USDT in dollars, measured from the markets.
package struct PegRate: Sendable, Hashable {
    /// Dollars for one USDT, with six digits after the point.
    package var value: Price
    /// The sources whose prices it was measured from.
    package var sources: [String]
    /// When the newest of those prices was observed.
    package var measuredBoottime: BootTime
    /// Whether it is too far from one to use USDT prices as dollar prices.
    package var isOffPeg: Bool

    package init(value: Price, sources: [String], measuredBoottime: BootTime, isOffPeg: Bool) {
        self.value = value
        self.sources = sources
        self.measuredBoottime = measuredBoottime
        self.isOffPeg = isOffPeg
    }

    /// `USDT is at 0.9552 USD (by bitstamp, coinbase)`
    package var text: String { "USDT is at \(value) USD (by \(sources.joined(separator: ", ")))" }
}
