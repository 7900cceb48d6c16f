/// The current state, and the counts since the start.
package struct TickRecord: Sendable {
    /// The current state. Its `tick` counts the finished ticks, including the failed ones.
    package let state: PriceState
    /// When its freshness began.
    package let since: Timestamp
    /// The number of ticks that ended without a price.
    package let failed: Int64
    /// The number of ticks that did not begin in time.
    package let skipped: Int64
    /// When the last tick ended; `nil` before the first.
    package let lastTick: Timestamp?
    package let durations: DurationHistogram
    package let validated: ValidatedTicks
    /// The value of USDT; `nil` before it was measured.
    package let pegRate: PegRate?
    /// The last price that each source gave, by its name.
    package let lastPrices: [String: Price]
    package let verdicts: [Market: MarketVerdict]
    package let claims: [Market: MarketClaim]
    package let ways: [Market: PriceWay]
}

/// What other exchanges said about the prices of the ticks since the start.
package struct ValidatedTicks: Sendable, Hashable {
    /// Shown, and another exchange agreed.
    package var confirmed: Int64 = 0
    /// Shown as ``Confirmation/unconfirmed``.
    package var unconfirmed: Int64 = 0
    /// Not shown: contradicted, or not confirmed yet.
    package var withheld: Int64 = 0

    package init() {}
}
