/// Requests one source. A source with a stream that proves its price needs no request.
package struct FetchLatestPrice: Sendable {
    private let loader: any PriceLoader
    /// Its stream, if it has one.
    let stream: (any PriceStream)?
    private let now: TimeSource
    /// The minimum time between two requests that the source's limits allow.
    let pace: Duration

    /// - Parameter now: Reads the clocks.
    package init(loader: any PriceLoader, stream: (any PriceStream)? = nil, now: @escaping TimeSource = { .now() }) {
        self.loader = loader
        self.stream = stream
        self.now = now
        pace = RequestLimiter(loader.venue.allLimits).pace
    }

    /// The venue that is requested.
    var venue: Venue { loader.venue }

    /// The market that is requested.
    var market: Market { loader.market }

    /// Whether its price costs a request, if the price of a stream can't be used.
    var needsRequest: Bool { loader.needsRequest }

    /// Begins the request that was granted.
    func begin() { loader.begin() }

    /// Has the next request use a new connection.
    func discardConnection() { loader.discardConnection() }

    /// The source, if it pushes its prices.
    var feed: (any PriceFeed)? { loader as? any PriceFeed }

    /// The source's properties.
    /// - Parameter address: The base address of its requests.
    package func source(at address: String) -> SourceDescription {
        SourceDescription(
            venue: loader.venue, market: loader.market, companions: loader.companions, address: address)
    }

    /// - Returns: The price of the market, and any others in the same response.
    /// - Throws: ``PriceLoadingError/cancelled`` if the task is cancelled, otherwise why the source gave no price.
    package func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        let requested = stream.map { _ in now().boottime }
        let loaded: [LoadedPrice]
        do {
            loaded = try await loader.load()
        } catch {
            // Once the task is cancelled, that is the reason, and not a failure of the source.
            throw Task.isCancelled ? .cancelled : error
        }
        if Task.isCancelled { throw .cancelled }
        if let stream, let requested, let price = loaded.first(where: { $0.market == market }) {
            stream.compare(price, requested: requested)
        }
        return loaded
    }
}
