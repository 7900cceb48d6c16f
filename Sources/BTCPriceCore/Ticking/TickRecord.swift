public import FoundationEssentials

/// What the ticks have come to: the state that is told, and the counts since the start.
public struct TickRecord: Sendable, Hashable {
    /// The state as it is told now. Its `tick` counts the finished ticks, the failed ones included.
    public let state: PriceState
    /// When its freshness became what it is.
    public let since: Timestamp
    /// The ticks that ended without a price.
    public let failed: Int64
    /// The ticks that did not begin in their time.
    public let skipped: Int64
    /// How those ended that had to be judged by more than one source.
    public let judged: JudgedTicks
    /// What USDT is worth; `nil` before it was measured.
    public let tetherRate: TetherRate?
    /// The last price that each source gave, by its name.
    public let lastPrices: [String: Decimal]
    /// Why the last price can't be kept; `nil` while it can.
    public let saveFailure: PriceStoreError?
}
