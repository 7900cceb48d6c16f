/// The price that was shown last, to compare the next one with.
struct ReferencePrice: Sendable {
    var market: Market
    /// Its place in the common frame; see ``ObservationBook/place(of:near:)``.
    var log: Double
    /// When it arrived, `CLOCK_BOOTTIME` in milliseconds; below zero for a price from an earlier boot.
    var at: Int64
    /// The natural logarithm of the price as it was read.
    var readLog: Double
    /// Whether it was read in USDT.
    var isInTether: Bool
    /// See ``MarketObservation/halfSpread``.
    var halfSpread = 0.0
}

/// Where another market was when it last agreed with the price that was shown.
struct ConfirmedLevel: Sendable {
    /// Its place in the common frame; `nil` before the first agreement.
    var log: Double?
    /// Whether a market has moved away from the shown price since then.
    var isDisputed = false
    /// Set when as many exchanges contradict the shown price as agree with it, until the price is confirmed.
    var dispute: Dispute?
    /// When the shown price was at the level last, `CLOCK_BOOTTIME` in milliseconds.
    var reachedAt: Int64?
    /// Since when a price has been shown that no other market has confirmed, `CLOCK_BOOTTIME` in milliseconds.
    var unconfirmedSince: Int64?

    /// Records that another market agrees with the shown price.
    mutating func agreed(on log: Double) {
        self.log = log
        isDisputed = false
        unconfirmedSince = nil
    }
}

/// A jump that no other market has confirmed or contradicted yet.
struct PendingJump: Sendable, Hashable {
    var market: Market
    var log: Double
    var at: Int64
    /// The number of consecutive ticks with the same price.
    var ticks: Int
}
