/// What one market says about the price of bitcoin, and its part in the last vote.
package struct MarketClaim: Sendable, Hashable {
    /// The interval that contains the price of bitcoin if this market is right, in its currency (dollars for USDT), rounded to its places.
    package let low, high: Price
    /// Whether it supports the shown price.
    package let isMember: Bool
    /// The sources whose prices contradict it, whether they have outvoted it or that is undecided. Empty if it is a member.
    package let contradictedBy: [String]

    package init(low: Price, high: Price, isMember: Bool, contradictedBy: [String] = []) {
        self.low = low
        self.high = high
        self.isMember = isMember
        self.contradictedBy = contradictedBy
    }
}
