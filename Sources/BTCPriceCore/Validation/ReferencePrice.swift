/// The price that was shown last, to compare the next one with.
struct ReferencePrice: Sendable {
    var market: Market
    /// Its place in the common frame; see ``ObservationBook/place(of:near:)``.
    var log: Double
    /// When it arrived.
    var at: BootTime
    /// The natural logarithm of the price as it was read.
    var readLog: Double
    var halfSpread = 0.0
    var since: BootTime
}

/// A jump that no other market has confirmed or contradicted yet.
struct PendingJump: Sendable, Hashable {
    var market: Market
    var log: Double
    var at: BootTime
    /// The number of consecutive ticks with the same price.
    var ticks: Int
}
