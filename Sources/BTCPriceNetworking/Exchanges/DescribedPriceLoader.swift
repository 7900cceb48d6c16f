import BTCPriceCore
import Synchronization

/// Requests the price of a market of a described exchange.
///
/// The markets of an exchange that are in one response share the request.
final class DescribedPriceLoader: PriceLoader {
    let venue: Venue
    let market: Market
    let companions: [Market]
    private let request: @Sendable () async throws(PriceLoadingError) -> [LoadedPrice]
    private let discard: @Sendable () -> Void
    /// The request, if it is for several markets.
    private let shared: SharedRequest?
    /// When the response came that was returned last, in milliseconds.
    private let returned = Atomic(BootTime.min.milliseconds)

    private init(
        _ venue: Venue, _ market: Market, companions: [Market], shared: SharedRequest?,
        request: @escaping @Sendable () async throws(PriceLoadingError) -> [LoadedPrice],
        discard: @escaping @Sendable () -> Void
    ) {
        self.venue = venue
        self.market = market
        self.companions = companions
        self.shared = shared
        self.request = request
        self.discard = discard
    }

    /// The loaders of some markets of an exchange, in their order.
    static func loaders(
        _ description: ExchangeDescription, _ access: Exchange.Access, _ markets: [ExchangeDescription.DescribedMarket],
        now: @escaping TimeSource
    ) -> [DescribedPriceLoader] {
        let (urls, client) = (access.urls, access.client)
        let headers = description.headers(key: access.key)
        return description.groups(of: markets).flatMap { group in
            let requests = urls.all.map { url in
                HTTPRequest.json(
                    description.url(for: group.all, at: url), headers: headers, longestBody: description.longestBody)
            }
            let reader = TickerReader(description, group.all)
            let request: @Sendable () async throws(PriceLoadingError) -> [LoadedPrice] = {
                () throws(PriceLoadingError) in
                let used = urls.used
                return try await client.get(requests[used]) { (response) throws(PriceLoadingError) in
                    try urls.check(response, from: used)
                    return try response.prices { (response) throws(PriceLoadingError) in try reader.prices(response) }
                }
            }
            let discard: @Sendable () -> Void = {
                if let request = requests[urls.used] { client.dropConnections(of: request) }
            }
            let shared =
                group.all.count > 1
                ? SharedRequest(cacheTime: description.venue.cacheTime, now: now, request: request) : nil
            return group.wanted.map { market in
                let companions = group.all.filter { $0.isRate && market.market.currency == .usd }
                return DescribedPriceLoader(
                    description.venue, market.market, companions: companions.map(\.market), shared: shared,
                    request: request, discard: discard)
            }
        }
    }

    private var lastReturned: BootTime { BootTime(milliseconds: returned.load(ordering: .relaxed)) }

    var needsRequest: Bool { shared?.isNeeded(after: lastReturned) ?? true }

    func begin() { shared?.begin() }

    func discardConnection() { discard() }

    func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        guard let shared else { return try await request() }
        let prices = try await shared.load(after: lastReturned)
        guard let price = prices.first(where: { $0.market == market }) else {
            throw .invalidData("no price of \(market.pair)")
        }
        if let observed = price.observed { returned.store(observed.boottime.milliseconds, ordering: .relaxed) }
        return prices
    }
}

extension ExchangeDescription {
    /// The headers of a request.
    /// - Parameter key: The credential; without one, the headers that contain it are left out.
    func headers(key: String?) -> [(name: String, value: String)] {
        headers.compactMap { name, value in
            guard value.holds("{credential}") else { return (name, value) }
            return key.map { (name, value.replaced("{credential}", by: $0)) }
        }
    }

    struct RequestGroup {
        /// Those that are wanted.
        let wanted: [DescribedMarket]
        /// Those, and the ones that come along.
        let all: [DescribedMarket]
    }

    /// Markets by the request that returns them. The rate of USDT comes with the dollar's market.
    func groups(of wanted: [DescribedMarket]) -> [RequestGroup] {
        let rate = markets.filter(\.isRate)
        if target.holds("{names}") {
            let hasDollar = wanted.contains { $0.market.currency == .usd }
            return wanted.isEmpty ? [] : [RequestGroup(wanted: wanted, all: wanted + (hasDollar ? rate : []))]
        }
        var groups: [(url: String, markets: [DescribedMarket])] = []
        for market in wanted {
            let url = url(for: [market], at: baseURL)
            if let index = groups.firstIndex(where: { $0.url == url }) {
                groups[index].markets.append(market)
            } else {
                groups.append((url, [market]))
            }
        }
        return groups.map { url, markets in
            let hasDollar = markets.contains { $0.market.currency == .usd }
            let others = rate.filter { hasDollar && self.url(for: [$0], at: baseURL) == url }
            return RequestGroup(wanted: markets, all: markets + others)
        }
    }
}
