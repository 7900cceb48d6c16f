import BTCPriceCore
import Synchronization

/// Requests the price of a market of a described exchange.
///
/// The markets of an exchange that are in one response share the request.
final class DescribedPriceLoader: PriceLoader {
    /// The base URL in use: the second one after a response with status 451.
    private final class BaseURL: Sendable {
        private let urls: [String]
        private let index = Atomic(0)
        private let requests: [HTTPRequest?]

        init(_ urls: [String], request: (String) -> HTTPRequest?) {
            self.urls = urls
            requests = urls.map(request)
        }

        /// Sends the request.
        func get(_ client: ExchangeClient) async throws(PriceLoadingError) -> HTTPResponse {
            let used = index.load(ordering: .relaxed)
            let response = try await client.get(requests[used])
            guard response.status == 451, used + 1 < urls.count else { return response }
            // A source gets one request per tick: the second URL is used from the next one on.
            index.store(used + 1, ordering: .relaxed)
            throw .unavailable("HTTP 451, not served in this region; \(urls[used + 1]) is used from now on")
        }
    }

    let venue: Venue
    let market: Market
    let companions: [Market]
    private let request: @Sendable () async throws(PriceLoadingError) -> [LoadedPrice]
    /// The request, if it is for several markets.
    private let shared: SharedRequest?
    /// When the response came that was returned last, `CLOCK_BOOTTIME` in milliseconds.
    private let returned = Atomic(Int64.min)

    private init(
        _ venue: Venue, _ market: Market, companions: [Market], shared: SharedRequest?,
        request: @escaping @Sendable () async throws(PriceLoadingError) -> [LoadedPrice]
    ) {
        self.venue = venue
        self.market = market
        self.companions = companions
        self.shared = shared
        self.request = request
    }

    /// The loaders of some markets of an exchange, in their order.
    static func loaders(
        _ description: ExchangeDescription, _ access: Exchange.Access, _ markets: [ExchangeDescription.DescribedMarket],
        now: @escaping TimeSource
    ) -> [DescribedPriceLoader] {
        let urls = [access.baseURL] + [access.secondURL].compactMap(\.self)
        let headers = description.headers(key: access.key)
        return description.groups(of: markets).flatMap { group in
            let base = BaseURL(urls) { url in
                HTTPRequest.json(
                    description.url(for: group.all, at: url), headers: headers, longestBody: description.longestBody)
            }
            let reader = TickerReader(description, group.all)
            let client = access.client
            let request: @Sendable () async throws(PriceLoadingError) -> [LoadedPrice] = {
                () throws(PriceLoadingError) in
                try await base.get(client).prices { (response) throws(PriceLoadingError) in try reader.prices(response)
                }
            }
            let shared =
                group.all.count > 1
                ? SharedRequest(cacheTime: description.venue.cacheTime, now: now, request: request) : nil
            return group.wanted.map { market in
                let companions = group.all.filter { $0.isRate && market.market.currency == .usd }
                return DescribedPriceLoader(
                    description.venue, market.market, companions: companions.map(\.market), shared: shared,
                    request: request)
            }
        }
    }

    var needsRequest: Bool { shared?.isNeeded(after: returned.load(ordering: .relaxed)) ?? true }

    func begin() { shared?.begin() }

    /// Requests the current prices.
    func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        guard let shared else { return try await request() }
        let prices = try await shared.load(after: returned.load(ordering: .relaxed))
        guard let price = prices.first(where: { $0.market == market }) else {
            throw .invalidData("no price of \(market.pair)")
        }
        if let observed = price.observed { returned.store(observed.boottime, ordering: .relaxed) }
        return prices
    }
}

extension ExchangeDescription {
    /// The headers of a request.
    /// - Parameter key: The credential; without one, the headers that contain it are left out.
    func headers(key: String?) -> [(name: String, value: String)] {
        headers.compactMap { name, value in
            guard value.contains("{credential}") else { return (name, value) }
            return key.map { (name, value.replacing("{credential}", with: $0)) }
        }
    }

    /// The markets of one request.
    struct RequestGroup {
        /// Those that are wanted.
        let wanted: [DescribedMarket]
        /// Those, and the ones that come along.
        let all: [DescribedMarket]
    }

    /// Markets by the request that returns them. The rate of USDT comes with the dollar's market.
    func groups(of wanted: [DescribedMarket]) -> [RequestGroup] {
        let rate = markets.filter(\.isRate)
        if target.contains("{names}") {
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
