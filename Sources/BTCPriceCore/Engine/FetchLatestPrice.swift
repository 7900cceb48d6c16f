/// Requests one source of a currency.
package struct FetchLatestPrice: Sendable {
    private let loader: any PriceLoader
    let stream: (any PriceStream)?
    /// The waits that it is granted.
    let patience: PollPlan.Patience
    /// The minimum time between two requests that the source's limits allow.
    let pace: Duration
    package let source: SourceDescription

    /// - Parameters:
    ///   - path: See ``SourceDescription/path``.
    ///   - timeout: From the request to giving up.
    ///   - hedge: From the request to the request of the next source.
    ///   - reserve: How long all sources other than reserves must be without a price before this one is requested; `nil` if it is
    ///     not a reserve.
    package init(
        loader: any PriceLoader, stream: (any PriceStream)? = nil, address: String, path: String = "",
        timeout: Duration, hedge: Duration, reserve: Duration? = nil
    ) {
        self.loader = loader
        self.stream = stream
        patience = .init(timeout: timeout, hedge: hedge)
        pace = RequestLimiter(loader.venue.allLimits).pace
        var source = SourceDescription(
            venue: loader.venue, market: loader.market, companions: loader.companions, address: address)
        (source.path, source.reserve) = (path, reserve)
        self.source = source
    }

    var venue: Venue { source.venue }

    var market: Market { source.market }

    /// Whether its price costs a request.
    var needsRequest: Bool { loader.needsRequest }

    /// The source, if it pushes its prices.
    package var feed: (any PriceFeed)? { loader.feed }

    func begin() { loader.begin() }

    func discardConnection() { loader.discardConnection() }

    /// - Returns: The price of the market, and any others in the same response.
    /// - Throws: ``PriceLoadingError/cancelled`` if the task is cancelled, otherwise why the source gave no price.
    func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        let loaded: [LoadedPrice]
        do {
            loaded = try await loader.load()
        } catch {
            // Once the task is cancelled, that is the reason, and not a failure of the source.
            throw Task.isCancelled ? .cancelled : error
        }
        if Task.isCancelled { throw .cancelled }
        return loaded
    }
}
