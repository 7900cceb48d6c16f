/// A pair on a venue: `kraken BTC/USD`.
package struct Market: Sendable, Hashable, CustomStringConvertible {
    /// The name of the venue, in lower-case letters: `kraken`.
    package let venue: String
    /// The pair, as `<base>/<quote>`: `BTC/USD`, `BTC/USDT`.
    package let pair: String

    package init(_ venue: String, _ pair: String) {
        self.venue = venue
        self.pair = pair
    }

    package func hash(into hasher: inout Hasher) {
        // A venue has few pairs.
        hasher.combine(venue)
    }

    /// Whether a name may be that of a venue or a peer: at most 32 lower-case letters, digits and hyphens, a letter first.
    package static func isVenueName(_ name: String) -> Bool {
        name.count <= 32 && name.isWord(with: "-") && name == name.lowercased() && name.first?.isLetter == true
    }

    /// The currency whose price it is a source of; for BTC/USDT, the dollar.
    package var currency: Currency? {
        isInTether ? .usd : Currency(rawValue: String(pair.drop { $0 != "/" }.dropFirst()))
    }

    /// Whether it quotes in USDT, which is not the dollar.
    package var isInTether: Bool { Self.isInTether(pair) }

    static func isInTether(_ pair: String) -> Bool { pair.hasSuffix("/USDT") }

    /// The pair that states the value of USDT in dollars.
    package static let pegPair = "USDT/USD"

    package var description: String { "\(venue) \(pair)" }
}

extension Market {
    /// The name of a median, if a source's name is needed.
    package static let medianName = "median"
    /// The market of a median. It cannot be requested.
    static func median(of currency: Currency) -> Market { Market(medianName, currency.pair) }
    /// Whether it is the market of a median.
    var isMedian: Bool { venue == Self.medianName }
}

/// The position of a price in its market's own history. Either part may be missing: Binance's ticker has neither.
package struct FeedPosition: Sendable, Hashable {
    /// The venue's own time of the price.
    package let time: Timestamp?
    /// The venue's number of the trade that set the price.
    package let sequence: Int64?

    package init(time: Timestamp? = nil, sequence: Int64? = nil) {
        self.time = time
        self.sequence = sequence
    }

    /// Whether the venue sent neither part.
    package var isEmpty: Bool { time == nil && sequence == nil }

    /// Whether this position is before `other`.
    ///
    /// Compares times if both have one: a venue may restart its trade numbers, but its time continues.
    func isBefore(_ other: FeedPosition) -> Bool {
        if let mine = time, let theirs = other.time { return mine < theirs }
        if let mine = sequence, let theirs = other.sequence { return mine < theirs }
        return false
    }
}

/// Where a market is requested. At another address there is another market, even if it has the same name.
package struct MarketAddress: Sendable, Hashable {
    /// See ``FetchLatestPrice/address``.
    let host: String
    /// See ``FetchLatestPrice/path``.
    let path: String
}

/// A position as it is stored across a restart.
package struct KeptPosition: Sendable, Hashable {
    package let market: Market
    package let position: FeedPosition
    /// The ``MarketAddress/host`` at which the market had it; `nil` if that is not known: then it is taken for the configured one.
    package let address: String?

    package init(_ market: Market, _ position: FeedPosition, address: String? = nil) {
        self.market = market
        self.position = position
        self.address = address
    }
}

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
