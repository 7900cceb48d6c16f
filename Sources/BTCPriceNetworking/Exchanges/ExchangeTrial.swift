package import BTCPriceCore
import BTCPriceSocket

/// One request to an exchange, or a saved body, and what its description finds there, for who writes a description.
package struct ExchangeTrial: Sendable {
    /// The longest wait for a response.
    private static let timeout = Duration.seconds(10)

    package private(set) var lines: [String] = []
    /// Whether at least one price was found, and each request had one.
    package private(set) var isGood = true

    /// Sends one request for each group of markets, until one has no response in time.
    package init(_ exchange: Exchange, _ access: Exchange.Access, on clock: any BoottimeClock) async {
        let description = exchange.description
        for group in description.groups(of: description.markets.filter { !$0.isRate }) {
            let url = description.url(for: group.all, at: access.urls.all[0])
            lines.append("GET \(url)")
            let request = HTTPRequest.json(
                url, headers: description.headers(key: access.key), longestBody: description.longestBody)
            let start = ContinuousClock.now
            do throws(PriceLoadingError) {
                let response = try await withTimeout(Self.timeout, on: clock) { () throws(PriceLoadingError) in
                    try await access.client.get(request)
                }.get()
                let took = start.duration(to: .now).wholeMilliseconds
                lines.append("HTTP \(response.status), \(response.body.count) bytes in \(took) ms")
                if report(response, description, group.all, at: .now()) == 0 {
                    lines.append("The body: " + oneLine(String(decoding: response.body.prefix(300), as: UTF8.self)))
                    isGood = false
                }
            } catch {
                isGood = false
                if case .timedOut = error {
                    lines.append("\(error)")
                    break
                }
                lines.append("no response: \(error)")
            }
        }
        advise(description)
    }

    /// Reads a saved body. It is of one of the requests, so one price is enough.
    package init(_ exchange: Exchange, body: [UInt8]) {
        var description = exchange.description
        // When it was saved is not known, so it is not old.
        if description.timeMeaning == .reply { description.timeMeaning = .book }
        let response = HTTPResponse(status: 200, body: body[...])
        isGood = report(response, description, description.markets, onlyFound: true) > 0
        if !isGood {
            lines = []
            _ = report(response, description, description.markets)
        }
        advise(description)
    }

    package init(_ source: ReferenceRateSource, _ access: Exchange.Access, on clock: any BoottimeClock) async {
        let loader = source.loader(access, now: { .now() })
        lines = ["GET \(source.description.url(for: source.description.markets, at: source.description.baseURL))"]
        report(
            await withTimeout(Self.timeout, on: clock) { () throws(PriceLoadingError) in try await loader.load() })
    }

    package init(_ source: ReferenceRateSource, body: [UInt8]) {
        let (description, response) = (source.description, HTTPResponse(status: 200, body: body[...]))
        report(
            Result { () throws(PriceLoadingError) in
                try ReferenceRateSource.table(response, description, at: ObservationTime.now().wall)
            })
    }

    private mutating func report(_ rates: Result<ReferenceRateTable, PriceLoadingError>) {
        switch rates {
        case .success(let table):
            lines += table.rates.sorted { $0.key.rawValue < $1.key.rawValue }.map { currency, rate in
                "1 \(table.base) = \(rate.value) \(currency), of \(rate.date.utc.date)"
            }
        case .failure(let error):
            lines.append("\(error)")
            isGood = false
        }
    }

    /// - Parameters:
    ///   - onlyFound: Whether markets without a price are left out.
    ///   - now: When it was received; `nil` for a saved body, whose age is not known.
    /// - Returns: The number of prices that were found.
    private mutating func report(
        _ response: HTTPResponse, _ description: ExchangeDescription, _ markets: [ExchangeDescription.DescribedMarket],
        onlyFound: Bool = false, at now: ObservationTime? = nil
    ) -> Int {
        var found = 0
        for market in markets {
            let reader = TickerReader(description, [market])
            if onlyFound, (try? reader.prices(response)) == nil { continue }
            lines.append("\(market.market.pair), called \(market.name):")
            lines += reader.findings(response).map { "  \($0)" }
            do throws(PriceLoadingError) {
                let loaded = try reader.prices(response)[0]
                let price = loaded.value
                guard !market.isRate, let currency = market.market.currency, !currency.prices.contains(price) else {
                    lines.append("  = \(price)")
                    if judge(loaded, market.market, description.venue, at: now) { found += 1 }
                    continue
                }
                let range = currency.prices
                lines.append(
                    "  \(price) is not a price of a bitcoin in \(currency): it must be from \(range.lowerBound) to \(range.upperBound). Check the market and the unit."
                )
            } catch {
                lines.append("  \(error)")
            }
        }
        return found
    }

    /// Says what the daemon would.
    /// - Returns: Whether it would use the price.
    private mutating func judge(_ loaded: LoadedPrice, _ market: Market, _ venue: Venue, at now: ObservationTime?)
        -> Bool
    {
        guard let time = loaded.position.time else { return true }
        guard let now, let currency = market.currency else {
            lines.append("  made at \(time.utcText)")
            return true
        }
        let age = (now.wall.milliseconds - time.milliseconds) / 1000
        lines.append("  made at \(time.utcText), \(age < 0 ? "\(-age) s from now" : "\(age) s old")")
        var book = ObservationBook(currency: currency)
        do throws(PriceLoadingError) { try book.record([loaded], of: market, from: venue, at: now) } catch {
            lines.append("  The daemon refuses it: \(error)")
            return false
        }
        if book.isAhead(market) {
            lines.append(
                "  That is in the future: the daemon takes it as a price without a time. Check the unit and the zone.")
        }
        return true
    }

    private mutating func advise(_ description: ExchangeDescription) {
        guard isGood else { return }
        if description.time == nil {
            lines.append(
                "Nothing shows how old the price is. If the body has the time of the last trade, add it: time = \"/…\" and time-is = \"trade\"."
            )
        }
        guard !description.namesTheMarket else { return }
        lines.append(
            "Nothing in the body shows which market it is of. If the body names the market, add it: require = { \"/…\" = \"{name}\" }."
        )
    }
}
