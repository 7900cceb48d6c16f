/// A source of a currency: a market that is requested at an address.
// A class, since rounds and the registry pass it on often: a copy of its values costs a count of references for each.
package final class FetchLatestPrice: Sendable {
    private let loader: any PriceLoader
    let stream: (any PriceStream)?
    /// The waits that it is granted.
    let patience: PollPlan.Patience
    /// The minimum time between two requests that the source's limits allow.
    let pace: Duration
    package let venue: Venue
    package let market: Market
    /// Other markets whose prices come with the same response.
    let companions: [Market]
    /// Scheme and host, or the path of a peer's socket.
    package let address: String
    /// What is requested there: the path and the query, with placeholders. It may contain a credential, and is not stored.
    let path: String
    /// How long all sources other than reserves must be without a price before this one is requested; `nil` if it is not a reserve.
    package let reserve: Duration?

    /// - Parameters:
    ///   - timeout: From the request to giving up.
    ///   - hedge: From the request to the request of the next source.
    package init(
        loader: any PriceLoader, stream: (any PriceStream)? = nil, address: String, path: String = "",
        timeout: Duration, hedge: Duration, reserve: Duration? = nil
    ) {
        self.loader = loader
        self.stream = stream
        patience = .init(timeout: timeout, hedge: hedge)
        (venue, market, companions) = (loader.venue, loader.market, loader.companions)
        (self.address, self.path, self.reserve) = (address, path, reserve)
        pace = RequestLimiter(venue.allLimits).pace
    }

    /// Its name in the configuration, in quotes and in the journal.
    package var name: String { venue.name }

    /// Whether another one would send the same requests.
    func isSame(as other: FetchLatestPrice) -> Bool {
        (venue, market, companions, address, path, reserve)
            == (other.venue, other.market, other.companions, other.address, other.path, other.reserve)
    }

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
