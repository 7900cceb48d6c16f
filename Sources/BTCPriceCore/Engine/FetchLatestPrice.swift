/// Requests one source.
package struct FetchLatestPrice: Sendable {
    private let loader: any PriceLoader
    /// Its stream, if it has one.
    let stream: (any PriceStream)?
    /// The minimum time between two requests that the source's limits allow.
    let pace: Duration

    package init(loader: any PriceLoader, stream: (any PriceStream)? = nil) {
        self.loader = loader
        self.stream = stream
        pace = RequestLimiter(loader.venue.allLimits).pace
    }

    /// The venue that is requested.
    var venue: Venue { loader.venue }

    /// The market that is requested.
    var market: Market { loader.market }

    /// Whether its price costs a request.
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
