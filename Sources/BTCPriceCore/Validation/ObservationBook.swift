/// What the markets of one currency have said: a pure value. What follows from it is in ``Belief``.
///
/// Every price enters through ``record(_:of:from:pace:clocks:at:)``.
package struct ObservationBook: Sendable {
    /// What one market has said at one address. It is forgotten with the address.
    private struct Record: Sendable {
        /// The last valid price. It counts in the vote, also if a request has failed since.
        var last: MarketObservation?
        /// Whether a request has failed since.
        var hasFailed = false
        /// The newest position accepted, and when.
        var position: (value: FeedPosition, at: BootTime)?
        var trades = TradeGaps()
        /// The quotes, since when they have been the same, and whether they were others before.
        var quotes: (value: LoadedQuotes, since: BootTime, haveChanged: Bool)?
        /// Since when its times have been in the future; `nil` if the last one was not.
        var aheadSince: BootTime?

        /// The last valid price; `nil` if the last request failed.
        var newest: MarketObservation? { hasFailed ? nil : last }

        /// Records what a response says of its age.
        /// - Returns: The maximum age of a price, and the quotes.
        mutating func note(
            _ price: LoadedPrice, isAhead: Bool, at boottime: BootTime
        ) -> (oldest: Duration, quotes: (value: LoadedQuotes, since: BootTime, haveChanged: Bool)?) {
            aheadSince = isAhead ? aheadSince ?? boottime : nil
            if price.position.time != nil { trades.record(price.position) }
            if let read = price.quotes, quotes?.value != read { quotes = (read, boottime, quotes != nil) }
            return (trades.oldest, quotes)
        }

        mutating func keep(_ observation: MarketObservation, at boottime: BootTime) {
            // A price of a stream has no position.
            let isSame =
                last?.value == observation.value
                && (observation.position == nil || observation.position == position?.value)
                && quotes?.since != observation.at
            let since = isSame ? last?.since : nil
            (last, hasFailed) = (observation, false)
            if let since { last?.since = since }
            if let position = observation.position { self.position = (position, boottime) }
        }
    }

    package let currency: Currency
    private var records: [Market: Record] = [:]
    /// The address of each market, as far as it is known.
    private var addresses: [Market: MarketAddress] = [:]
    /// What a USDT/USD market stated last.
    private(set) var stated: StatedRate?
    /// Whether a price of a peer, or of a twin, has come: another market may have the same exchange's own price.
    private(set) var hasSecondHand = false
    /// After this time without an accepted price, a market's position is forgotten, milliseconds: its numbers may begin again.
    private var positionsLast = Vote.Bounds.memory

    /// How far a price's time may be ahead of the time that most venues agree on, milliseconds: their clocks differ.
    static let mostAhead = Duration.seconds(10).wholeMilliseconds

    /// The last quotes of each market, as far as its responses have them.
    var quotes: [Market: LoadedQuotes] { records.compactMapValues { $0.quotes?.value } }

    package init(currency: Currency) {
        self.currency = currency
    }

    /// The newest valid price of a market; `nil` if it has none, or if its last request failed.
    func newest(_ market: Market) -> MarketObservation? { records[market]?.newest }

    /// The newest observation of the first of these markets that has one.
    func first(of markets: [Market]) -> MarketObservation? { markets.lazy.compactMap { newest($0) }.first }

    /// The newest valid price of each market whose last request did not fail.
    var newest: [MarketObservation] { records.values.compactMap(\.newest) }

    /// The last valid price of each market, also if a request has failed since.
    var last: [MarketObservation] { records.values.compactMap(\.last) }

    /// The newest position accepted from a market, if it still counts.
    private func position(of market: Market, at boottime: BootTime) -> FeedPosition? {
        records[market]?.position.flatMap { boottime - $0.at <= positionsLast ? $0.value : nil }
    }

    /// Whether a position is before the newest one accepted from its market.
    func isBefore(_ position: FeedPosition, of market: Market, at boottime: BootTime) -> Bool {
        self.position(of: market, at: boottime).map(position.isBefore) ?? false
    }

    /// The newest position accepted from each market, to be stored.
    package var positions: [KeptPosition] {
        records.compactMap { market, record in
            record.position.map { KeptPosition(market, $0.value, address: addresses[market]?.host) }
        }
    }

    /// Records a response.
    /// - Parameters:
    ///   - loaded: Its prices: that of `market`, and those of other markets in the same response.
    ///   - market: The market that was requested, or that pushed.
    ///   - venue: The venue that gave it, if its properties matter here.
    ///   - pace: The minimum time between two requests that the source's limits allow.
    ///   - clocks: The venues' clocks, with that of this response.
    /// - Throws: Why it is not a valid price.
    @discardableResult
    package mutating func record(
        _ loaded: [LoadedPrice], of market: Market, from venue: Venue? = nil, pace: Duration = .zero,
        clocks: VenueClocks = VenueClocks(), at now: ObservationTime
    ) throws(PriceLoadingError) -> MarketObservation {
        guard var price = loaded.first(where: { $0.market == market }) else { throw .invalidData("no price") }
        // A price with a time of its own shows its age itself.
        if price.venueClock != nil, price.position.time == nil, clocks.stands(market.venue) {
            throw .staleData("a cache: the Date of its responses stands still")
        }
        // If the price has no time of its own, the venue's time says nothing about it.
        let wall = price.position.time == nil ? now.wall : clocks.wallTime(at: now)
        // A time in the future is no time: it would never grow old.
        let ahead = price.position.time.map { $0.milliseconds - wall.milliseconds } ?? 0
        if ahead > Self.mostAhead { price.position = FeedPosition(sequence: price.position.sequence) }
        let (oldest, quotes) = records[market, default: Record()].note(
            price, isAhead: ahead > Self.mostAhead, at: now.boottime)
        // A market that trades rarely is as young as the last change of its quotes.
        let quoted = quotes.map { now.boottime - $0.since }
        try ResponseCheck.check(
            price, in: currency, after: position(of: market, at: now.boottime), at: wall,
            oldest: oldest, quoted: quoted)
        let observation = MarketObservation(
            market, price.value, arrival: price.observed ?? now,
            position: ResponseCheck.position(of: price, acceptedAt: wall),
            age: price.position.time.map {
                max(
                    0, min(wall.milliseconds - $0.milliseconds, quotes?.haveChanged == true ? quoted ?? 0 : .max)
                )
            },
            way: price.push?.way ?? .poll, pace: price.push?.interval ?? pace, origin: price.push?.origin,
            upstream: venue?.upstream, halfSpread: price.halfSpread)
        // Only the dollar has markets in USDT.
        for other in loaded
        where currency == .usd && other.market.pair == Market.pegPair && ResponseCheck.pegRates.contains(other.value) {
            stated = StatedRate(other.value, by: other.market.venue, after: stated, at: now.boottime)
        }
        if observation.exchange != market.venue { hasSecondHand = true }
        records[market, default: Record()].keep(observation, at: now.boottime)
        return observation
    }

    /// Whether the last time that a market stated was in the future.
    package func isAhead(_ market: Market) -> Bool { records[market]?.aheadSince != nil }

    /// Whether that lasts: the clock of a lone exchange is believed once it has advanced.
    func isAheadForLong(_ market: Market, at boottime: BootTime) -> Bool {
        records[market]?.aheadSince.map { boottime - $0 >= Vote.Bounds.moment } ?? false
    }

    /// Records that a market gave no price: its last one is no longer its newest.
    mutating func failed(_ market: Market) { records[market]?.hasFailed = true }

    /// Records that a source's request failed.
    mutating func failed(source: String) {
        if let market = records.keys.first(where: { $0.venue == source && records[$0]?.newest != nil }) {
            failed(market)
        }
    }

    /// Keeps these markets at these addresses, and forgets all others.
    /// - Parameter interval: The interval of the currency's ticks, milliseconds.
    /// - Returns: The markets whose address has changed.
    @discardableResult
    mutating func keep(only addresses: [Market: MarketAddress], interval: Int64) -> [Market] {
        let moved = addresses.filter { market, address in self.addresses[market].map { $0 != address } ?? false }.keys
        records = records.filter { addresses[$0.key] != nil && !moved.contains($0.key) }
        self.addresses = addresses
        positionsLast = max(Vote.Bounds.memory, 3 * interval)
        return Array(moved)
    }

    /// Continues from the positions that an earlier run accepted.
    /// - Parameter boottime: When the quote was observed that they were stored with.
    mutating func restore(_ positions: [KeptPosition], at boottime: BootTime) {
        for kept in positions where !isElsewhere(kept) {
            records[kept.market, default: Record()].position = (kept.position, boottime)
        }
    }

    /// Whether an earlier run had a market at another address.
    func isElsewhere(_ kept: KeptPosition) -> Bool {
        guard let before = kept.address, let address = addresses[kept.market] else { return false }
        return before != address.host
    }
}

/// How often a market trades: a pure value.
struct TradeGaps: Sendable {
    /// The newest trade, and the usual time between two, in milliseconds.
    private var newest: (position: FeedPosition, spacing: Int64)?

    /// The lowest maximum age of a price.
    static let oldest = Duration.seconds(60)
    /// The longest time between two trades that is used, in milliseconds.
    private static let longestSpacing = Duration.seconds(300).wholeMilliseconds

    /// Records a trade. Two trades show how often the market trades; without their numbers, there may have been others in between.
    mutating func record(_ position: FeedPosition) {
        guard let time = position.time else { return }
        var spacing = newest?.spacing ?? 0
        if let last = newest?.position, let lastTime = last.time, time > lastTime {
            let elapsed = time.milliseconds - lastTime.milliseconds
            if let trade = position.sequence, let lastTrade = last.sequence {
                let count = trade.subtractingReportingOverflow(lastTrade)
                if count.overflow || count.partialValue > 0 {
                    spacing = count.overflow ? 0 : elapsed / count.partialValue
                }
            } else {
                spacing = elapsed
            }
        }
        newest = (position, spacing)
    }

    /// The maximum age of the market's price by its own time: ten usual gaps between trades, at least a minute.
    var oldest: Duration {
        max(Self.oldest, .milliseconds(10 * min(newest?.spacing ?? 0, Self.longestSpacing)))
    }
}
