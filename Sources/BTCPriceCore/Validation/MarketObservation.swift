/// One price seen on one market.
package struct MarketObservation: Sendable, Hashable {
    package let market: Market
    package let value: Price
    /// When it arrived, on both clocks.
    package let arrival: ObservationTime
    /// Its position in the market's history; `nil` if the venue sent none that can be trusted.
    package let position: FeedPosition?
    /// Its age by the venue's own time when it arrived, milliseconds, not below zero; `nil` if the venue sent no time.
    package let age: Int64?
    package let way: PriceWay
    /// Where a peer got it; `nil` for an exchange.
    package let origin: PriceOrigin?
    /// The exchange whose price it is, however it arrived. Agreement, contradiction and uncertainty count each exchange once.
    let exchange: String
    /// What counts once in the quorum of a median: an exchange, or a peer.
    let voter: String
    /// The minimum time between two requests that the source's limits allow. For a feed that pushes, the usual time to the next price.
    package let pace: Duration
    let halfSpread: Double
    /// Half of the interval that its spread gives it.
    var room: Double { min(halfSpread, Vote.Bounds.widest) }
    /// The natural logarithm of ``value``, for comparisons.
    let log: Double
    /// When the first of a series of equal responses was made.
    var since: BootTime

    package init(
        _ market: Market, _ value: Price, arrival: ObservationTime, position: FeedPosition? = nil, age: Int64? = nil,
        way: PriceWay = .poll, pace: Duration = .zero, origin: PriceOrigin? = nil, upstream: String? = nil,
        halfSpread: Double = 0
    ) {
        self.market = market
        self.value = value
        self.arrival = arrival
        self.position = position
        self.age = age
        self.way = way
        self.pace = pace
        self.origin = origin
        exchange = origin?.source ?? upstream ?? market.venue
        voter = origin?.instance ?? exchange
        self.halfSpread = halfSpread
        log = value.logarithm
        since = arrival.boottime - (age ?? 0)
    }

    var at: BootTime { arrival.boottime }

    /// Whether a peer shows it as unconfirmed. It can't confirm another price.
    var isUnconfirmed: Bool { origin?.confirmation == .unconfirmed }

    /// The pair that it was read from. A peer may have read it from a pair other than its market's.
    var pair: String { origin?.pair ?? market.pair }

    /// Whether it is in USDT, which is not the dollar.
    var isInTether: Bool { Market.isInTether(pair) }
}

extension [MarketObservation] {
    /// Only the first one of each exchange, or of each voter.
    func oneOf(_ name: (MarketObservation) -> String) -> Self {
        var seen: [String] = []
        return filter { price in
            let name = name(price)
            guard !seen.contains(name) else { return false }
            seen.append(name)
            return true
        }
    }
}

extension [Double] {
    /// The middle number by size, or the mean of the two in the middle; `nil` if there are none.
    var median: Double? {
        guard !isEmpty else { return nil }
        let sorted = sorted()
        return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2
    }
}
