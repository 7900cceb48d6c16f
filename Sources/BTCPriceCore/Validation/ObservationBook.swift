import Glibc

/// The newest observation of each market of one currency, and what validation has learned from them: a pure value.
///
/// Every observation enters through ``record(_:of:from:pace:at:)``. ``PriceSelector`` reads the book, and ``adopt(_:in:)`` learns.
///
/// Prices are compared in one frame: the natural logarithm of the price, converted to dollars if it is in USDT, less the market's
/// basis. The exact decimal never passes through it.
package struct ObservationBook: Sendable {
    package let currency: Currency
    /// The newest valid observation of each market; none if the market's last request failed.
    private(set) var newest: [Market: MarketObservation] = [:]
    /// The last valid observation of each market. It counts in the vote, also if a request has failed since.
    private(set) var last: [Market: MarketObservation] = [:]
    /// The newest position accepted from each market. An older one is refused.
    package private(set) var positions: [Market: FeedPosition] = [:]
    private var clocks = VenueClocks()
    var peg = PegMonitor()
    var bases = BasisTable()

    /// The price that was shown last.
    var reference: ReferencePrice?
    /// Whether ``reference`` comes from an earlier run.
    var isRestored = false
    /// The place at which other exchanges agreed last; `nil` before the first agreement.
    var agreed: Double?
    /// The markets that were outvoted, until they agree again.
    var falsetickers: Set<Market> = []
    /// Prices that contradict each other without a majority.
    var split: Split?
    /// Whether the last market that was compared with the shown price was too far from it for a calm market.
    var isRestless = false
    var pending: PendingJump?
    /// Since when a price has been shown that no other exchange has confirmed.
    var unconfirmedSince: BootTime?
    /// The market that was outvoted last, and when.
    var contradicted: (market: Market, at: BootTime)?
    /// The price relative to that in another currency when it was last shown: an exchange rate.
    var rate: OtherCurrency?
    /// How far the price usually is above what another currency's and a reference rate imply, and when that was learned.
    var offset: (log: Double, at: BootTime)?
    /// The mean square of the moves of the reference price, as natural logarithms, per second.
    var variance = 0.0
    /// Where the reference price was when ``variance`` last included a move.
    var lastMove: (market: Market, log: Double, at: BootTime)?
    /// After this time without a price the next one is validated like the first one, milliseconds.
    var gap = Vote.Bounds.memory
    /// How long the price of another exchange supports the shown one, milliseconds: at least until the observer has requested the next.
    var memory = Vote.Bounds.memory

    package init(currency: Currency) {
        self.currency = currency
    }

    /// The newest observation of the first of these markets that has one.
    func first(of markets: [Market]) -> MarketObservation? { markets.lazy.compactMap { newest[$0] }.first }

    /// Records a response.
    /// - Parameters:
    ///   - loaded: Its prices: that of `market`, and those of other markets in the same response.
    ///   - market: The market that was requested, or that pushed.
    ///   - venue: The venue that gave it, if its properties matter here.
    ///   - pace: The minimum time between two requests that the source's limits allow.
    /// - Throws: Why it is not a valid price.
    @discardableResult
    package mutating func record(
        _ loaded: [LoadedPrice], of market: Market, from venue: Venue? = nil, pace: Duration = .zero,
        at now: ObservationTime
    ) throws(PriceLoadingError) -> MarketObservation {
        guard let price = loaded.first(where: { $0.market == market }) else { throw .invalidData("no price") }
        if let time = price.venueClock {
            clocks.record(time, of: market.venue, cacheTime: venue?.cacheTime ?? .zero, at: now)
            // A price with a time of its own shows its age itself.
            if price.position.time == nil, clocks.stands(market.venue) {
                throw .staleData("a cache: the Date of its responses stands still")
            }
        }
        // If the price has no time of its own, the venue's time says nothing about it.
        let wall = price.position.time == nil ? now.wall : clocks.wallTime(at: now)
        if price.position.time != nil { clocks.record(price.position, of: market) }
        try ResponseCheck.check(
            price, in: currency, after: positions[market], at: wall, oldest: clocks.oldest(of: market))
        let observation = MarketObservation(
            market, price.value, arrival: price.observed ?? now,
            position: ResponseCheck.position(of: price, acceptedAt: wall),
            age: price.position.time.map { max(0, wall.milliseconds - $0.milliseconds) },
            way: price.push?.way ?? .poll, pace: price.push?.interval ?? pace, origin: price.push?.origin,
            isUnconfirmed: price.push?.isUnconfirmed ?? false, upstream: venue?.upstream, halfSpread: price.halfSpread)
        // Only the dollar has markets in USDT.
        for other in loaded
        where currency == .usd && other.market.pair == Market.pegPair && ResponseCheck.pegRates.contains(other.value) {
            peg.state(other.value, by: other.market.venue, at: now.boottime)
        }
        record(observation)
        return observation
    }

    mutating func record(_ observation: MarketObservation) {
        var observation = observation
        // A price of a stream has no position.
        if let before = last[observation.market], before.value == observation.value,
            observation.position == nil || observation.position == positions[observation.market]
        {
            observation.since = before.since
        }
        last[observation.market] = observation
        newest[observation.market] = observation
        if let position = observation.position { positions[observation.market] = position }
    }

    /// Records that a market gave no price: its last one no longer counts.
    mutating func failed(_ market: Market) { newest[market] = nil }

    /// Forgets all markets but these. The reference price and its basis stay.
    mutating func keep(only markets: Set<Market>) {
        bases.keep(only: markets.union([reference?.market].compactMap(\.self)))
        newest = newest.filter { markets.contains($0.key) }
        last = last.filter { markets.contains($0.key) }
        falsetickers.formIntersection(markets)
        positions = positions.filter { markets.contains($0.key) }
        clocks.keep(only: markets)
    }

    /// Continues from the last price of an earlier run. What that run learned must be restored first.
    /// - Parameters:
    ///   - quote: The price as it was read; `nil` if it is no market's.
    ///   - boottime: When it was observed.
    mutating func restore(_ quote: PriceQuote?, positions: [Market: FeedPosition], at boottime: BootTime) {
        self.positions = positions
        guard let quote else { return }
        let market = Market(quote.supplier, quote.via == nil ? quote.market : currency.pair)
        let log = quote.value.logarithm
        if bases[market] == nil { bases.known[market] = BasisTable.Basis(log: 0, at: boottime) }
        reference = ReferencePrice(
            market: market, log: log - (bases[market]?.log ?? 0), at: boottime, readLog: log,
            since: boottime)
        isRestored = true
    }

    func exchange(of market: Market) -> String { last[market]?.exchange ?? market.venue }

    /// `65500 BTC/USDT is -4.9 % from the price of 1 s ago`
    func describe(_ price: MarketObservation) -> String {
        let value = "\(price.value) \(price.pair)"
        guard let reference else { return "\(value) is the first price" }
        let moved = place(of: price, near: agreed ?? reference.log) - reference.log
        return "\(value) is \(moved.asPercent) from the price of \(max(0, price.at - reference.at) / 1000) s ago"
    }
}

extension Market {
    /// The name of a median, if a source's name is needed.
    package static let medianName = "median"
    /// The market of a median. It cannot be requested.
    static func median(of currency: Currency) -> Market { Market(medianName, currency.pair) }
    /// Whether it is the market of a median.
    var isMedian: Bool { venue == Self.medianName }
}

extension Double {
    /// A move as text: `-4.9 %`.
    var asPercent: String {
        // No price is e^30 times another one.
        let tenths = Int64(((exp(Swift.min(self, 30)) - 1) * 1000).rounded())
        return "\(tenths < 0 ? "-" : "+")\(abs(tenths) / 10).\(abs(tenths) % 10) %"
    }
}
