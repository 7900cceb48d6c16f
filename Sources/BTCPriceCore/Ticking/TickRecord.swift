/// What the ticks have come to: the state that is told, and the counts since the start.
package struct TickRecord: Sendable, Hashable {
    /// The state as it is told now. Its `tick` counts the finished ticks, the failed ones included.
    package let state: PriceState
    /// When its freshness became what it is.
    package let since: Timestamp
    /// The ticks that ended without a price.
    package let failed: Int64
    /// The ticks that did not begin in their time.
    package let skipped: Int64
    /// How those ended that had to be judged by more than one source.
    package let judged: JudgedTicks
    /// What USDT is worth; `nil` before it was measured.
    package let tetherRate: TetherRate?
    /// The last price that each source gave, by its name.
    package let lastPrices: [String: Price]
    /// Why the last price can't be kept; `nil` while it can.
    package let saveFailure: PriceStoreError?
}
