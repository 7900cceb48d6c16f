/// What one USDT is worth in dollars, as the BTC markets say: their USD price divided by their USDT price at the same moment.
package struct TetherRate: Sendable, Hashable {
    /// Dollars for one USDT, six digits after the point.
    package let value: Price
    /// The sources whose prices it was measured from.
    package let sources: [String]
    /// When the newest of them was, `CLOCK_BOOTTIME` in milliseconds.
    package let measuredBoottime: Int64
    /// Whether it is so far from one that USDT prices are no dollar prices.
    package let isOffPeg: Bool

    /// A rate of which every part is given.
    package init(value: Price, sources: [String], measuredBoottime: Int64, isOffPeg: Bool) {
        self.value = value
        self.sources = sources
        self.measuredBoottime = measuredBoottime
        self.isOffPeg = isOffPeg
    }

    /// `USDT is at 0.9552 USD (by bitstamp, coinbase)`
    package var text: String { "USDT is at \(value) USD (by \(sources.joined(separator: ", ")))" }
}

/// How a USDT price became a dollar price.
package struct Conversion: Sendable, Hashable {
    /// The price as it was read, in USDT.
    package let value: Price
    /// The rate it was multiplied by.
    package let rate: Price
    /// The sources that the rate was measured from.
    package let sources: [String]
    /// When the rate was measured, `CLOCK_BOOTTIME` in milliseconds.
    package let measuredBoottime: Int64

    /// A conversion of which every part is given.
    package init(value: Price, rate: Price, sources: [String], measuredBoottime: Int64) {
        self.value = value
        self.rate = rate
        self.sources = sources
        self.measuredBoottime = measuredBoottime
    }
}
