import Glibc

/// The newest observation of each market of one currency, and what validation has learned from them: a pure value.
///
/// Every observation enters through ``record(_:of:pace:at:)``: those of a tick, of a confirmation, of the observer, of a client's
/// request and of a feed that pushes. ``PriceSelector`` reads the book, and ``adopt(_:in:)`` records what is learned from a decision.
///
/// Prices are compared in one frame: the natural logarithm of the price, converted to dollars if it is in USDT, less the market's
/// basis. The exact decimal never passes through it.
package struct ObservationBook: Sendable {
    package let currency: Currency
    /// The newest valid observation of each market; none if the market's last request failed.
    private(set) var newest: [Market: MarketObservation] = [:]
    /// The newest position accepted from each market. An older one is refused.
    package private(set) var positions: [Market: FeedPosition] = [:]
    /// The exchange whose price each market gave last; see ``MarketObservation/exchange``.
    private var exchanges: [Market: String] = [:]
    private var clocks = VenueClocks()
    var staleFeeds = StaleFeeds()
    var peg = PegMonitor()
    var bases = BasisTable()

    /// The price that was shown last.
    var reference: ReferencePrice?
    /// Whether ``reference`` comes from an earlier run.
    var isRestored = false
    /// Where another market agreed last.
    var level = ConfirmedLevel()
    /// Whether the last other market that was compared with the shown price had moved away from it.
    var isRestless = false
    var pending: PendingJump?
    /// The price relative to that in another currency when it was last shown: an exchange rate.
    var rate: OtherCurrency?
    /// The mean square of the moves of the reference price, as natural logarithms, per second.
    var variance = 0.0
    /// Where the reference price was when ``variance`` last included a move.
    var lastMove: (market: Market, log: Double, at: Int64)?
    /// When a market's price was contradicted last, `CLOCK_BOOTTIME` in milliseconds.
    var contradictedAt: Int64?
    /// After this time without a price the next one is validated like the first one, milliseconds.
    var gap = JumpRule.gap

    package init(currency: Currency) {
        self.currency = currency
    }

    /// The newest observation of the first of these markets that has one.
    func first(of markets: [Market]) -> MarketObservation? { markets.lazy.compactMap { newest[$0] }.first }

    // MARK: - Recording

    /// Records a response.
    /// - Parameters:
    ///   - loaded: Its prices: that of `market`, and those of other markets in the same response.
    ///   - market: The market that was requested, or that pushed.
    ///   - venue: The venue that gave it, if its properties matter here.
    ///   - pace: The minimum time between two requests that the source's limits allow.
    ///   - now: The time of arrival.
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
        if staleFeeds.frozen[market] == price.value { throw .staleData("it stands still at \(price.value)") }
        let observation = MarketObservation(
            market, price.value, arrival: price.observed ?? now,
            position: ResponseCheck.position(of: price, acceptedAt: wall),
            age: price.position.time.map { max(0, wall.milliseconds - $0.milliseconds) },
            way: price.push?.way ?? .poll, pace: price.push?.interval ?? pace, origin: price.push?.origin,
            upstream: venue?.upstream, halfSpread: price.halfSpread)
        // Only the dollar has markets in USDT.
        for other in loaded
        where currency == .usd && other.market.pair == Market.pegPair && ResponseCheck.pegRates.contains(other.value) {
            peg.state(other.value, by: other.market.venue, at: now.boottime)
        }
        record(observation)
        return observation
    }

    /// Records a checked observation.
    mutating func record(_ observation: MarketObservation) {
        newest[observation.market] = observation
        exchanges[observation.market] = observation.exchange
        if let position = observation.position { positions[observation.market] = position }
    }

    /// Records that a market gave no price: its last one no longer counts.
    mutating func failed(_ market: Market) { newest[market] = nil }

    /// Forgets all markets but these. The reference price and its basis stay.
    mutating func keep(only markets: Set<Market>) {
        bases.keep(only: markets.union([reference?.market].compactMap(\.self)))
        newest = newest.filter { markets.contains($0.key) }
        exchanges = exchanges.filter { markets.contains($0.key) }
        positions = positions.filter { markets.contains($0.key) }
        clocks.keep(only: markets)
        staleFeeds.keep(only: markets)
    }

    /// Continues from the last price of an earlier run. What that run learned must be restored first.
    /// - Parameters:
    ///   - quote: The price as it was read; `nil` if it is no market's.
    ///   - boottime: When it was observed; below zero during an earlier boot.
    mutating func restore(_ quote: PriceQuote?, positions: [Market: FeedPosition], at boottime: Int64) {
        self.positions = positions
        guard let quote else { return }
        let market = Market(quote.supplier, quote.via == nil ? quote.market : currency.pair)
        let log = quote.value.logarithm
        if bases[market] == nil { bases.set(BasisTable.Basis(log: 0, at: boottime), of: market) }
        reference = ReferencePrice(
            market: market, log: log - (bases[market]?.log ?? 0), at: boottime, readLog: log,
            isInTether: Market.isInTether(quote.market))
        isRestored = true
    }

    /// The exchange whose price a market gives.
    func exchange(of market: Market) -> String { exchanges[market] ?? market.venue }

    /// The dispute about the shown price; `nil` if there is none.
    func dispute(at boottime: Int64) -> Dispute? { level.dispute?.current(at: boottime) }

    // MARK: - The common frame

    /// The place of a price in the common frame, and how exactly it is known.
    ///
    /// A USDT price may count at the confirmed rate, or at the one that a USDT/USD market has stated since: whichever brings it nearer to
    /// `reference`.
    func place(of price: MarketObservation, near reference: Double?) -> (log: Double, slack: Double) {
        let own = bases[price.market]
        let log = price.log - (own?.log ?? 0)
        let slack = own.map { BasisTable.Bounds.drift(over: price.at - $0.at) } ?? BasisTable.Bounds.unknown
        guard price.isInTether else { return (log, slack) }
        let places = peg.logs(at: price.at).map { log + $0 }
        guard let reference else { return (places[0], slack) }
        return (places.min { abs($0 - reference) < abs($1 - reference) } ?? log, slack)
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
