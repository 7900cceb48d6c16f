/// The value of one USDT in dollars, from the BTC markets: their USD price divided by their USDT price at the same moment.
package struct TetherRate: Sendable, Hashable {
    /// Dollars for one USDT, with six digits after the point.
    package let value: Price
    /// The sources whose prices it was measured from.
    package let sources: [String]
    /// When the newest of those prices was observed, `CLOCK_BOOTTIME` in milliseconds.
    package let measuredBoottime: Int64
    /// Whether it is too far from one to use USDT prices as dollar prices.
    package let isOffPeg: Bool

    package init(value: Price, sources: [String], measuredBoottime: Int64, isOffPeg: Bool) {
        self.value = value
        self.sources = sources
        self.measuredBoottime = measuredBoottime
        self.isOffPeg = isOffPeg
    }

    /// `USDT is at 0.9552 USD (by bitstamp, coinbase)`
    package var text: String { "USDT is at \(value) USD (by \(sources.joined(separator: ", ")))" }
}

/// The conversion of a USDT price to dollars.
package struct Conversion: Sendable, Hashable {
    /// The price in USDT, as it was read.
    package let value: Price
    /// The rate it was multiplied by.
    package let rate: Price
    /// The sources that the rate was measured from.
    package let sources: [String]
    /// When the rate was measured, `CLOCK_BOOTTIME` in milliseconds.
    package let measuredBoottime: Int64

    package init(value: Price, rate: Price, sources: [String], measuredBoottime: Int64) {
        self.value = value
        self.rate = rate
        self.sources = sources
        self.measuredBoottime = measuredBoottime
    }
}
