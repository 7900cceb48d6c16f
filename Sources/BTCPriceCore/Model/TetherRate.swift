public import FoundationEssentials

/// What one USDT is worth in dollars, as the BTC markets say: their USD price divided by their USDT price at the same moment.
public struct TetherRate: Sendable, Hashable {
    /// Dollars for one USDT, six digits after the point.
    public let value: Decimal
    /// The sources whose prices it was measured from.
    public let sources: [String]
    /// When the newest of them was, `CLOCK_BOOTTIME` in milliseconds.
    public let measuredBoottime: Int64
    /// Whether it is so far from one that USDT prices are no dollar prices.
    public let isOffPeg: Bool

    /// A rate of which every part is given.
    public init(value: Decimal, sources: [String], measuredBoottime: Int64, isOffPeg: Bool) {
        self.value = value
        self.sources = sources
        self.measuredBoottime = measuredBoottime
        self.isOffPeg = isOffPeg
    }

    /// `USDT is at 0.9552 USD (by bitstamp, coinbase)`
    public var text: String { "USDT is at \(value) USD (by \(sources.joined(separator: ", ")))" }
}

/// How a USDT price became a dollar price.
public struct Conversion: Sendable, Hashable {
    /// The price as it was read, in USDT.
    public let value: Decimal
    /// The rate it was multiplied by.
    public let rate: Decimal
    /// The sources that the rate was measured from.
    public let sources: [String]
    /// When the rate was measured, `CLOCK_BOOTTIME` in milliseconds.
    public let measuredBoottime: Int64

    /// A conversion of which every part is given.
    public init(value: Decimal, rate: Decimal, sources: [String], measuredBoottime: Int64) {
        self.value = value
        self.rate = rate
        self.sources = sources
        self.measuredBoottime = measuredBoottime
    }
}
