/// A price as a loader read it, not yet checked or timestamped.
package struct LoadedPrice: Sendable, Hashable {
    package let market: Market
    package let value: Price
    package internal(set) var position: FeedPosition
    /// Half of the bid-ask spread as a share of the middle; zero without quotes. For a peer's unconfirmed price, its uncertainty.
    package let halfSpread: Double
    /// The quotes; `nil` if the response had none.
    package let quotes: LoadedQuotes?
    /// The venue's clock at the response, if the response contained it.
    package var venueClock: Timestamp?
    /// The size of the body of the response that contained it, bytes; `nil` if it was not requested.
    package var bodyBytes: Int?
    /// When it arrived, on this machine's clocks; `nil` if that is now.
    package var observed: ObservationTime?
    /// How it arrived, if it was not requested.
    package var push: Push?

    /// How a price arrived that was not requested.
    package struct Push: Sendable, Hashable {
        package let way: PriceWay
        /// The usual time to the next one; zero if it is not known.
        package let interval: Duration
        /// Where a peer got it; `nil` for an exchange.
        package let origin: PriceOrigin?

        package init(_ way: PriceWay, interval: Duration = .zero, origin: PriceOrigin? = nil) {
            self.way = way
            self.interval = interval
            self.origin = origin
        }
    }

    package init(
        _ market: Market, _ value: Price, position: FeedPosition = FeedPosition(), halfSpread: Double = 0,
        quotes: LoadedQuotes? = nil, venueClock: Timestamp? = nil
    ) {
        self.market = market
        self.value = value
        self.position = position
        self.halfSpread = halfSpread
        self.quotes = quotes
        self.venueClock = venueClock
    }
}

/// The highest bid and the lowest ask of a market, as they were read.
package struct LoadedQuotes: Sendable, Hashable {
    package let bid: Price
    package let ask: Price

    package init(bid: Price, ask: Price) { (self.bid, self.ask) = (bid, ask) }
}

/// Requests prices from one exchange, once. It has no policy: no retry, no fallback, no deadline of its own.
package protocol PriceLoader: Sendable {
    var venue: Venue { get }

    var market: Market { get }

    /// Other markets whose prices come with the same response.
    var companions: [Market] { get }

    /// Whether ``load()`` would send a request. If not, the response to an earlier one is available or pending.
    var needsRequest: Bool { get }

    /// The same source, if it pushes its prices.
    var feed: (any PriceFeed)? { get }

    /// Called before ``load()`` if a request was granted, in the same step.
    func begin()

    /// Requests the current price of ``market``, and of its ``companions`` if the response has them.
    ///
    /// Must end promptly when its task is cancelled, with ``PriceLoadingError/cancelled``: the caller cancels it to enforce the
    /// deadline for head and body.
    /// - Returns: The price of ``market``, and any others in the same response.
    func load() async throws(PriceLoadingError) -> [LoadedPrice]

    /// Has the next request use a new connection, because a price that it returned is not valid: another server may respond.
    func discardConnection()
}

/// A source that pushes its prices. ``PriceLoader/load()`` returns the newest one; it waits only for the first.
package protocol PriceFeed: PriceLoader {
    /// Starts receiving prices.
    /// - Parameter arrived: Called after each change of what ``PriceLoader/load()`` returns, on any thread; must not block.
    func start(_ arrived: @escaping @Sendable () -> Void)

    /// Stops receiving prices. The feed can be started again.
    func stop()
}

/// The stream of one market, in addition to its ``PriceLoader``.
package protocol PriceStream: Sendable {
    /// Starts receiving prices.
    /// - Parameters:
    ///   - interval: How often what has come is read. Of the prices that came together, the newest one is passed on.
    ///   - told: Called with the stream's news, on any thread; must not block.
    func start(every interval: Duration, _ told: @escaping @Sendable (StreamNews) -> Void)

    /// Stops receiving prices. The stream can be started again.
    func stop()
}

/// What a stream reports.
package enum StreamNews: Sendable, Hashable {
    /// The newest price. Its position is that of its trade.
    case price(LoadedPrice)
    /// The venue refuses the stream because of its limits.
    case limited(PriceLoadingError)
}

extension PriceLoader {
    package var companions: [Market] { [] }
    package var needsRequest: Bool { true }
    package var feed: (any PriceFeed)? { nil }
    package func begin() {}
    package func discardConnection() {}
}
