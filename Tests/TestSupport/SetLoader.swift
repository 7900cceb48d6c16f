package import BTCPriceCore
import Synchronization

/// A loader whose response is set: by a function, or as a price.
package final class SetLoader: PriceLoader {
    package typealias Response = @Sendable () async throws(PriceLoadingError) -> [LoadedPrice]

    package let venue: Venue
    package let market: Market
    package let companions: [Market]
    private let isNeeded: @Sendable () -> Bool
    private let begun: @Sendable () -> Void
    /// In a struct: a function that is a generic value itself is wrapped once more with each access.
    private struct Held: Sendable { var response: Response }
    private let held: Mutex<Held>

    /// - Parameters:
    ///   - isNeeded: Whether a request would be sent.
    ///   - begun: Called when a request was granted.
    ///   - response: What ``load()`` returns.
    package init(
        _ venue: Venue, _ market: Market, companions: [Market] = [],
        isNeeded: @escaping @Sendable () -> Bool = { true },
        begun: @escaping @Sendable () -> Void = {}, response: @escaping Response
    ) {
        (self.venue, self.market, self.companions) = (venue, market, companions)
        (self.isNeeded, self.begun) = (isNeeded, begun)
        held = Mutex(Held(response: response))
    }

    /// A loader with a price; `nil` for a failure.
    package convenience init(_ market: Market, _ price: String?) {
        self.init(Venue(market.venue, limits: []), market) { () throws(PriceLoadingError) in throw .cancelled }
        set(price)
    }

    package var needsRequest: Bool { isNeeded() }
    package func begin() { begun() }

    package func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        try await held.withLock { $0.response }()
    }

    /// Sets the price; `nil` for a failure.
    package func set(_ price: String?) {
        let market = market
        let new: Response = { () throws(PriceLoadingError) in
            guard let price else { throw .unavailable("HTTP 503") }
            return [LoadedPrice(market, Price(price) ?? 0)]
        }
        held.withLock { $0.response = new }
    }
}
