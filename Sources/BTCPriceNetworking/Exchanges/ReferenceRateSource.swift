package import BTCPriceCore
package import Configuration

/// A source of reference rates. It is described as an exchange is; its markets are the rates of all currencies.
package struct ReferenceRateSource: Sendable {
    package let description: ExchangeDescription

    /// - Parameter table: The values of its table, `[reference-rate.NAME]`.
    package init(_ name: String, _ table: ConfigurationTable) throws(SettingsError) {
        description = try ExchangeDescription(name, table, isOfRates: true)
    }

    package var name: String { description.name }

    /// Its addresses.
    package func access(_ client: ExchangeClient, key: String?) -> Exchange.Access {
        Exchange.Access(client: client, baseURL: description.baseURL, secondURL: description.secondURL, key: key)
    }

    package func loader(_ access: Exchange.Access, now: @escaping TimeSource) -> any ReferenceRateLoader {
        ReferenceRateRequest(description: description, access: access, now: now)
    }

    /// Requests the rates of past days; `nil` if the source has none.
    package func historyLoader(_ access: Exchange.Access, now: @escaping TimeSource) -> (any RateHistoryLoader)? {
        guard description.history != nil, let base = Currency(rawValue: description.markets[0].base) else { return nil }
        return RateHistoryRequest(rates: self, base: base, access: access, now: now)
    }

    /// The path and the query of a request for past days; an empty text if the source has none.
    func target(of request: RateHistory.Request) -> String {
        func date(_ day: Int64) -> String { Timestamp(milliseconds: day * Self.day).utc.date }
        var placeholders = Placeholders(base: description.markets[0].base, quote: "")
        placeholders["FROM"] = date(request.days.lowerBound)
        placeholders["TO"] = date(request.days.upperBound)
        placeholders["QUOTES"] = request.currencies.map(\.rawValue).joined(separator: ",")
        return placeholders.fill(description.history ?? "")
    }

    /// The rates of past days in a response. What is not one is left out.
    func rates(
        in response: HTTPResponse, of currencies: [Currency], at wall: Timestamp
    ) throws(PriceLoadingError) -> [(currency: Currency, day: Int64, value: Price)] {
        let markets = description.markets.filter { $0.market.currency.map(currencies.contains) ?? false }
        return Self.rates(try TickerReader(description, markets).days(response), at: wall).map {
            (currency: $0.currency, day: RateHistory.day(of: $0.date.wholeSeconds), value: $0.value)
        }
    }

    /// The keys of a table that are those of an exchange, and mean nothing for a source of rates.
    package static func withoutEffect(_ table: ConfigurationTable) -> [String] {
        ["limits", "weight", "cache-ms", "upstream"].filter(table.has)
    }

    /// The sources that are built in, in their order.
    package static let all: [ReferenceRateSource] = {
        do throws(SettingsError) {
            let file = try ConfigurationFile(
                text: String(decoding: PackageResources.reference_rates_toml, as: UTF8.self),
                path: "reference-rates.toml")
            return try file.tables(in: "reference-rate").map { name, table throws(SettingsError) in
                try ReferenceRateSource(name, table)
            }
        } catch {
            // A unit test reads the file, too.
            preconditionFailure("\(error)")
        }
    }()

    /// The rates in a response.
    /// - Throws: If there is none, the reason.
    static func table(
        _ response: HTTPResponse, _ description: ExchangeDescription, at wall: Timestamp
    ) throws(PriceLoadingError) -> ReferenceRateTable {
        let prices = try TickerReader(description, description.markets).prices(response)
        guard let base = description.markets.first.flatMap({ Currency(rawValue: $0.base) }) else {
            throw .invalidData("its base is not known")
        }
        let rates = rates(prices, at: wall)
        guard !rates.isEmpty else { throw .invalidData("its rates have no day, or one in the future") }
        return ReferenceRateTable(description.name, of: base, rates, received: wall)
    }

    /// The rates that have a day.
    private static func rates(
        _ prices: [LoadedPrice], at wall: Timestamp
    ) -> [(currency: Currency, value: Price, date: Timestamp)] {
        prices.compactMap { price in
            // A rate is published on its day or later, in any time zone.
            guard let currency = price.market.currency, let time = price.position.time?.milliseconds,
                time <= wall.milliseconds + day
            else { return nil }
            return (currency, price.value, Timestamp(milliseconds: time - time % day))
        }
    }

    private static let day = Duration.seconds(86_400).wholeMilliseconds
}

private struct ReferenceRateRequest: ReferenceRateLoader {
    let description: ExchangeDescription
    let access: Exchange.Access
    let now: TimeSource

    var source: String { description.name }

    func load() async throws(PriceLoadingError) -> ReferenceRateTable {
        let (urls, used) = (access.urls, access.urls.used)
        let request = HTTPRequest.json(
            description.url(for: description.markets, at: urls.all[used]),
            headers: description.headers(key: access.key), longestBody: description.longestBody)
        let response = try await access.client.get(request)
        try urls.check(response, from: used)
        return try ReferenceRateSource.table(response, description, at: now().wall)
    }
}

private struct RateHistoryRequest: RateHistoryLoader {
    /// The longest body of a response, bytes: a year of 160 currencies.
    private static let longestBody = 4 << 20

    let rates: ReferenceRateSource
    let base: Currency
    let access: Exchange.Access
    let now: TimeSource

    var source: String { rates.name }

    func load(
        _ request: RateHistory.Request
    ) async throws(PriceLoadingError) -> [(currency: Currency, day: Int64, value: Price)] {
        let (urls, used) = (access.urls, access.urls.used)
        let response = try await access.client.get(
            HTTPRequest.json(
                urls.all[used] + rates.target(of: request), headers: rates.description.headers(key: access.key),
                longestBody: Self.longestBody))
        try urls.check(response, from: used)
        return try rates.rates(in: response, of: request.currencies, at: now().wall)
    }
}
