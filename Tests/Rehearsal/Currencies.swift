import BTCPriceCore
import BTCPriceNetworking
import TestSupport

/// The results of one currency.
private struct CurrencyTally {
    var ticks = 0
    var fresh = 0
    var wrong = 0
}

/// Runs all currencies for an hour, with their default sources. From the 20th minute to the 40th, Coinbase's price in euros slides to
/// 20 % below the others.
func rehearseCurrencies(seed: UInt64, clock: VirtualClock) async throws {
    let rates: [Currency: Double] = [
        .usd: 1, .eur: 0.86, .gbp: 0.75, .chf: 0.8, .cad: 1.38, .aud: 1.53, .jpy: 150,
    ]
    let now = VirtualDaemon.time(of: clock)
    var loaders: [Market: any PriceLoader] = [:]
    var exchanges: [VirtualExchange] = []
    for (index, exchange) in Exchange.all.enumerated() {
        let virtual = try VirtualExchange(
            exchange, clock: clock, seed: seed &+ UInt64(index) &* 7919, faults: [], calm: .seconds(1 << 40))
        exchanges.append(virtual)
        // The dollar price times a rate, with a lie for some time.
        @Sendable func priced(_ dollars: LoadedPrice, in currency: Currency, on market: Market) -> LoadedPrice {
            let seconds = clock.seconds
            let isLie = exchange.name == "coinbase" && currency == .eur && (1200..<2400).contains(seconds)
            let factor = (rates[currency] ?? 1) * (isLie ? 1 - 0.2 * (seconds - 1200) / 1200 : 1)
            let cents = Int64((dollars.value.double * factor * 100).rounded())
            return LoadedPrice(market, Price(cents, scale: 2), position: dollars.position)
        }
        // Kraken has all markets in one response.
        let shared = SharedRequest(cacheTime: exchange.venue.cacheTime, now: now) {
            () throws(PriceLoadingError) in
            let dollars = try await virtual.load()
            return exchange.markets.flatMap { currency, market in
                dollars.map { priced($0, in: currency, on: market) }
            }
        }
        let isShared = exchange.name == "kraken"
        for (currency, market) in exchange.markets {
            loaders[market] = SetLoader(
                exchange.venue, market, isNeeded: { isShared ? shared.isNeeded(after: .min) : true },
                response: { () throws(PriceLoadingError) in
                    if isShared { return try await shared.load(after: .min) }
                    return try await virtual.load().map { priced($0, in: currency, on: market) }
                })
        }
    }
    let kept = Exchange.currencies.map { currency in
        let order = currency == .usd ? Exchange.all.map(\.name) : ["kraken", "coinbase", "bitstamp", "binance"]
        let markets = order.compactMap { name in Exchange.all.first { $0.name == name }?.markets[currency] }
        return VirtualCurrency(
            currency: currency, interval: .seconds(currency == .usd ? 1 : 10),
            loaders: markets.compactMap { loaders[$0] })
    }
    let tallies = Shared([String: CurrencyTally]())
    let tally = Shared(Tally())
    let daemon = await VirtualDaemon(
        kept, clock: clock, store: MemoryStore(), tally: tally
    ) { state in
        let fair = 68_900 * (Currency(rawValue: state.currency).flatMap { rates[$0] } ?? 1)
        tallies.update { tallies in
            tallies[state.currency, default: CurrencyTally()].ticks += 1
            guard state.freshness == .fresh, let value = state.quote?.value.double else { return }
            tallies[state.currency, default: CurrencyTally()].fresh += 1
            if abs(value / fair - 1) > 0.01 { tallies[state.currency, default: CurrencyTally()].wrong += 1 }
        }
    }
    try await clock.sleep(until: clock.instant(at: .seconds(3600)))
    await daemon.stop()
    for currency in Exchange.currencies {
        let tally = tallies.current[currency.rawValue] ?? CurrencyTally()
        print("\(currency) ticks \(tally.ticks) fresh \(tally.fresh) wrong \(tally.wrong)")
    }
    print("skipped \(tally.current.skipped)")
    for exchange in exchanges {
        print("\(exchange.venue.name) \(exchange.isWithinLimits ? "within" : "OVER") \(exchange.counts)")
    }
}
